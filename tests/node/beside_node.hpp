// A client without a thread of its own, beside a node that serves: for tests on each fabric.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "fabrics.hpp"
#include "process.hpp"
#include "rove/rove.hpp"

namespace rove::test {

// Options of a node that serves, as arguments of `rove node` and as NodeOptions.
struct ServerOptions {
    std::vector<std::string> command = {};
    std::function<void(NodeOptions&)> set = [](NodeOptions&) {};
};

// A node that serves: a process of its own where the fabric joins processes, else in this one.
class Server {
public:
    explicit Server(const TestFabric& fabric, const ServerOptions& options = {}) {
        if (fabric.joins_processes()) {
            std::vector<std::string> command = options.command;
            if (fabric.engines > 1) command.insert(command.end(), {"--engines", std::to_string(fabric.engines)});
            process_.emplace(command);
            return;
        }
        NodeOptions here{.listen = "127.0.0.1:0"};
        options.set(here);
        node_.emplace(fabric.start(here));
    }
    [[nodiscard]] const std::string& address() const { return process_ ? process_->address() : node_->address(); }
    [[nodiscard]] std::string log() const { return process_->log(); }  // of a process

private:
    std::optional<NodeProcess> process_;
    std::optional<Node> node_;
};

class BesideANode : public testing::TestWithParam<TestFabric> {
protected:
    void SetUp() override {
        (void)scratch();
        options_.fabric = GetParam();
        options_.own_thread = false;
        node_.emplace(started(options_));
        server_.emplace(GetParam());
        peer_.emplace(node_->connect(server_->address()));
        package_.emplace(Package::open(package("basics.c")));
    }
    // A node over the fabric that the test runs on.
    [[nodiscard]] static Node started(const NodeOptions& options) { return GetParam().start(options); }

    NodeOptions options_;
    std::optional<Node> node_;
    std::optional<Server> server_;
    std::optional<Peer> peer_;
    std::optional<Package> package_;
};

}  // namespace rove::test
