// What the tests of gathering share: the values that they send, and the node that serves them.
#pragma once

#include <atomic>

#include "engine/here.hpp"
#include "hand_made.hpp"
#include "known_values.hpp"

namespace rove::test {

inline std::atomic<NodeCore*> core_of_server{nullptr};
inline void note_server(Here& here) {
    core_of_server = &here.raw()->node();
}

}  // namespace rove::test
