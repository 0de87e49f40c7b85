// PeerGroup: several peers at once.
//
//   rove::PeerGroup group = node.connect({"127.0.0.1:7400", "127.0.0.1:7401"});
//   std::vector<int> sizes = group.broadcast(rove::fn<size>).get();
//   int total = group.reduce(rove::fn<size>, std::plus<int>()).get();
#pragma once

#include <coroutine>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "rove/call.hpp"
#include "rove/detail/peer_calls.hpp"
#include "rove/detail/throw.hpp"
#include "rove/node.hpp"

namespace rove {

namespace detail {

// The result of PeerGroup::reduce, while its calls are in flight.
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

}  // namespace detail

// Peers in a fixed order. A value: cheap to copy, from any thread.
class PeerGroup {
public:
    PeerGroup() = default;
    explicit PeerGroup(std::vector<Peer> peers) : peers_(std::move(peers)) {}
    [[nodiscard]] std::size_t size() const noexcept { return peers_.size(); }
    // invalid: there is no such peer.
    [[nodiscard]] const Peer& operator[](std::size_t index) const {
        if (index >= peers_.size())
            detail::throw_error(ErrorCode::invalid, "a group of " + std::to_string(peers_.size()) +
                                                        " peers has no peer " + std::to_string(index));
        return peers_[index];
    }
    [[nodiscard]] auto begin() const { return peers_.begin(); }
    [[nodiscard]] auto end() const { return peers_.end(); }

    // Begins the same call on each peer, in their order. Returns Calls<T>. Throws what Peer::async throws; calls begun before are forgotten
    // then.
    template <typename F, typename... Args>
    auto broadcast(const F& function, const Args&... args) const {
        using T = typename decltype(peers_.front().async(function, args...))::Value;
        std::vector<Call<T>> calls;
        calls.reserve(peers_.size());
        for (const Peer& peer : peers_) calls.push_back(peer.async(function, args...));
        return Calls<T>(std::move(calls));
    }
    // broadcast(), with the results joined here by `op`, in the order of the peers: op(op(first, second), third), … Returns an object with
    // get(), which can be awaited. invalid: there are no peers.
    template <typename F, typename Op, typename... Args>
    auto reduce(const F& function, Op op, const Args&... args) const {
        if (peers_.empty()) detail::throw_error(ErrorCode::invalid, "a group of no peers has nothing to reduce");
        auto calls = broadcast(function, args...);
        using T = typename decltype(calls[0].get(), std::type_identity<std::decay_t<decltype(calls[0].get())>>{})::type;
        return detail::Reduction<T, Op>(std::move(calls), std::move(op));
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

}  // namespace rove
