// rove::Work: a call that has arrived, for execution policies; part of rove/function.hpp, which includes it.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "rove/edge.h"

namespace rove {

namespace detail {

// Ends the call with what the exception says.
template <typename Body>
void guarded(rove_here* here, Body&& body) {
#ifdef __cpp_exceptions
    try {
        body();
    } catch (...) {
        (void)rove_fail_caught(here);
    }
#else
    (void)here;
    body();
#endif
}

}  // namespace detail

// A call that has arrived, for execution policies: run it once, in any thread, at any time before the node ends. One that is
// dropped fails its caller.
class Work {
public:
    using Body = void (*)(rove_here*, const void*, std::size_t);
    Work(rove_here* here, const void* payload, std::size_t size, Body body)
        : payload_(static_cast<const std::byte*>(payload), static_cast<const std::byte*>(payload) + size),
          kept_(rove_keep(here)),
          body_(body) {
#ifdef __cpp_exceptions
        if (kept_ == nullptr) throw std::bad_alloc();
#else
        if (kept_ == nullptr) (void)rove_fail_as(here, ROVE_OVERLOADED, "no memory to keep the call");
#endif
    }
    Work(Work&& other) noexcept
        : payload_(std::move(other.payload_)), kept_(std::exchange(other.kept_, nullptr)), body_(other.body_) {}
    Work& operator=(Work&&) = delete;
    ~Work() {
        if (kept_ == nullptr) return;
        (void)rove_fail_as(kept_, ROVE_CANCELLED, "the function's execution policy dropped the call");
        rove_release(kept_);
    }
    void operator()() {
        rove_here* here = std::exchange(kept_, nullptr);
        if (here == nullptr) return;
        detail::guarded(here, [&] { body_(here, payload_.data(), payload_.size()); });
        rove_release(here);
    }

private:
    // Copied before the call is kept: where there is no memory for it the call is still its function's, and fails.
    std::vector<std::byte> payload_;
    rove_here* kept_;
    Body body_;
};

}  // namespace rove
