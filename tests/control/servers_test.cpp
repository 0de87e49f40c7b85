// Nodes of which this one is a client, by address.
#include "control/servers.hpp"

#include <gtest/gtest.h>

namespace rove::test {
namespace {

TEST(Servers, AreFoundWhileSomebodyHasThem) {
    std::size_t bytes = 0;
    auto first = std::make_shared<PeerState>(bytes), second = std::make_shared<PeerState>(bytes);
    control::Servers servers;
    EXPECT_EQ(servers.at("a"), nullptr);
    servers.met("a", first);
    EXPECT_EQ(servers.at("a"), first);
    servers.met("a", second);
    EXPECT_EQ(servers.at("a"), second) << "it has taken the other's place";
    servers.met("b", first);
    second.reset();
    EXPECT_EQ(servers.at("a"), nullptr);
    servers.met("c", first);
    EXPECT_EQ(servers.size(), 2U) << "a peer that nobody has any more is forgotten";
}

}  // namespace
}  // namespace rove::test
