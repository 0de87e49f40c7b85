// An engine beside peers that are nothing but the far ends of links.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engines.hpp"
#include "neighbours.hpp"

namespace rove::test {

class LoneEngine : public testing::Test {
protected:
    // `options`: of the node that is lent.
    explicit LoneEngine(const NodeOptions& options = {}) : node_(lent_node(options)) {}

    struct Far {
        std::shared_ptr<PeerState> peer;
        std::unique_ptr<fabric::Link> link;
        NodeId id;
        std::uint16_t calls = 0;
    };
    // A client of the engine's node.
    Far meet(unsigned number) { return meet(client_id(0, number), false, ""); }
    Far meet(NodeId id, bool member, const std::string& address) {
        auto ours = value_or_throw(engine_.fabric().open_link()), far = value_or_throw(far_fabric_->open_link());
        value_or_throw(engine_.fabric().connect(*ours, far->offer()));
        value_or_throw(far->connect(ours->offer()));
        const Meeting met{.peer = {.id = id,
                                   .my_id = 0,
                                   .member = member,
                                   .address = address,
                                   .triple = "x86_64-linux-gnu",
                                   .node_count = 4,
                                   .features = wire::kFeatures},
                          .resident = {},
                          .hang_up = [](const Error&) {}};
        return {value_or_throw(engine_.peers().adopt(met, std::move(ours), nullptr)).peer, std::move(far), id};
    }
    static void send(Far& from, wire::FrameHeader header, Bytes extra, std::string_view payload,
                     fabric::Traffic traffic = fabric::Traffic::calls) {
        header.extra_bytes = static_cast<std::uint16_t>(extra.size());
        header.body_bytes = static_cast<std::uint32_t>(extra.size() + payload.size());
        std::byte* const frame = from.link->reserve(traffic, wire::kHeaderBytes + header.body_bytes);
        ASSERT_NE(frame, nullptr);
        std::copy(extra.begin(), extra.end(), frame + wire::kHeaderBytes);
        std::ranges::copy(as_bytes(payload), frame + wire::kHeaderBytes + extra.size());
        from.link->publish(traffic, header);
    }
    static void call(Far& from, const FunctionId& function, std::string_view payload, std::uint8_t flags = 0) {
        const wire::Either either{.resident = function, .shipped = {}, .schema = 1};
        send(from,
             {.kind = wire::Kind::call,
              .flags = static_cast<std::uint8_t>(flags | wire::kByEither),
              .node = from.id,
              .call = ++from.calls},
             std::as_bytes(std::span(&either, 1)), payload);
    }
    // Returns the peer's replies, after the engine has had a turn for everything that was sent to it.
    std::vector<Neighbours::Received> turn(const Far& far) {
        while (engine_.poll(std::chrono::milliseconds(0)) > 0) continue;
        return Neighbours::received_at(*far.link);
    }
    static std::vector<Neighbours::Received> of_kind(std::vector<Neighbours::Received> all, wire::Kind kind) {
        std::erase_if(all, [kind](const auto& each) { return each.header.kind != kind; });
        return all;
    }
    [[nodiscard]] bool is_linked(const Far& far) { return engine_.peers().linked(*far.peer); }

    const std::shared_ptr<NodeCore> node_;
    const std::shared_ptr<fabric::Exchange> exchange_ = std::make_shared<fabric::Exchange>();
    std::unique_ptr<fabric::Fabric> far_fabric_ = value_or_throw(fabric::LoopbackFabric::open(exchange_));
    Engines engines_{*node_, 0};
    Engine& engine_ = engines_.add(exchange_);
};

}  // namespace rove::test
