// Memory on another node, without its type: what rove/buffer.hpp is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "rove/call.hpp"
#include "rove/detail/throw.hpp"
#include "rove/node.hpp"

namespace rove::detail {

// An allocation in flight.
struct Allocation {
    rove_pending pending;
    std::uint64_t meeting;  // the meeting with the peer in which it was begun
};

// An allocation on another node, and how to reach it. Limits as in rove::Within: for everything until the Call's end; negative: none.
// Defined in librove (buffer.cpp).
class Memory {
public:
    // Begins an allocation, and takes over its result.
    static Allocation allocate(const Peer& peer, std::uint64_t bytes, std::int64_t limit_ns);
    static std::shared_ptr<Memory> adopt(const Peer& peer, std::uint64_t meeting, std::uint64_t bytes,
                                         const void* result, std::size_t size);
    ~Memory();
    Memory(const Memory&) = delete;

    [[nodiscard]] Call<> put(std::uint64_t offset, std::span<const std::byte> from,
                             std::int64_t limit_ns = kForever) const;
    [[nodiscard]] Call<> get(std::uint64_t offset, std::span<std::byte> into, std::int64_t limit_ns = kForever) const;
    static Call<> copy(const Memory& from, std::uint64_t from_offset, const Memory& to, std::uint64_t to_offset,
                       std::uint64_t bytes, std::int64_t limit_ns = kForever);
    [[nodiscard]] const Peer& peer() const { return peer_; }
    // The key by which the memory is used. disconnected: the link over which it was allocated has ended; cancelled: the Node has ended.
    [[nodiscard]] std::uint64_t key() const;
    [[nodiscard]] bool is_mapped() const { return mapped_ != nullptr; }

private:
    Memory(Peer peer, std::uint64_t meeting, std::uint64_t key, std::uint64_t bytes)
        : peer_(std::move(peer)), meeting_(meeting), key_(key), bytes_(bytes) {}
    void check_in_use() const;
    [[nodiscard]] std::byte* mapped_part(std::uint64_t offset, std::size_t bytes) const;
    Peer peer_;
    std::uint64_t meeting_;
    std::uint64_t key_;
    std::uint64_t bytes_;
    std::byte* mapped_ = nullptr;  // the same memory in this process; null: not mapped
};

// The Peer of a node, by the link that the node on which a function runs has to it. invalid: there is no link to it. Defined in librove
// (buffer.cpp).
Peer peer_of(rove_here* here, std::uint32_t node);

inline void check_sizes(std::size_t from, std::size_t to) {
    if (from > to)
        throw_error(ErrorCode::invalid,
                    std::to_string(from) + " elements do not fit: there is room for " + std::to_string(to));
}

}  // namespace rove::detail
