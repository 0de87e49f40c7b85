#include "lifetimes.hpp"

namespace lifetimes {
Objects in_another_file;
std::optional<rove::Node> other_node;
}  // namespace lifetimes
