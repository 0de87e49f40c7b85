// Peer::async, sync and post, which rove/node.hpp declares.
#pragma once

#include <cstdint>
#include <span>

#include "rove/call.hpp"
#include "rove/detail/send.hpp"
#include "rove/node.hpp"

namespace rove {

namespace detail {

// A call from a program's own node. Defined in librove (src/api/own_call.cpp).
struct HowToCall {
    bool reply;
    Limits limits;
    bool exactly = false;  // rove::exactly
};
rove_pending begin_call(const Peer& peer, const Callable& callable, std::span<const rove_piece> payload, HowToCall how);

struct FromProgram {
    const Peer& peer;
    HowToCall how;
    [[nodiscard]] FromProgram exactly() const { return {peer, {how.reply, how.limits, true}}; }
    template <typename O, typename R, typename Find>
    auto begin(const Find& find, std::span<const rove_piece> payload) const {
        const rove_pending pending = begin_call(peer, *find(), payload, how);
        return Access::call<R>(pending);
    }
};
}  // namespace detail

template <typename F, typename... Args>
    requires(!detail::kHasOwnOverload<F>)
auto Peer::async(const F& function, const Args&... args) const {
    return async(Within{limits_.time_ns}, function, args...);
}
template <typename F, typename... Args>
auto Peer::async(Within limit, const F& function, const Args&... args) const {
    return detail::offload<detail::InPlace, "">(detail::FromProgram{*this, {true, limits_.with(limit)}}, function,
                                                args...);
}
template <typename F, typename... Args>
    requires(!detail::kHasOwnOverload<F>)
auto Peer::sync(const F& function, const Args&... args) const {
    return async(function, args...).get();
}
template <typename F, typename... Args>
auto Peer::sync(Within limit, const F& function, const Args&... args) const {
    return async(limit, function, args...).get();
}
template <typename F, typename... Args>
    requires(!detail::kHasOwnOverload<F>)
void Peer::post(const F& function, const Args&... args) const {
    post(Within{limits_.time_ns}, function, args...);
}
template <typename F, typename... Args>
    requires(!detail::kHasOwnOverload<F>)
void Peer::post(Within limit, const F& function, const Args&... args) const {
    (void)detail::offload<detail::InPlace, "">(detail::FromProgram{*this, {false, limits_.with(limit)}}, function,
                                               args...);
}

}  // namespace rove
