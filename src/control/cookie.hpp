// Identifies the user at the other end. On a Unix socket the kernel reports its user id. On loopback TCP both ends prove that they can read
// one file that only this user can: the cookie. No address of memory or transport is sent before that.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <string_view>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "wire/control.hpp"

namespace rove::control {

inline constexpr std::size_t kCookieBytes = 32;
using Cookie = std::array<std::byte, kCookieBytes>;
using Nonce = wire::control::Nonce;
using Proof = wire::control::Proof;

// `chosen`, or the default path of the cookie (see NodeOptions::cookie).
[[nodiscard]] std::filesystem::path cookie_path(const std::filesystem::path& chosen);

// Reads the cookie. Makes it (mode 0600) if there is none; its folder (0700) only if that is the default's. Two processes that make it at the
// same time end with the same one. refused: it belongs to another user, others may read it, or it cannot be read or made; overloaded: this
// process has no more descriptors, or no memory.
[[nodiscard]] Result<Cookie> read_or_make_cookie(const std::filesystem::path& path);

[[nodiscard]] Nonce random_nonce();

// Keyed BLAKE2b over the side ("node" or "peer"), both nonces and the endpoint that both ends see, so that a proof cannot be replayed,
// reflected, or forwarded to another port.
[[nodiscard]] Proof prove(const Cookie& cookie, std::string_view side, const Nonce& node, const Nonce& peer,
                          std::string_view endpoint);
[[nodiscard]] bool same(const Proof& a, const Proof& b);  // in constant time

}  // namespace rove::control
