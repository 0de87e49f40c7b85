// The archive's text on the nodes, as a program that sends no search gets at it.
#pragma once

#include <string>
#include <vector>

#include "rove/rove.hpp"
#include "search.hpp"

namespace archive_walk {

// Memory of a node that holds a copy of its text, for others to read: over shared memory without asking the node.
[[nodiscard]] rove::Buffer<char> readable_text(const rove::Peer& peer);

// Reads some stanzas by functions that are sent: one call to each node that has some of them, all at once.
[[nodiscard]] std::vector<std::string> stanzas_from_there(const rove::PeerGroup& peers, const std::vector<Hit>& hits);
// Reads them from that memory.
[[nodiscard]] std::vector<std::string> stanzas_fetched(const rove::PeerGroup& peers,
                                                       const std::vector<rove::Buffer<char>>& texts,
                                                       const std::vector<Hit>& hits);

}  // namespace archive_walk
