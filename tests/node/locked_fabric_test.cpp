// A fabric for threads that have not the engine's lock: LockedFabric beside a fabric that looks whether it is taken.
#include "engine/locked_fabric.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "idle_lead.hpp"

namespace rove::test {
namespace {

// What was asked for, in its order: "name" with the lock, "name without the lock" without.
class Asked {
public:
    explicit Asked(EngineLock& lock) : lock_(lock) {}
    void note(const std::string& what) {
        const bool was_free = lock_.try_lock();
        if (was_free) lock_.unlock();
        all.push_back(what + (was_free ? " without the lock" : ""));
    }
    std::vector<std::string> all;

private:
    EngineLock& lock_;
};

class WatchedLink final : public NoLink {
public:
    explicit WatchedLink(Asked& asked) : asked_(asked) {}
    ~WatchedLink() override { asked_.note("the link's end"); }
    [[nodiscard]] Status connect(Bytes peer_offer) override {
        asked_.note("connect");
        if (as_text(peer_offer) == "good") return {};
        return NoLink::connect(peer_offer);
    }

private:
    Asked& asked_;
};

class WatchedFabric final : public NoFabric {
public:
    explicit WatchedFabric(Asked& asked) : asked_(asked) {}
    [[nodiscard]] Result<std::unique_ptr<fabric::Link>> open_link() override {
        asked_.note("open_link");
        if (links_left_ == 0) return NoFabric::open_link();
        --links_left_;
        return std::make_unique<WatchedLink>(asked_);
    }
    [[nodiscard]] bool has_streams() const override { return true; }
    [[nodiscard]] Result<std::unique_ptr<fabric::Link>> open_stream(int socket,
                                                                    const fabric::StreamKeys& keys) override {
        asked_.note("open_stream " + std::to_string(socket) + ' ' + std::to_string(keys.incoming) + ' ' +
                    std::to_string(keys.outgoing));
        return std::make_unique<WatchedLink>(asked_);
    }

private:
    Asked& asked_;
    unsigned links_left_ = 1;
};

class LockedFabricTest : public testing::Test {
protected:
    // Another thread would wait for ever otherwise.
    void lock_is_free() {
        const bool was_free = idle_.lead.mutex().try_lock();
        EXPECT_TRUE(was_free);
        if (was_free) idle_.lead.mutex().unlock();
    }

    IdleLead idle_;
    Asked asked_{idle_.lead.mutex()};
    std::unique_ptr<fabric::Fabric> fabric_;  // made after what refers to it, as an engine's is
    LockedFabric locked_{idle_.lead, fabric_};
    void SetUp() override { fabric_ = std::make_unique<WatchedFabric>(asked_); }
};

TEST_F(LockedFabricTest, ALinksWholeLifeIsUnderTheLock) {
    auto link = value_or_throw(locked_.open_link());
    lock_is_free();
    EXPECT_TRUE(locked_.connect(*link, as_bytes(std::string_view("good"))));
    lock_is_free();
    locked_.drop(std::move(link));
    lock_is_free();
    EXPECT_EQ(asked_.all, (std::vector<std::string>{"open_link", "connect", "the link's end"}));
}

TEST_F(LockedFabricTest, AStreamIsOpenedUnderTheLockOverThatSocketWithThoseKeys) {
    auto link = value_or_throw(locked_.open_stream(1234, {.incoming = 5, .outgoing = 6}));
    lock_is_free();
    locked_.drop(std::move(link));
    EXPECT_EQ(asked_.all, (std::vector<std::string>{"open_stream 1234 5 6", "the link's end"}));
}

TEST_F(LockedFabricTest, WhatFailsIsSaidAndLeavesTheLockFree) {
    auto link = value_or_throw(locked_.open_link());
    const Status connected = locked_.connect(*link, as_bytes(std::string_view("bad")));
    ASSERT_FALSE(connected);
    EXPECT_EQ(connected.error().message(), "the link goes nowhere");
    lock_is_free();
    const auto second = locked_.open_link();
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), ErrorCode::unsupported);
    lock_is_free();
    locked_.drop(std::move(link));
    locked_.drop(nullptr);  // nobody has a link where it could not be opened
    lock_is_free();
}

TEST_F(LockedFabricTest, WhetherThereAreStreamsIsSaidToWhoHasTheLock) {
    const Hold hold(idle_.lead.mutex());
    EXPECT_TRUE(locked_.has_streams());
}

}  // namespace
}  // namespace rove::test
