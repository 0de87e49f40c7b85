// The fabrics that the behaviour tests run on, and two ends that have met over one of them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "../seed.hpp"
#include "fabric/fabric.hpp"
#include "open_fabric.hpp"

namespace rove::fabric {

struct TestFabric {
    std::string name;
    // Two fabrics whose links can meet.
    std::function<std::pair<std::unique_ptr<Fabric>, std::unique_ptr<Fabric>>()> open;
    // The two ends of a connected socket, where links are opened over one; else links are opened and exchange offers.
    std::function<std::array<int, 2>()> connect = nullptr;
    // Whether a link's transport says that the peer's end of it has gone. Of others only the control connection may.
    bool tells_of_the_end = false;
    // Whether a link that is quiet gives pages of its rings back to the kernel.
    bool gives_memory_back = false;
};
[[nodiscard]] const std::vector<TestFabric>& test_fabrics();
// Those whose links can be cold: all but UCX's.
[[nodiscard]] std::vector<TestFabric> fabrics_with_cold_links();

inline void PrintTo(const TestFabric& fabric, std::ostream* out) {
    *out << fabric.name;
}

// Both ends are non-blocking.
[[nodiscard]] std::array<int, 2> socket_pair();
[[nodiscard]] std::array<int, 2> tcp_pair();

// Payload that can be told from any other: made from its number, and full of words that look like the signals of frames
// to come, so that a reader that believes old bytes will be found out.
void fill(std::span<std::byte> payload, std::uint64_t number);
[[nodiscard]] bool is_filled(Bytes payload, std::uint64_t number);

// The two ends of one link.
struct Joined {
    std::unique_ptr<Link> a, b;
};

class TwoFabrics : public testing::TestWithParam<TestFabric> {
protected:
    void SetUp() override;
    [[nodiscard]] Joined join();
    void progress() {
        if (fabric_a) fabric_a->progress();
        if (fabric_b) fabric_b->progress();
    }
    // Moves both sides until `done`, but not for ever.
    [[nodiscard]] bool until(const std::function<bool()>& done);

    std::unique_ptr<Fabric> fabric_a, fabric_b;
    std::mt19937_64 random{test::seed()};
};

// Sends frame `number` with a payload of that many bytes; false when there is no credit now.
[[nodiscard]] bool send(Link& link, Traffic traffic, std::uint64_t number, std::size_t payload_bytes);
// Takes the next frame if it is there, and checks that it is number `number`, whole.
[[nodiscard]] bool take(Link& link, Traffic traffic, std::uint64_t number);

}  // namespace rove::fabric
