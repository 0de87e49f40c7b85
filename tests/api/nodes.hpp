// Two nodes in this process, one of which serves: for tests of the typed API on each fabric.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "../node/fabrics.hpp"
#include "../node/process.hpp"
#include "error_of.hpp"
#include "rove/rove.hpp"

namespace rove::test {

struct Table {
    std::vector<int> values{1, 2, 3, 4, 5, 6, 7};
};

class OnFabrics : public testing::TestWithParam<TestFabric> {
protected:
    [[nodiscard]] NodeOptions options(bool listens = false) const {
        (void)scratch();  // the tests' own cookie
        NodeOptions options;
        options.fabric = GetParam();
        options.log = "error";
        options.connect_timeout = std::chrono::seconds(20);  // a busy machine stops for more than 5 s at times
        if (listens) options.listen = "127.0.0.1:0";
        return options;
    }
    // A node over the fabric that the test runs on.
    [[nodiscard]] static Node started(const NodeOptions& options) { return GetParam().start(options); }
    void SetUp() override {
        server_ = std::make_unique<Node>(started(options(true)));
        server_->share("table", table_);
        node_ = std::make_unique<Node>(started(options()));
        peer_ = std::make_unique<Peer>(node_->connect(server_->address()));
    }
    void TearDown() override {
        peer_.reset();
        node_.reset();
        server_.reset();
    }
    [[nodiscard]] const Peer& peer() const { return *peer_; }

    Table table_;
    std::unique_ptr<Node> server_, node_;
    std::unique_ptr<Peer> peer_;
};

inline std::atomic<bool> may_answer{false};
inline void answer_when_told() {
    while (!may_answer) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
// Runs the callback in a thread of the node's own. That of a call that has ended already runs in the thread that gives it.
template <typename Callback>
void call_back(const Peer& peer, Callback callback) {
    may_answer = false;
    peer.async(fn<answer_when_told>).then([callback](const Call<void>& /*ended*/) { callback(); });
    may_answer = true;
}

}  // namespace rove::test
