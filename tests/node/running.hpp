// A Runner beside a lead whose work is what a test gives it, and functions that run there.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "idle_lead.hpp"
#include "package/digest.hpp"
#include "soon.hpp"

namespace rove::test {

class Running : public testing::Test {
protected:
    code::Function& function(const std::string& name) {
        return *value_or_throw(
            cache_->add_resident(resident_id({"Running", name}), name, [](rove_here*, const void*, std::size_t) {}));
    }
    // This thread leads, and is in that run while `code` does what it does. Precondition: nobody leads.
    template <typename Code>
    void run(rove::Run& run, const Code& code) {
        Hold hold(lead_.mutex());
        Lead::Turn turn{.lock = hold.lock(), .baton = {.own = false}};
        lead_.take(turn);
        run_in(turn, run, code);
        if (!lead_.lost(turn)) lead_.give(turn);
    }
    // The same in a turn at the lead.
    template <typename Code>
    void run_in(Lead::Turn& turn, rove::Run& run, const Code& code) REQUIRES(lock_of<EngineLock>) {
        runner_.begin(run, turn);
        runner_.outside(run, turn, code);
    }
    // By a thread of the node's own, beside another one that can take the lead over.
    void have_led(const std::function<void(Lead::Turn&)>& work) {
        std::atomic<bool> done{false};
        idle_.have_begun([&](Lead::Turn& turn) {
            work(turn);
            done = true;
        });
        ASSERT_TRUE(soon([&] { return done.load(); }));
    }
    // Begins a run that counts as long at once. It has no thread.
    void set_aside(Lead::Turn& turn, rove::Run& run) REQUIRES(lock_of<EngineLock>) {
        runner_.begin(run, turn);
        runner_.set_aside(Clock::now());
    }
    static Deadline late() { return Clock::now() - std::chrono::seconds(1); }
    static Deadline patience() { return Clock::now() + std::chrono::seconds(20); }
    // This thread, until whoever leads has done `work`: mostly itself.
    bool wait_for(const std::function<void(Lead::Turn&)>& work, Runner::Manner manner = {}) {
        Hold hold(lead_.mutex());
        bool done = false;
        idle_.work_once = [&](Lead::Turn& turn) {
            work(turn);
            done = true;
        };
        return runner_.wait_until(hold.lock(), patience(), [&] { return done; }, manner);
    }
    [[nodiscard]] bool is_among_long(const rove::Run& run) REQUIRES(lock_of<EngineLock>) {
        for (const rove::Run& each : runner_.long_runs())
            if (&each == &run) return true;
        return false;
    }

    const std::unique_ptr<code::CodeCache> cache_ = std::make_unique<code::CodeCache>(code::CodeOptions{});
    IdleLead idle_{2, cache_};
    Lead& lead_ = idle_.lead;
    Runner& runner_ = idle_.runner;
};

}  // namespace rove::test
