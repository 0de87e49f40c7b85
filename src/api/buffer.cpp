// The caller's side of rove::Buffer, and what else is asked of every node.
#include "rove/buffer.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

#include "api/access.hpp"
#include "base/log.hpp"
#include "base/memory_file.hpp"
#include "engine/here.hpp"
#include "fabric/proc_file.hpp"
#include "node/built_ins.hpp"
#include "program/callables.hpp"
#include "program/residents.hpp"
#include "services/memory.hpp"
#include "wire/lists.hpp"

namespace rove {
namespace detail {

rove_pending call_built_in(const Peer& peer, const FunctionId& id, std::string_view name, const Pieces& payload,
                           Deadline deadline) {
    Engine& engine = usable(Inside::core(peer).get(), Inside::state(peer).get());
    const Callee callee{.id = &id, .name = name, .own = true};
    return pending_of(engine, value_or_throw(engine.caller().call(
                                  Inside::state(peer), {.callee = callee, .payload = payload, .deadline = deadline})));
}

namespace {

template <typename T>
Bytes raw(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

// About memory of that meeting with the peer; where it is over, so is what this was about. Destructors call it.
void post_quietly(const Peer& peer, std::uint64_t meeting, const FunctionId& id, Bytes payload) noexcept {
    try {
        Inside::state(peer)->engine->caller().post_in_meeting(*Inside::state(peer), meeting, {.id = &id, .own = true},
                                                              payload);
    } catch (const std::exception& error) {  // no memory for the frame, say: the peer frees it when this node leaves
        log().warn("a message about a buffer was not sent: {}", error.what());
    }
}

// Memory of another process of this machine and user; null where it cannot be had.
std::byte* map_place(const wire::MemoryPlace& place) {
    if (!std::in_range<std::uint32_t>(place.pid) || !std::in_range<std::uint32_t>(place.file)) return nullptr;
    const fabric::ProcFile named{static_cast<std::uint32_t>(place.file), place.device, place.inode};
    const Result<Descriptor> file = named.open(static_cast<std::uint32_t>(place.pid), S_IFREG);
    if (!file || !is_fixed_memory(file->number(), place.bytes)) return nullptr;
    void* memory = mmap(nullptr, place.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->number(), 0);
    if (memory == MAP_FAILED) return nullptr;
#ifdef MADV_POPULATE_WRITE
    if (place.bytes <= kPopulateBytesMax) (void)madvise(memory, place.bytes, MADV_POPULATE_WRITE);
#endif
    return static_cast<std::byte*>(memory);
}

void check_in_time(const Deadline& deadline) {
    if (deadline && Clock::now() >= *deadline)
        throw Error(ErrorCode::timed_out,
                    "the transfer did not end within the time that it was given; part of it was made");
}

// memcpy() for memory of this process or mapped from another; if there is a deadline, copies in pieces and checks it between them.
void copy_mapped(std::byte* to, const std::byte* from, std::size_t bytes, const Deadline& deadline) {
    const std::size_t step = deadline ? wire::kTransferBytesMax : bytes;
    for (std::size_t done = 0; done < bytes; done += step) {
        check_in_time(deadline);
        std::memcpy(to + done, from + done, std::min(step, bytes - done));
    }
}

}  // namespace

Allocation Memory::allocate(const Peer& peer, std::uint64_t bytes, std::int64_t limit_ns) {
    const rove_pending pending =
        call_built_in(peer, built_ins().allocate, "allocate", raw(bytes), deadline_of(limit_ns));
    Inside::state(peer)->engine->own_calls().expect_memory(
        {static_cast<std::uint16_t>(pending.slot), pending.generation});
    // Read after the call was sent: where the link is lost and met again in between, the call has failed.
    return {pending, Inside::state(peer)->meeting()};
}

std::shared_ptr<Memory> Memory::adopt(const Peer& peer, std::uint64_t meeting, std::uint64_t bytes, const void* result,
                                      std::size_t size) {
    wire::MemoryPlace place;
    if (size != sizeof place) throw Error(ErrorCode::internal, "an allocation came back in an unknown form");
    std::memcpy(&place, result, sizeof place);
    if (place.bytes != bytes)
        throw Error(ErrorCode::invalid, "node " + std::to_string(peer.node()) + " gave " + std::to_string(place.bytes) +
                                            " bytes of memory where " + std::to_string(bytes) + " were asked for");
    std::shared_ptr<Memory> memory(new Memory(peer.limited(Within{detail::kForever}), meeting, place.key, place.bytes));
    if (place.pid == 0) return memory;
    const PeerState& state = *Inside::state(peer);
    if (state.engine->peers().lane_of(state) == fabric::Lane::direct) memory->mapped_ = map_place(place);
    post_quietly(peer, meeting, built_ins().mapped, raw(place.key));
    return memory;
}

Memory::~Memory() {
    if (mapped_ != nullptr) munmap(mapped_, bytes_);
    post_quietly(peer_, meeting_, built_ins().free, raw(key_));
}

void Memory::check_in_use() const {
    (void)usable(Inside::core(peer_).get(), Inside::state(peer_).get());
    const std::uint64_t now = Inside::state(peer_)->meeting();
    if (now == meeting_) return;
    const std::string node = "node " + std::to_string(peer_.node()) + " at " + peer_.address();
    throw Error(ErrorCode::disconnected,
                now == 0 ? "the link to " + node + " was lost, and with it this buffer"
                         : "the link to " + node +
                               " was lost and the node met again since; buffers of the earlier meeting are gone: "
                               "allocate this one again");
}

std::uint64_t Memory::key() const {
    check_in_use();
    return key_;
}

std::byte* Memory::mapped_part(std::uint64_t offset, std::size_t bytes) const {
    if (offset > bytes_ || bytes > bytes_ - offset)
        throw Error(ErrorCode::invalid, std::to_string(bytes) + " bytes at " + std::to_string(offset) +
                                            " are not in a buffer of " + std::to_string(bytes_));
    return mapped_ + offset;
}

Call<> Memory::put(std::uint64_t offset, std::span<const std::byte> from, std::int64_t limit_ns) const {
    check_in_use();
    const Deadline deadline = deadline_of(limit_ns);
    if (mapped_ != nullptr) {  // before any frame that this thread sends from here on
        copy_mapped(mapped_part(offset, from.size()), from.data(), from.size(), deadline);
        return {};
    }
    Call<> last;
    for (std::size_t done = 0; done < from.size(); done += wire::kTransferBytesMax) {
        const auto piece = from.subspan(done, std::min(wire::kTransferBytesMax, from.size() - done));
        const wire::MemoryPart head{key_, offset + done, piece.size()};
        const rove_piece message[] = {{&head, sizeof head}, {piece.data(), piece.size()}};
        if (done > 0) last.get();
        last = Access::call<void>(call_built_in(peer_, built_ins().put, "put", Pieces(message), deadline));
    }
    return last;
}

Call<> Memory::get(std::uint64_t offset, std::span<std::byte> into, std::int64_t limit_ns) const {
    check_in_use();
    const Deadline deadline = deadline_of(limit_ns);
    if (mapped_ != nullptr) {  // after any reply that this thread has seen
        copy_mapped(into.data(), mapped_part(offset, into.size()), into.size(), deadline);
        return {};
    }
    Call<> last;
    for (std::size_t done = 0; done < into.size(); done += wire::kTransferBytesMax) {
        const auto piece = into.subspan(done, std::min(wire::kTransferBytesMax, into.size() - done));
        const wire::MemoryPart part{key_, offset + done, piece.size()};
        if (done > 0) last.get();
        last = Access::call_into(call_built_in(peer_, built_ins().get, "get", raw(part), deadline), piece);
    }
    return last;
}

Call<> Memory::copy(const Memory& from, std::uint64_t from_offset, const Memory& to, std::uint64_t to_offset,
                    std::uint64_t bytes, std::int64_t limit_ns) {
    from.check_in_use();
    to.check_in_use();
    const Deadline deadline = deadline_of(limit_ns);
    const std::uint64_t to_node = to.peer_.node();
    bool direct = Inside::state(from.peer_) == Inside::state(to.peer_);
    if (!direct) {
        const std::string address = to.peer_.address();
        ByteBuffer question(sizeof to_node + address.size());
        std::memcpy(question.data(), &to_node, sizeof to_node);
        std::memcpy(question.data() + sizeof to_node, address.data(), address.size());
        direct = Access::call<bool>(call_built_in(from.peer_, built_ins().knows, "knows", question, deadline)).get();
    }
    if (direct) {
        const wire::MemoryCopy request{{from.key_, from_offset, bytes}, to.key_, to_offset, to_node};
        return Access::call<void>(call_built_in(from.peer_, built_ins().copy, "copy", raw(request), deadline));
    }
    Call<> last;
    std::vector<std::byte> piece(std::min<std::size_t>(bytes, wire::kTransferBytesMax));
    for (std::uint64_t done = 0; done < bytes; done += piece.size()) {
        const auto part = std::span(piece).first(std::min<std::size_t>(piece.size(), bytes - done));
        const auto left_ns = [&deadline] { return deadline ? ns_of(*deadline - Clock::now()) : detail::kForever; };
        from.get(from_offset + done, part, left_ns()).get();
        if (done > 0) last.get();
        last = to.put(to_offset + done, part, left_ns());
    }
    return last;
}

Peer peer_of(rove_here* here, std::uint32_t node) {
    return value_or_throw(Inside::peer(here->node(), node));
}

}  // namespace detail

std::vector<FunctionDescription> Peer::functions() const {
    const rove_pending pending =
        detail::call_built_in(*this, built_ins().functions, "functions", {}, deadline_of(limits_.time_ns));
    const std::vector<char> text = [&] {
        detail::Pending held(pending);
        const void* data = nullptr;
        std::size_t size = 0;
        detail::check(rove_pending_result(&held.raw(), &data, &size));
        const auto* first = static_cast<const char*>(data);
        return std::vector<char>(first, first + size);
    }();
    std::vector<FunctionDescription> list;
    for (const wire::ListedFunction& each : wire::listed_functions({text.data(), text.size()}))
        list.push_back({std::string(each.id), std::string(each.name), std::string(each.signature)});
    return list;
}

std::vector<FunctionDescription> Node::functions() {
    std::vector<FunctionDescription> list;
    for (const Resident& each : Residents::all())
        if (!each.built_in) list.push_back({each.id.hex(), each.name, each.signature});
    return list;
}

}  // namespace rove
