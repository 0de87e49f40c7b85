// The walk's client: fills the shards, sends the walk, and does the same walk by fetching what it needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "archive.hpp"
#include "rove/rove.hpp"

namespace archive_walk {

// What something took.
struct Cost {
    double microseconds = 0;
    unsigned calls = 0;            // that the client made
    unsigned hops = 0;             // from node to node
    std::uint64_t code_bytes = 0;  // that the client sent; nodes pass code on among themselves
    std::uint64_t data_bytes = 0;  // to and from the client: its frames, headers included, and the replies' payloads
    std::uint64_t node_bytes = 0;  // payloads from node to node
};

struct Walked {
    Closure closure;
    Cost cost;
};

// Links to nodes that have joined one another. Throws rove::Error where a node cannot be reached or a call fails.
class Cluster {
public:
    // Connects to each address; peers() is then in the order of the nodes' ids.
    Cluster(rove::Node& node, const std::vector<std::string>& addresses);

    [[nodiscard]] const std::vector<rove::Peer>& peers() const { return peers_; }
    // Loads the interface on each, and waits until every node knows of all the others.
    Cost load(const rove::Package& interface, const rove::Entry& roll_call) const;
    Cost fill(const rove::Entry& fill, const Graph& graph) const;
    // Gives each node its part of the text.
    Cost keep_text(const rove::Entry& keep_text, const std::vector<std::string_view>& parts) const;

    // One call: the function travels, and its answer is sent from the node where it ends.
    [[nodiscard]] Walked travel(const rove::Entry& walk, Vertex start) const;
    // The same walk by fetching the adjacency lists of each level, in the kindest way: one call for each node and
    // level, all nodes at once.
    [[nodiscard]] Walked fetch(const rove::Entry& list, Vertex start, std::uint32_t kinds, std::size_t vertices) const;

private:
    class Meter;
    void wait_until_met(const rove::Entry& roll_call) const;
    std::vector<rove::Peer> peers_;
};

}  // namespace archive_walk
