// A lead whose work is nothing, and what runs and waits beside it: for parts of a node by themselves.
#pragma once

#include <memory>
#include <string>

#include "lead/runner.hpp"
#include "no_fabric.hpp"

namespace rove::test {

class IdleLead : public Lead::Duties {
public:
    explicit IdleLead(unsigned threads = 2) : options_{.threads = threads} {
        value_or_throw(lead.open(fabric_, Waiting::balanced, threads));
    }

    static std::string name() { return "node 0"; }

    Lead lead{*this};

private:
    NoFabric fabric_;
    NodeOptions options_;
    const std::unique_ptr<code::CodeCache> no_cache_;
    char no_engine_ = 0;  // nothing that is tested with this asks for it

public:
    OwnThreads own_threads{lead, &IdleLead::name};

    Runner runner{{.engine = reinterpret_cast<Engine&>(no_engine_),
                   .options = options_,
                   .lead = lead,
                   .duties = *this,
                   .own_threads = own_threads,
                   .cache = no_cache_}};
    std::function<void(Lead::Turn&)> work_once;  // by whoever leads next

private:
    unsigned work(Lead::Turn& turn) override {
        lead.wakes().begin_work();
        if (!work_once) return 0;
        std::exchange(work_once, nullptr)(turn);
        return 1;
    }
    void watch(Lead::Turn& turn) noexcept override { turn.watch.clear(); }
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
