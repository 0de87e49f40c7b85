// OwnCookie: the secret by which processes of one user know each other on TCP (cookie.hpp), read or made when it is first needed.
//
// Threads: one at a time: the thread that starts the node until it accepts connections, then the control thread. Invariant: once get() has
// returned a cookie it always returns that one, even if the file changes.
#pragma once

#include <filesystem>
#include <optional>
#include <utility>

#include "control/cookie.hpp"

namespace rove::control {

class OwnCookie {
public:
    // `chosen`: see cookie_path().
    explicit OwnCookie(std::filesystem::path chosen) : chosen_(std::move(chosen)) {}
    OwnCookie(const OwnCookie&) = delete;

    // Errors of read_or_make_cookie(); the next call tries again then.
    [[nodiscard]] Result<Cookie> get();
    [[nodiscard]] std::filesystem::path path() const { return cookie_path(chosen_); }

private:
    const std::filesystem::path chosen_;
    std::optional<Cookie> cookie_;
};

}  // namespace rove::control
