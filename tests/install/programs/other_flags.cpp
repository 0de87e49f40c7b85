// A program with fmt, Asio and JSON of its own, of other flags than librove's: both sides' copies stay apart.
#define FMT_HEADER_ONLY 1
#define JSON_DIAGNOSTICS 1  // another layout of every JSON value
#define ASIO_STANDALONE 1
#define ASIO_DISABLE_THREADS 1
#define ASIO_HAS_STD_STRING_VIEW 1

#include <fmt/format.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "rove/rove.hpp"

int multiply(int a, int b) {
    return a * b;
}

int main(int /*count*/, char** arguments) {
    asio::io_context own;
    int ran = 0;
    asio::post(own, [&] { ++ran; });
    nlohmann::json json{{"factors", {6, 7}}};
    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    own.run();
    const int product = peer.sync(rove::fn<multiply>, json["factors"][0].get<int>(), json["factors"][1].get<int>());
    json["product"] = product;
    if (ran != 1 || nlohmann::json::parse(json.dump())["product"] != 42) return 1;
    std::puts(fmt::format("6 times 7 is {} there, too", product).c_str());
}
