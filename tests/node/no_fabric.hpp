// A fabric without links, for parts of a node that only sleep over one; and a link that goes nowhere, for those that only look at what
// becomes of it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/mapped_region.hpp"

namespace rove::test {

class NoFabric : public fabric::Fabric {
public:
    [[nodiscard]] std::string_view name() const override { return "none"; }
    [[nodiscard]] Result<std::unique_ptr<fabric::Link>> open_link() override {
        return fail(ErrorCode::unsupported, "there are no links");
    }
    unsigned progress() override {
        ++looks;
        return 0;
    }
    [[nodiscard]] bool needs_progress() const override { return is_asked; }
    [[nodiscard]] std::vector<int> descriptors() const override { return {}; }
    [[nodiscard]] bool announce_sleep() override {
        ++sleeps;
        return true;
    }
    void end_sleep() override {}
    std::atomic<int> sleeps{0};
    bool is_asked = false;  // by those that look for what has come
    int looks = 0;
};

class NoLink : public fabric::Link {
public:
    NoLink() {
        for (const fabric::Traffic traffic : {fabric::Traffic::calls, fabric::Traffic::prompt})
            incoming_[fabric::index_of(traffic)] = fabric::RingReader(region_->rings[fabric::index_of(traffic)], 1);
    }
    [[nodiscard]] const ByteBuffer& offer() const override { return offer_; }
    [[nodiscard]] Status connect(Bytes /*peer_offer*/) override {
        return fail(ErrorCode::unsupported, "the link goes nowhere");
    }
    [[nodiscard]] fabric::Lane lane() const override { return fabric::Lane::none; }
    // As where a socket is closed at its other end.
    void end_transport(std::string_view why) { end_with(Error(ErrorCode::disconnected, std::string(why))); }

private:
    void transmit(fabric::Traffic /*traffic*/, std::uint64_t /*position*/, std::size_t /*bytes*/) override {}
    void transmit_credit(fabric::Traffic /*traffic*/) override {}
    void wake_peer() override {}
    ByteBuffer offer_;
    const fabric::MappedRegion region_ = fabric::map_private_region();  // in which nothing arrives
};

}  // namespace rove::test
