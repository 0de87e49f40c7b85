// Peers, and PeerGroup: several at once.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "rove/call.hpp"
#include "rove/node.hpp"
#include "rove/offload.hpp"

namespace rove {

namespace detail {

// From a program's own node (librove, offload.cpp).
struct HowToCall {
    bool reply;
    std::int64_t limit_ns;  // for the sending, too; negative: none
    bool exactly = false;   // what this program has, whatever the peer's has
};
rove_pending begin_call(const Peer& peer, const Callable& callable, std::span<const rove_piece> payload, HowToCall how);

struct FromProgram {
    const Peer& peer;
    HowToCall how;
    [[nodiscard]] FromProgram exactly() const { return {peer, {how.reply, how.limit_ns, true}}; }
    template <typename O, typename R, typename Find>
    auto begin(const Find& find, std::span<const rove_piece> payload) const {
        const rove_pending pending = begin_call(peer, *find(), payload, how);
        return Call<R>(pending);
    }
};
template <typename Policy, FixedText kName, typename F>
void enrol() {
    using W = Wrapping<F>;
    if constexpr (W::kKind == 1) {
        enrol<typename W::Policy, kName, decltype(F::function)>();
    } else if constexpr (W::kKind == 2) {
        enrol<Policy, W::kName, decltype(F::function)>();
    } else if constexpr (W::kKind == 4) {
        enrol<Policy, kName, decltype(F::function)>();
    } else {
        using Signature = typename decltype(signature_of<F>())::type;
        if constexpr (is_fine<Signature>()) {
            using R = typename Signature::Result;
            using Shape = ValuesOf<typename Signature::Parameters>;
            (void)callable<kName, typename Shape::template Code<F, Policy, R>, F, R, typename Shape::type>();
        }
    }
}

}  // namespace detail

template <typename F, typename... Args>
    requires(!kIsMessage<F>)
auto Peer::async(const F& function, const Args&... args) const {
    return async(Within{limit_ns_}, function, args...);
}
template <typename F, typename... Args>
auto Peer::async(Within limit, const F& function, const Args&... args) const {
    return detail::offload<InPlace, "">(detail::FromProgram{*this, {true, limit.ns}}, function, args...);
}
template <typename F, typename... Args>
    requires(!kIsMessage<F>)
auto Peer::sync(const F& function, const Args&... args) const {
    return async(function, args...).get();
}
template <typename F, typename... Args>
auto Peer::sync(Within limit, const F& function, const Args&... args) const {
    return async(limit, function, args...).get();
}
template <typename F, typename... Args>
    requires(!kIsMessage<F>)
void Peer::post(const F& function, const Args&... args) const {
    post(Within{limit_ns_}, function, args...);
}
template <typename F, typename... Args>
    requires(!kIsMessage<F>)
void Peer::post(Within limit, const F& function, const Args&... args) const {
    (void)detail::offload<InPlace, "">(detail::FromProgram{*this, {false, limit.ns}}, function, args...);
}

// Results that are joined, in the order of the peers, as they are taken: op(op(first, second), third), …
template <typename T, typename Op>
class [[nodiscard]] Reduction {
public:
    Reduction(Calls<T> calls, Op op) : calls_(std::move(calls)), op_(std::move(op)) {}
    T get() { return join(calls_.get()); }
    [[nodiscard]] bool await_ready() const { return calls_.await_ready(); }
    template <typename Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiting) {
        return calls_.await_suspend(waiting);
    }
    T await_resume() { return join(calls_.await_resume()); }

private:
    T join(std::vector<T> results) {
        T joined = std::move(results.front());
        for (std::size_t i = 1; i < results.size(); ++i) joined = op_(std::move(joined), std::move(results[i]));
        return joined;
    }
    Calls<T> calls_;
    Op op_;
};

class PeerGroup {
public:
    PeerGroup() = default;
    explicit PeerGroup(std::vector<Peer> peers) : peers_(std::move(peers)) {}
    [[nodiscard]] std::size_t size() const noexcept { return peers_.size(); }
    // invalid: there is no such peer.
    [[nodiscard]] const Peer& operator[](std::size_t index) const {
        if (index >= peers_.size())
            throw_error(ErrorCode::invalid,
                        "a group of " + std::to_string(peers_.size()) + " peers has no peer " + std::to_string(index));
        return peers_[index];
    }
    [[nodiscard]] auto begin() const { return peers_.begin(); }
    [[nodiscard]] auto end() const { return peers_.end(); }

    // The same call on each.
    template <typename F, typename... Args>
    auto broadcast(const F& function, const Args&... args) const {
        using T = typename decltype(peers_.front().async(function, args...))::Value;
        std::vector<Call<T>> calls;
        calls.reserve(peers_.size());
        for (const Peer& peer : peers_) calls.push_back(peer.async(function, args...));
        return Calls<T>(std::move(calls));
    }
    // The same, and the results joined here. invalid: there are no peers.
    template <typename F, typename Op, typename... Args>
    auto reduce(const F& function, Op op, const Args&... args) const {
        if (peers_.empty()) throw_error(ErrorCode::invalid, "a group of no peers has nothing to reduce");
        auto calls = broadcast(function, args...);
        using T = typename decltype(calls[0].get(), std::type_identity<std::decay_t<decltype(calls[0].get())>>{})::type;
        return Reduction<T, Op>(std::move(calls), std::move(op));
    }

private:
    std::vector<Peer> peers_;
};

inline PeerGroup Node::connect(std::initializer_list<std::string_view> addresses) {
    std::vector<Peer> peers;
    for (const std::string_view address : addresses) peers.push_back(connect(address));
    return PeerGroup(std::move(peers));
}
inline PeerGroup Node::connect(const std::vector<std::string>& addresses) {
    std::vector<Peer> peers;
    for (const std::string& address : addresses) peers.push_back(connect(address));
    return PeerGroup(std::move(peers));
}

// Has functions compiled into this program that only others call: rove::offer(rove::fn<f>, rove::fn<g>). Not for functions
// with `auto` parameters, which are many.
template <typename... Fs>
void offer(const Fs&... /*functions*/) {
    (detail::enrol<InPlace, "", Fs>(), ...);
}

}  // namespace rove
