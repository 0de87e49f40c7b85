#include "lifetimes.hpp"

namespace lifetimes {
Objects before_node;
std::optional<rove::Node> node;
Objects after_node;
}  // namespace lifetimes
