// Answers of a node itself that are longer than an answer may be. What is enrolled here stays for the process: a program of its own.
#include <gtest/gtest.h>

#include "../api/error_of.hpp"
#include "package/digest.hpp"
#include "process.hpp"
#include "program/residents.hpp"
#include "rove/rove.hpp"

namespace rove::test {
namespace {

void nothing(rove_here* /*here*/, const void* /*payload*/, std::size_t /*size*/) {}

TEST(LongList, OfFunctionsIsAnErrorAndNoEmptyList) {
    const Node server(NodeOptions{.listen = "unix:" + (scratch() / "list.sock").string(), .log = "off"});
    Node client(NodeOptions{.log = "off"});
    const Peer peer = client.connect(server.address());
    const std::size_t before = peer.functions().size();
    const auto enrol = [](const char* name, std::size_t bytes) {
        Residents::add({.id = resident_id({"long list", name}),
                        .name = name,
                        .signature = std::string(bytes, 's'),
                        .entry = &nothing,
                        .built_in = false});
    };
    enrol("short", 1);
    EXPECT_EQ(peer.functions().size(), before + 1);
    enrol("long", ROVE_MESSAGE_BYTES_MAX);
    const Error error = error_of([&] { (void)peer.functions(); });
    EXPECT_EQ(error.code(), ErrorCode::failed);
    EXPECT_NE(error.message().find("are over the"), std::string::npos) << error.message();
}

}  // namespace
}  // namespace rove::test
