// A lead whose work is nothing, and what runs and waits beside it: for parts of a node by themselves.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lead/runner.hpp"
#include "no_fabric.hpp"
#include "soon.hpp"

namespace rove::test {

class IdleLead final : public Lead::Duties {
public:
    // `cache`: of the functions that run; without one only callbacks do.
    explicit IdleLead(unsigned threads = 2, const std::unique_ptr<code::CodeCache>& cache = kNoCache)
        : options_{.threads = threads}, cache_(cache) {
        value_or_throw(lead.open(fabric_, Waiting::balanced, threads));
        if (!cache) return;
        const Hold hold(lead.mutex());
        runner.code().take();
    }
    ~IdleLead() {
        if (!threads_ended_) EXPECT_FALSE(end_threads());
    }
    IdleLead(const IdleLead&) = delete;

    static std::string name() { return "node 0"; }
    // Threads of the node's own, so many, which lead while nobody else does.
    void start_threads(unsigned count) {
        const Hold hold(lead.mutex());
        value_or_throw(own_threads.start(count));
    }
    // Whether a thread was left, which is in a function for ever.
    [[nodiscard]] bool end_threads() {
        std::vector<std::thread> ended;
        bool leaves_some = false;
        {
            Hold hold(lead.mutex());
            lead.stop();
            lead.wake();
            lead.wait_briefly(hold.lock(), Clock::now() + std::chrono::seconds(20),
                              [this]() REQUIRES(lock_of<EngineLock>) { return own_threads.live() == 0; });
            EXPECT_EQ(own_threads.live(), 0U);
            leaves_some = own_threads.part_with_all(ended);
        }
        for (std::thread& each : ended) each.join();
        threads_ended_ = true;
        return leaves_some;
    }
    // By one of these threads, beside another one that can take the lead over. It has begun when this returns.
    void have_begun(const std::function<void(Lead::Turn&)>& work) {
        const auto begun = std::make_shared<std::atomic<bool>>(false);
        const auto once = [this, begun, work](Lead::Turn& turn) REQUIRES(lock_of<EngineLock>) {
            if (!lead.has_followers()) return;
            *begun = true;
            work(turn);
        };
        EXPECT_TRUE(soon([&] {
            const Hold hold(lead.mutex());
            if (!*begun && !work_once) work_once = once;
            lead.wake();
            return begun->load();
        }));
    }
    template <typename Ask>
    auto under_lock(const Ask& ask) {
        const Hold hold(lead.mutex());
        return ask();
    }

    Lead lead{*this};

private:
    NoFabric fabric_;
    NodeOptions options_;
    inline static const std::unique_ptr<code::CodeCache> kNoCache;
    const std::unique_ptr<code::CodeCache>& cache_;
    bool threads_ended_ = false;
    char no_engine_ = 0;  // nothing that is tested with this asks for it

public:
    OwnThreads own_threads{lead, &IdleLead::name};

    Runner runner{{.engine = reinterpret_cast<Engine&>(no_engine_),
                   .options = options_,
                   .lead = lead,
                   .duties = *this,
                   .own_threads = own_threads,
                   .cache = cache_}};
    std::function<void(Lead::Turn&)> work_once;  // by whoever leads next

private:
    unsigned work(Lead::Turn& turn) override {
        lead.wakes().begin_work();
        if (!work_once) return 0;
        std::exchange(work_once, nullptr)(turn);
        return 1;
    }
    void await_signals(Lead::Turn& turn) noexcept override { turn.drop_awaited(); }
    [[nodiscard]] bool waits_for_room() const override { return false; }
    [[nodiscard]] Lead::Rest rest(const Lead::Turn& /*turn*/) override { return {.pending = work_once != nullptr}; }
    void woke_up() override {}
    [[nodiscard]] bool runs_function() const override REQUIRES(lock_of<EngineLock>) {
        return runner.leading() != nullptr;
    }
    void take_function_away() noexcept override REQUIRES(lock_of<EngineLock>) { runner.take_away(); }
    void follower_came() override {}
};

}  // namespace rove::test
