// NodeIds: the id of this node among the nodes that joined one another, and the names that it gives to nodes of other clusters. All engines of a
// node share one, because these names do not depend on the engine that has a link.
//
// Threads: any. Invariants: node_count() never shrinks, and no foreign name is given twice.
#pragma once

#include <atomic>

#include "base/ids.hpp"

namespace rove {

class NodeIds {
public:
    [[nodiscard]] NodeId id() const { return id_.load(std::memory_order_relaxed); }
    // Nodes that joined one another, this one included, as far as it knows: it only grows.
    [[nodiscard]] std::uint32_t node_count() const { return node_count_.load(std::memory_order_relaxed); }
    void set_identity(NodeId id, std::uint32_t node_count) {
        id_.store(id, std::memory_order_relaxed);
        set_node_count(node_count);
    }
    void set_node_count(std::uint32_t node_count) {
        std::uint32_t known = this->node_count();
        while (node_count > known && !node_count_.compare_exchange_weak(known, node_count, std::memory_order_relaxed))
            continue;
    }
    // A name that no other node has been given here.
    [[nodiscard]] NodeId new_foreign_name() {
        return kForeignBit | foreign_names_.fetch_add(1, std::memory_order_relaxed);
    }

private:
    std::atomic<NodeId> id_{0};
    std::atomic<std::uint32_t> node_count_{1};
    std::atomic<NodeId> foreign_names_{0};  // given, ever
};

}  // namespace rove
