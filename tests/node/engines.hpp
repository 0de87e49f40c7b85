// Engines without a node around them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "fabric/loopback/loopback.hpp"
#include "node/built_ins.hpp"
#include "node/core.hpp"
#include "process.hpp"

namespace rove::test {

// The state of one node, and its engines. `node` lends functions something to ask where they run.
class Engines {
public:
    // `most`: how many engines it may have.
    Engines(NodeCore& node, NodeId id, code::CodeOptions code = {}, unsigned most = 2)
        : node_(node),
          id_(id),
          state_(most, options_.buffer_bytes_max),
          cache_(std::make_unique<code::CodeCache>(std::move(code))) {
        state_.ids.set_identity(id, 1);
    }
    ~Engines() {
        for (const auto& engine : all_) {
            if (!engine->is_stopped()) EXPECT_TRUE(engine->end());
            engine->drop_links();
        }
    }
    Engines(const Engines&) = delete;

    Engine& add(const std::shared_ptr<fabric::Exchange>& exchange) {
        all_.push_back(std::make_unique<Engine>(
            Engine::Beside{.node = node_,
                           .options = options_,
                           .cache = cache_,
                           .shared = state_,
                           .index = static_cast<unsigned>(all_.size()),
                           .free_memory = built_ins().free,
                           .meet = [](const std::string&, const std::shared_ptr<PeerState>&,
                                      Deadline) -> Result<std::shared_ptr<PeerState>> {
                               return fail(ErrorCode::disconnected, "the test meets nobody again");
                           },
                           .name = [] { return std::string("the test's node"); }}));
        all_.back()->use_code();
        EXPECT_TRUE(all_.back()->open(value_or_throw(fabric::LoopbackFabric::open(exchange))));
        return *all_.back();
    }
    [[nodiscard]] NodeId id() const { return id_; }
    [[nodiscard]] SharedState& state() { return state_; }
    [[nodiscard]] code::CodeCache& cache() { return *cache_; }

private:
    NodeCore& node_;
    const NodeId id_;
    NodeOptions options_;
    SharedState state_;
    std::unique_ptr<code::CodeCache> cache_;
    std::vector<std::unique_ptr<Engine>> all_;  // they use all of the above
};

// Two engines that have met: the peer that each has for the other's node.
struct Met {
    std::shared_ptr<PeerState> second, first;
};
inline Met meet(Engine& first, NodeId first_id, Engine& second, NodeId second_id) {
    auto ours = value_or_throw(first.fabric().open_link()), theirs = value_or_throw(second.fabric().open_link());
    value_or_throw(first.fabric().connect(*ours, theirs->offer()));
    value_or_throw(second.fabric().connect(*theirs, ours->offer()));
    const auto met = [](NodeId id, NodeId my_id) {
        return Meeting{.peer = {.id = id, .my_id = my_id, .member = !is_client(id) && !is_client(my_id)},
                       .resident = {},
                       .hang_up = [](const Error&) {}};
    };
    auto there = value_or_throw(first.peers().adopt(met(second_id, first_id), std::move(ours), nullptr));
    auto here = value_or_throw(second.peers().adopt(met(first_id, second_id), std::move(theirs), nullptr));
    return {there.peer, here.peer};
}

// A node that lends functions of engines something to ask where they run.
inline std::shared_ptr<NodeCore> lent_node(NodeOptions options = {}) {
    (void)scratch();  // the tests' own cookie
    options.log = "error";
    return value_or_throw(NodeCore::create(std::move(options)));
}

}  // namespace rove::test
