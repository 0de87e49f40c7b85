#include "node/built_ins.hpp"

#include <limits>
#include <optional>

#include "base/made_once.hpp"
#include "engine/here.hpp"
#include "node/core.hpp"
#include "program/residents.hpp"
#include "rove/edge.h"
#include "wire/lists.hpp"
#include "wire/memory.hpp"

namespace rove {

namespace {

Bytes bytes_of(const void* data, std::size_t size) {
    return {static_cast<const std::byte*>(data), size};
}

// Reads a T from the payload's beginning; nullopt, and the call has failed, if the payload is too short.
template <typename T>
std::optional<T> head_of(rove_here* here, Bytes payload) {
    if (payload.size() < sizeof(T)) {
        here->engine->answers().reply_error(
            here->call, Error(ErrorCode::invalid, "the arguments of a function that every node has are too short"));
        here->ended = true;
        return std::nullopt;
    }
    T head;
    std::memcpy(&head, payload.data(), sizeof head);
    return head;
}

void end_with(rove_here* here, const Error& error) {
    here->engine->answers().reply_error(here->call, error);
    here->ended = true;
}

// Answers with these bytes. A function that returns without an answer has succeeded, so what is too much for one is an error.
void answer(rove_here* here, Bytes bytes) {
    if (bytes.size() > ROVE_MESSAGE_BYTES_MAX)
        return end_with(
            here, Error(ErrorCode::failed, fmt::format("{}: {} bytes of answer are over the {} that one may have",
                                                       here->node().name(), bytes.size(), ROVE_MESSAGE_BYTES_MAX)));
    (void)rove_reply(here, bytes.data(), bytes.size());
}

Error no_such(const rove_here* here, std::uint64_t bytes) {
    return {ErrorCode::invalid,
            fmt::format("{} bytes of a buffer are not on {}: it belongs to another node, was freed, or "
                        "is smaller",
                        bytes, here->node().name())};
}

// A part of a block, which is kept in `kept`; empty, with the call failed, where there is none.
std::optional<std::span<std::byte>> part_of(rove_here* here, const wire::MemoryPart& part,
                                            std::shared_ptr<Block>& kept) {
    kept = here->node().shared().memory.find(part.key);
    if (kept && part.offset <= kept->bytes().size() && part.bytes <= kept->bytes().size() - part.offset)
        return kept->bytes().subspan(part.offset, part.bytes);
    end_with(here, no_such(here, part.bytes));
    return std::nullopt;
}

// Whether whoever called is still linked: mostly to the engine that runs this.
bool knows_owner(rove_here* here) {
    return here->engine->peers().knows_owner(here->call.node) || here->node().knows_owner(here->call.node);
}

void allocate(rove_here* here, const void* payload, std::size_t size) {
    const auto bytes = head_of<std::uint64_t>(here, bytes_of(payload, size));
    if (!bytes) return;
    const Result<wire::MemoryPlace> place = here->node().shared().memory.allocate(*bytes, here->call.node);
    if (!place)
        return end_with(here, Error(place.error().code(), here->node().name() + ": " + place.error().message()));
    // The caller may have left while this was made: all that it owned was freed without it. If it leaves later, this is freed with the rest.
    if (!knows_owner(here)) here->node().shared().memory.free(place->key);
    (void)rove_reply(here, &*place, sizeof *place);
}

void free_block(rove_here* here, const void* payload, std::size_t size) {
    if (const auto key = head_of<std::uint64_t>(here, bytes_of(payload, size))) here->node().shared().memory.free(*key);
}

void mapped(rove_here* here, const void* payload, std::size_t size) {
    if (const auto key = head_of<std::uint64_t>(here, bytes_of(payload, size)))
        here->node().shared().memory.mapped(*key);
}

void put(rove_here* here, const void* payload, std::size_t size) {
    auto part = head_of<wire::MemoryPart>(here, bytes_of(payload, size));
    if (!part) return;
    const Bytes data = bytes_of(payload, size).subspan(sizeof *part);
    part->bytes = data.size();
    std::shared_ptr<Block> kept;
    const auto to = part_of(here, *part, kept);
    if (to && !data.empty()) std::memcpy(to->data(), data.data(), data.size());
}

void get(rove_here* here, const void* payload, std::size_t size) {
    const auto part = head_of<wire::MemoryPart>(here, bytes_of(payload, size));
    if (!part) return;
    std::shared_ptr<Block> kept;
    if (const auto from = part_of(here, *part, kept)) answer(here, *from);
}

// The messages have room for longer numbers than nodes have. Nothing: no node has that one.
std::optional<NodeId> node_of(std::uint64_t number) {
    return number <= std::numeric_limits<NodeId>::max() ? std::optional(static_cast<NodeId>(number)) : std::nullopt;
}

// To another node that this one knows, piece by piece; or within this one.
void copy(rove_here* here, const void* payload, std::size_t size) {
    const auto which = head_of<wire::MemoryCopy>(here, bytes_of(payload, size));
    if (!which) return;
    std::shared_ptr<Block> kept, kept_to;
    const auto from = part_of(here, which->from, kept);
    if (!from) return;
    const std::optional<NodeId> to_node = node_of(which->to_node);
    if (!to_node) return end_with(here, Error(ErrorCode::invalid, fmt::format("there is no node {}", which->to_node)));
    if (to_node == here->node().id()) {
        const auto to = part_of(here, {which->to_key, which->to_offset, which->from.bytes}, kept_to);
        if (to && !from->empty()) std::memmove(to->data(), from->data(), from->size());
        return;
    }
    rove_hand_over(here);
    for (std::size_t done = 0; done < from->size(); done += wire::kTransferBytesMax) {
        const auto piece = from->subspan(done, std::min(wire::kTransferBytesMax, from->size() - done));
        const wire::MemoryPart head{which->to_key, which->to_offset + done, piece.size()};
        const rove_piece message[] = {{&head, sizeof head}, {piece.data(), piece.size()}};
        rove_pending pending{};
        std::size_t nothing = 0;
        int error =
            rove_here_call_within(here, *to_node, &put, message, std::size(message), detail::kForever, &pending);
        if (error == ROVE_OK) error = rove_pending_take(&pending, nullptr, 0, &nothing);
        if (error != ROVE_OK) return end_with(here, Error(static_cast<ErrorCode>(error), rove_last_failure()->message));
    }
}

// Whether this node reaches the node of that id at that address.
void knows(rove_here* here, const void* payload, std::size_t size) {
    const auto node = head_of<std::uint64_t>(here, bytes_of(payload, size));
    if (!node) return;
    const std::string_view address = as_text(bytes_of(payload, size).subspan(sizeof *node));
    const std::optional<NodeId> id = node_of(*node);
    const bool known =
        id &&
        (id == here->node().id() ? address == here->node().address()
                                 : (here->engine->peers().reaches(*id, address) || here->node().reaches(*id, address)));
    (void)rove_reply(here, &known, 1);
}

void list_functions(rove_here* here, const void*, std::size_t) {
    std::string list;
    for (const Resident& each : Residents::all())
        if (!each.built_in) wire::append(list, {each.id.hex(), each.name, each.signature});
    answer(here, as_bytes(list));
}

FunctionId built_in(std::string_view name, code::EntryPoint entry) {
    return Residents::add({.id = resident_id({"built in", name}),
                           .name = "rove:" + std::string(name),
                           .signature = {},
                           .entry = entry,
                           .built_in = true})
        .id;
}

}  // namespace

const BuiltIns& built_ins() {
    static constinit MadeOnce<const BuiltIns> made;
    return made.get([] {
        return new const BuiltIns{.allocate = built_in("allocate", &allocate),
                                  .free = built_in("free", &free_block),
                                  .mapped = built_in("mapped", &mapped),
                                  .put = built_in("put", &put),
                                  .get = built_in("get", &get),
                                  .copy = built_in("copy", &copy),
                                  .knows = built_in("knows", &knows),
                                  .functions = built_in("functions", &list_functions)};
    });
}

}  // namespace rove
