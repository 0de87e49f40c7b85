// Memory that peers have allocated on this node: what implements rove::Buffer.
//
// Threads: any. The table has a lock of its own, under which no memory of a block is made, mapped or freed.
//
// Invariants: the blocks of an owner are in `blocks_` and in its list of keys, or in neither. `bytes_` and `mappings_` count the blocks in
// `blocks_` and those being made. A block whose owner has left can no longer be found, and counts until sweep() has taken it;
// one that another thread gives back, because it is large and a peer may have its file open, until that is done.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "base/mutex.hpp"
#include "base/reclaimer.hpp"
#include "base/result.hpp"
#include "rove/rove.h"
#include "services/service.hpp"
#include "wire/memory.hpp"

namespace rove {

// Up to this size all pages are made when memory is allocated or mapped, because a page fault takes longer than filling the page.
inline constexpr std::size_t kPopulateBytesMax = 64UL * 1024 * 1024;

class MemoryTable;

// The buffers of one peer, from its first one until it leaves or has none.
struct BlockOwner {
    NodeId node GUARDED_BY(lock_of<MemoryTable>) = kNoNode;
    std::list<std::uint64_t> keys GUARDED_BY(lock_of<MemoryTable>);  // the keys of its blocks
    std::size_t blocks GUARDED_BY(lock_of<MemoryTable>) = 0;         // includes those being made
    bool gone GUARDED_BY(lock_of<MemoryTable>) = false;
};

// One allocation. Lives as long as it has users.
class Block {
public:
    ~Block();
    Block(const Block&) = delete;
    [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

private:
    friend class MemoryTable;
    Block() = default;
    // Makes its memory: a file's, if it may be. False: there is none. Called without the lock, because no other thread has the block yet.
    [[nodiscard]] bool make(std::uint64_t bytes, bool may_map, wire::MemoryPlace& place) NO_THREAD_SAFETY_ANALYSIS;
    void give_back(std::size_t from, std::size_t bytes) const;
    std::size_t left_ GUARDED_BY(lock_of<MemoryTable>) = 0;  // bytes whose pages have not been given back
    std::span<std::byte> bytes_;
    std::unique_ptr<std::byte[]> heap_;               // its memory, if that is not a mapping of …
    int file_ GUARDED_BY(lock_of<MemoryTable>) = -1;  // … this, which peers on the same machine map, too
    // If file_ is not -1: its place among the files that wait to be mapped.
    std::list<std::uint64_t>::iterator unmapped_ GUARDED_BY(lock_of<MemoryTable>);
    std::shared_ptr<BlockOwner> owner_;
    std::list<std::uint64_t>::iterator owned_ GUARDED_BY(lock_of<MemoryTable>);  // its place among its owner's
};

class MemoryTable final : public Service {
public:
    // The most allocations at the same time. Small ones cost some 256 bytes of the table: 256 MiB. One peer may have a quarter of them, so
    // that some are left for others; of the bytes it may have all, because a node with one client is the common case.
    static constexpr std::size_t kBlocksMax = 1UL << 20U;
    static constexpr std::size_t kBlocksOfPeerMax = kBlocksMax / 4;
    // Files that wait to be mapped by their peers. Beyond that the oldest file is closed, and its buffer is copied by calls. A quarter of
    // the process's descriptors at most, so that three quarters are left for peers and for the program itself.
    static constexpr std::size_t kUnmappedFilesMax = 256;
    // Blocks that are mappings of their own. More are on the heap: engine/mappings.hpp says what a process's mappings are for.
    static constexpr std::size_t kMappingsMax = 4096;

    explicit MemoryTable(std::size_t bytes_max);

    [[nodiscard]] Result<wire::MemoryPlace> allocate(std::uint64_t bytes, NodeId owner);  // zeroed; overloaded
    void free(std::uint64_t key);
    // sweep() releases the memory of the peer's buffers, which counts until then.
    void peer_left(NodeId owner) override;
    [[nodiscard]] bool has_work() const override;
    void work() override { (void)sweep(); }
    // Releases some of the memory without an owner. Returns the number of blocks, or parts of one, that it released; 0: there were none. Takes
    // some milliseconds, so it is called by threads that hold no lock for which others wait. allocate() calls it, too, if it finds no room.
    std::size_t sweep();
    // What one sweep() takes, a few milliseconds: removing a block from the tables and closing its file takes a microsecond or two, and
    // giving a page back a quarter of that. A larger block is given back in parts.
    static constexpr std::size_t kDoomedMax = 256;
    static constexpr std::size_t kDoomedBytesMax = 16UL * 1024 * 1024;
    void mapped(std::uint64_t key);  // the peer has mapped it: the file is no longer needed
    [[nodiscard]] std::shared_ptr<Block> find(std::uint64_t key) const;

private:
    [[nodiscard]] Result<std::shared_ptr<BlockOwner>> take_room(std::uint64_t bytes, NodeId node, bool& may_map)
        REQUIRES(lock_of<MemoryTable>);
    void give_room_back(BlockOwner& owner, std::uint64_t bytes, bool was_mapped) REQUIRES(lock_of<MemoryTable>);
    void close_file(Block& block) REQUIRES(lock_of<MemoryTable>);
    using Blocks = std::unordered_map<std::uint64_t, std::shared_ptr<Block>>;
    // Takes the first block of an owner that has left out of the tables.
    [[nodiscard]] std::shared_ptr<Block> take(BlockOwner& owner, Blocks::iterator found) REQUIRES(lock_of<MemoryTable>);
    struct Elsewhere;
    void give_back_elsewhere(Elsewhere counted) noexcept;
    [[nodiscard]] bool await_reclaimer() const;
    mutable MutexOf<MemoryTable> mutex_;
    // Includes those of owners that have left, until sweep() takes them.
    Blocks blocks_ GUARDED_BY(lock_of<MemoryTable>);
    std::unordered_map<NodeId, std::shared_ptr<BlockOwner>> owners_ GUARDED_BY(lock_of<MemoryTable>);
    // Those whose blocks are to be taken.
    std::deque<std::shared_ptr<BlockOwner>> gone_ GUARDED_BY(lock_of<MemoryTable>);
    std::list<std::uint64_t> unmapped_
        GUARDED_BY(lock_of<MemoryTable>);  // keys of the blocks with open files, the oldest first
    std::size_t mappings_ GUARDED_BY(lock_of<MemoryTable>) = 0;
    std::size_t bytes_ GUARDED_BY(lock_of<MemoryTable>) = 0;
    Reclaimer reclaimer_;
    // Bytes of blocks that it has.
    const std::shared_ptr<std::atomic<std::size_t>> elsewhere_ = std::make_shared<std::atomic<std::size_t>>(0);
    const std::size_t unmapped_max_;
    const std::size_t bytes_max_;
};

}  // namespace rove
