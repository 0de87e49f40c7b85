// Parts of an engine that know of peers, beside neighbours whose other end the test reads: OwnCalls, Answers, LinkEnds and Peers.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/answers.hpp"
#include "engine/link_ends.hpp"
#include "engine/own_calls.hpp"
#include "engine/peers.hpp"
#include "exchanging.hpp"
#include "services/memory.hpp"

namespace rove::test {

class AnsweringParts : public Exchanging {
protected:
    // A call of this node to the peer.
    CallId call(PeerState& to) {
        const Hold hold(idle_.lead.mutex());
        return value_or_throw(own_calls_.table().begin(&to));
    }
    // Sends the peer's answer to a call.
    void answer(PeerState& from, CallId call, std::string_view text, std::uint8_t flags = 0,
                std::uint8_t status = static_cast<std::uint8_t>(RanAs::bitcode)) {
        const Hold hold(idle_.lead.mutex());
        replies_.on_reply(&from, {{.kind = wire::Kind::reply,
                                   .flags = flags,
                                   .handle = from.id(),
                                   .generation = call.generation,
                                   .node = from.my_id(),
                                   .call = call.slot,
                                   .hops = 1,
                                   .status = status},
                                  {},
                                  as_bytes(text)});
    }
    // The end of a call that has ended: "value: …", or the error's code and words.
    std::string end_of(CallId call) {
        const Result<CallEnd> end = own_calls_.finish(call);
        return end ? "value: " + std::string(as_text(Bytes(end->data)))
                   : std::string(to_string(end.error().code())) + ": " + end.error().message();
    }
    // A call that a peer has made, as its answer has to name it.
    static wire::CallContext call_from(NodeId caller, bool wants_reply = true) {
        return {.generation = 9, .node = caller, .call = 5, .hops = 1, .wants_reply = wants_reply};
    }
    static bool contains(const std::string& text, std::string_view part) {
        return text.find(part) != std::string::npos;
    }

    IdleLead idle_{2, cache_};
    const std::unique_ptr<fabric::Fabric> no_fabric_;
    const std::shared_ptr<SpareMemory> spare_ = std::make_shared<SpareMemory>();
    std::vector<std::string> told_;                      // whoever was notified of an end
    std::vector<std::pair<NodeId, std::string>> freed_;  // memory that came too late, and where it is
    RoomWaits rooms_{idle_.lead, idle_.runner, &IdleLead::name};
    OwnCalls own_calls_{
        {.options = options_,
         .lead = idle_.lead,
         .duties = idle_,
         .runner = idle_.runner,
         .fabric = no_fabric_,
         .peers = neighbours_.peers,
         .spare_memory = spare_,
         .name = &IdleLead::name,
         .call_back =
             [this](const rove::Run& /*run*/, const CallSlot::Notify& notify) {
                 told_.emplace_back(static_cast<const char*>(notify.argument));
             },
         .free_memory = [this](PeerState& peer,
                               Bytes place) { freed_.emplace_back(peer.id(), std::string(as_text(place))); }},
        /*generations=*/7};
    ReplyReceiver replies_{own_calls_, neighbours_.sender, neighbours_.routes, neighbours_.others};
    Answers answers_{{.lead = idle_.lead,
                      .runner = idle_.runner,
                      .rooms = rooms_,
                      .sender = neighbours_.sender,
                      .routes = neighbours_.routes,
                      .replies = replies_,
                      .complaints = neighbours_.complaints,
                      .name = &IdleLead::name}};
    HousekeepingClock housekeeping_;
    FrameChecks checks_{options_, neighbours_.routes};
    PayloadParts payload_parts_{neighbours_.peers, spare_, &IdleLead::name};
    MemoryTable memory_{1 << 20};
    const std::array<Service*, 1> services_{&memory_};
    LinkEnds ends_{{.lead = idle_.lead,
                    .runner = idle_.runner,
                    .housekeeping = housekeeping_,
                    .routes = neighbours_.routes,
                    .others = neighbours_.others,
                    .absent = neighbours_.absent,
                    .checks = checks_,
                    .answers = answers_,
                    .own_calls = own_calls_,
                    .replies = replies_,
                    .exchange = exchange_,
                    .payload_parts = payload_parts_,
                    .services = services_,
                    .complaints = neighbours_.complaints,
                    .name = &IdleLead::name}};
    PeerPlaces places_;
    char no_engine_ = 0;  // nobody asks it for anything
    Peers peers_{{.engine = reinterpret_cast<Engine&>(no_engine_),
                  .lead = idle_.lead,
                  .routes = neighbours_.routes,
                  .absent = neighbours_.absent,
                  .places = places_,
                  .sender = neighbours_.sender,
                  .link_ends = ends_,
                  .name = &IdleLead::name}};
};

}  // namespace rove::test
