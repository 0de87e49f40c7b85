#include "base/reclaimer.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <vector>

namespace rove {
namespace {

constexpr auto kLimit = std::chrono::seconds(20);

TEST(ReclaimerTest, DoesAllThatItWasGiven) {
    Reclaimer reclaimer;
    constexpr unsigned kMany = 100;
    auto left = std::make_shared<std::atomic<unsigned>>(kMany);
    auto done = std::make_shared<std::promise<void>>();
    for (unsigned i = 0; i < kMany; ++i)
        ASSERT_TRUE(reclaimer.run([left, done] {
            if (--*left == 0) done->set_value();
        }));
    EXPECT_EQ(done->get_future().wait_for(kLimit), std::future_status::ready);
}

TEST(ReclaimerTest, WhatDoesNotEndHoldsUpNothingElse) {
    Reclaimer reclaimer;
    std::promise<void> let;
    const std::shared_future<void> held_up = let.get_future().share();
    for (unsigned i = 0; i + 1 < Reclaimer::kThreadsMax; ++i) ASSERT_TRUE(reclaimer.run([held_up] { held_up.wait(); }));
    for (unsigned i = 0; i < 10; ++i) {
        auto done = std::make_shared<std::promise<void>>();
        ASSERT_TRUE(reclaimer.run([done] { done->set_value(); }));
        EXPECT_EQ(done->get_future().wait_for(kLimit), std::future_status::ready);
    }
    let.set_value();
}

TEST(ReclaimerTest, TakesSoMuchAndNoMoreAndOutlivesItself) {
    std::promise<void> let;
    const std::shared_future<void> held_up = let.get_future().share();
    auto left = std::make_shared<std::atomic<std::size_t>>(Reclaimer::kWaitingMax);
    auto done = std::make_shared<std::promise<void>>();
    {
        Reclaimer reclaimer;
        std::vector<std::future<void>> begun;
        for (unsigned i = 0; i < Reclaimer::kThreadsMax; ++i) {
            auto began = std::make_shared<std::promise<void>>();
            begun.push_back(began->get_future());
            ASSERT_TRUE(reclaimer.run([held_up, began] {
                began->set_value();
                held_up.wait();
            }));
        }
        for (std::future<void>& each : begun) ASSERT_EQ(each.wait_for(kLimit), std::future_status::ready);
        for (std::size_t i = 0; i < Reclaimer::kWaitingMax; ++i)
            ASSERT_TRUE(reclaimer.run([left, done] {
                if (--*left == 0) done->set_value();
            }));
        EXPECT_FALSE(reclaimer.run([] { ADD_FAILURE() << "there was no room for it"; }));
    }
    let.set_value();
    EXPECT_EQ(done->get_future().wait_for(kLimit), std::future_status::ready);
}

}  // namespace
}  // namespace rove
