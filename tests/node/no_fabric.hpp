// A fabric without links, for parts of a node that only sleep over one.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "fabric/fabric.hpp"

namespace rove::test {

class NoFabric : public fabric::Fabric {
public:
    [[nodiscard]] std::string_view name() const override { return "none"; }
    [[nodiscard]] Result<std::unique_ptr<fabric::Link>> open_link() override {
        return fail(ErrorCode::unsupported, "there are no links");
    }
    unsigned progress() override { return 0; }
    [[nodiscard]] bool needs_progress() const override { return false; }
    [[nodiscard]] std::vector<int> descriptors() const override { return {}; }
    [[nodiscard]] bool announce_sleep() override {
        ++sleeps;
        return true;
    }
    void end_sleep() override {}
    std::atomic<int> sleeps{0};
};

}  // namespace rove::test
