// A client without a thread of its own, beside a node that is a process: for tests on each fabric between two processes.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "process.hpp"
#include "rove/rove.hpp"

namespace rove::test {

class BesideANode : public testing::TestWithParam<FabricChoice> {
protected:
    void SetUp() override {
        (void)scratch();
        options_.fabric = GetParam();
        options_.own_thread = false;
        node_.emplace(options_);
        server_.emplace();
        peer_.emplace(node_->connect(server_->address()));
        package_.emplace(Package::open(package("basics.c")));
    }

    NodeOptions options_;
    std::optional<Node> node_;
    std::optional<NodeProcess> server_;
    std::optional<Peer> peer_;
    std::optional<Package> package_;
};

}  // namespace rove::test
