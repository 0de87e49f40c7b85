// Frames as a peer may write them that keeps to no rule. Only for nodes without a thread of their own, between calls. And a peer of that
// kind beside honest ones.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>

#include "../api/nodes.hpp"
#include "api/access.hpp"
#include "engine_view.hpp"
#include "node/core.hpp"
#include "peer/peer_state.hpp"
#include "rove/rove.hpp"

namespace rove::test {

template <typename T>
Bytes raw(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

// False: the mailbox has no room now.
inline bool try_write_frame(const Peer& peer, fabric::Traffic traffic, wire::FrameHeader header, Bytes extra,
                            Bytes payload = {}) {
    const auto core = detail::Inside::core(peer);
    Engine& engine = core->first_engine();
    {
        const Hold hold(engine.lock());  // it may have a thread that leads
        PeerState& state = *detail::Inside::state(peer);
        if (header.node == kNoNode) header.node = state.my_id();
        header.extra_bytes = static_cast<std::uint16_t>(extra.size());
        header.body_bytes = static_cast<std::uint32_t>(extra.size() + payload.size());
        std::byte* frame = state.link()->reserve(traffic, wire::kHeaderBytes + header.body_bytes);
        if (frame == nullptr) return false;
        std::copy(extra.begin(), extra.end(), frame + wire::kHeaderBytes);
        std::copy(payload.begin(), payload.end(), frame + wire::kHeaderBytes + extra.size());
        state.link()->publish(traffic, header);
    }
    EngineView::carry(engine);
    return true;
}

inline void write_frame(const Peer& peer, fabric::Traffic traffic, wire::FrameHeader header, Bytes extra,
                        Bytes payload = {}) {
    ASSERT_TRUE(try_write_frame(peer, traffic, header, extra, payload)) << "the mailbox is full";
}

inline int add(int a, int b) {
    return a + b;
}
inline void nothing() {}

// A server, an honest client of it (peer()), and an enemy that has no thread of its own. All three are in this process.
class BesideAnEnemy : public OnFabrics {
protected:
    void SetUp() override {
        OnFabrics::SetUp();
        NodeOptions own = options();
        own.own_thread = false;
        enemy_ = std::make_unique<Node>(started(own));
        link_ = std::make_unique<Peer>(enemy_->connect(server_->address()));
        ASSERT_EQ(link_->sync(fn<add>, 1, 2), 3);
        ASSERT_EQ(peer().sync(fn<add>, 1, 2), 3);
    }
    void TearDown() override {
        link_.reset();
        enemy_.reset();
        OnFabrics::TearDown();
    }
    // After what send_it() writes the server ends the enemy's link, the others' calls go on, and a new meeting is as good as any. (A call
    // that the enemy makes in that time fails, or begins that meeting: the news may come before or after it.)
    template <typename Send>
    void is_cut_off(const std::string& what, const Send& send_it) {
        SCOPED_TRACE(what);
        const std::shared_ptr<fabric::Link> cut = detail::Inside::state(*link_)->link();
        send_it();
        const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (detail::Inside::state(*link_)->link() == cut) {
            ASSERT_LT(std::chrono::steady_clock::now(), patience) << "nobody minds";
            try {
                link_->sync(fn<nothing>);
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), ErrorCode::disconnected) << error.what();
            }
        }
        EXPECT_EQ(peer().sync(fn<add>, 2, 2), 4);
        EXPECT_EQ(link_->sync(fn<add>, 3, 2), 5);
    }
    // The server's handle for a function that takes 8 bytes.
    [[nodiscard]] std::uint32_t handle() const {
        return detail::Inside::state(*link_)->code.bindings.all().front().handle;
    }

    std::unique_ptr<Node> enemy_;
    std::unique_ptr<Peer> link_;
};

}  // namespace rove::test
