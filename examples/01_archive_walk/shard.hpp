// The interface, for functions in C++ that are sent. The program itself has no shard: it is linked without one.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "shard.h"

#pragma weak shard_text

namespace archive_walk {

// Where this runs: the node's stanzas, whole ones. Throws where the interface is not loaded.
inline std::string_view text_of_node() {
    if (shard_text == nullptr) throw std::runtime_error("this node has no shard; load shard.rove first");
    std::uint64_t bytes = 0;
    const char* text = shard_text(&bytes);
    return {text, bytes};
}

}  // namespace archive_walk
