// Host: the node, as its control plane sees it.
#pragma once

#include <functional>
#include <string>

#include "engine/locked_fabric.hpp"
#include "engine/node_functions.hpp"
#include "engine/peers.hpp"

namespace rove::control {

// All of it outlives the control plane.
struct Host {
    const NodeOptions& options;
    Routes& routes;
    Peers& peers;
    LockedFabric& fabric;
    const NodeFunctions& functions;
    std::function<std::string()> name;   // for messages
    std::function<void()> every_second;  // what else is to be looked at now and then
};

}  // namespace rove::control
