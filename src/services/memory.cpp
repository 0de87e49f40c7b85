#include "services/memory.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "arch/arch.hpp"
#include "base/made_once.hpp"
#include "base/memory_file.hpp"
#include "peer/names.hpp"

namespace rove {
namespace {

// From this size on memory is a file's, so that a peer can map it: that costs two system calls and a page at least.
constexpr std::size_t kMappedBytesMin = 16 * 1024;
// How long an allocation waits for memory that is being given back: 16 MiB take 4 ms.
constexpr auto kReclaimerWait = std::chrono::milliseconds(20);

tl::unexpected<Error> no_memory(std::uint64_t bytes) {
    return fail(ErrorCode::overloaded, "{} bytes: this machine has no memory for them", bytes);
}

}  // namespace

Block::~Block() {
    if (!heap_ && bytes_.data() != nullptr) munmap(bytes_.data(), bytes_.size());
    if (file_ >= 0) close(file_);
}

// Gives back whole pages only: the rest of a heap block is freed with the block.
void Block::give_back(std::size_t from, std::size_t bytes) const {
    const std::uintptr_t page = arch::page_bytes();
    const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(bytes_.data()) + from;
    const std::uintptr_t begin = (first + page - 1) / page * page;
    const std::uintptr_t end = (first + bytes) / page * page;
    (void)madvise(reinterpret_cast<void*>(begin), end - begin, heap_ ? MADV_DONTNEED : MADV_REMOVE);
}

bool Block::make(std::uint64_t bytes, bool may_map, wire::MemoryPlace& place) {
    left_ = bytes;
    if (may_map) {
        file_ = memfd_create("rove-buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        struct stat facts{};
        if (file_ >= 0 && grow_file(file_, bytes) && fix_size(file_) && fstat(file_, &facts) == 0) {
            const int populate = bytes <= kPopulateBytesMax ? MAP_POPULATE : 0;
            void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | populate, file_, 0);
            if (memory == MAP_FAILED) return false;
            bytes_ = {static_cast<std::byte*>(memory), bytes};
            place.pid = getpid();
            place.file = file_;
            place.device = facts.st_dev;
            place.inode = facts.st_ino;
            return true;
        }
        if (file_ >= 0) close(std::exchange(file_, -1));
    }
    heap_.reset(new (std::nothrow) std::byte[std::max<std::size_t>(bytes, 1)]());
    bytes_ = {heap_.get(), bytes};
    return heap_ != nullptr;
}

MemoryTable::MemoryTable(std::size_t bytes_max)
    : unmapped_max_([] {
          rlimit files{};
          const std::size_t most = getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : 1024;
          return std::min(kUnmappedFilesMax, most / 4);
      }()),
      bytes_max_(bytes_max) {}

Result<std::shared_ptr<BlockOwner>> MemoryTable::take_room(std::uint64_t bytes, NodeId node, bool& may_map) {
    const auto known = owners_.find(node);
    const std::uint64_t held = bytes_ + elsewhere_->load(std::memory_order_acquire);
    if (held > bytes_max_ || bytes > bytes_max_ - held || blocks_.size() >= kBlocksMax)
        return fail(ErrorCode::overloaded,
                    "{} bytes: peers hold {} bytes in {} buffers here already, of at most {} bytes in {} buffers",
                    bytes, held, blocks_.size(), bytes_max_, kBlocksMax);
    if (known != owners_.end() && known->second->blocks >= kBlocksOfPeerMax)
        return fail(ErrorCode::overloaded, "{} bytes: {} has {} buffers here, the most that one may", bytes,
                    who(node, {}), known->second->blocks);
    std::shared_ptr<BlockOwner> owner = known != owners_.end() ? known->second : std::make_shared<BlockOwner>();
    if (known == owners_.end()) {
        owner->node = node;
        owners_.emplace(node, owner);
    }
    ++owner->blocks;
    bytes_ += bytes;
    may_map = bytes >= kMappedBytesMin && mappings_ < kMappingsMax && unmapped_max_ > 0;
    mappings_ += may_map ? 1 : 0;
    return owner;
}

void MemoryTable::give_room_back(BlockOwner& owner, std::uint64_t bytes, bool was_mapped) {
    bytes_ -= bytes;
    mappings_ -= was_mapped ? 1 : 0;
    if (--owner.blocks == 0 && !owner.gone) owners_.erase(owner.node);
}

void MemoryTable::close_file(Block& block) {
    if (block.file_ < 0) return;
    close(std::exchange(block.file_, -1));
    unmapped_.erase(block.unmapped_);
}

Result<wire::MemoryPlace> MemoryTable::allocate(std::uint64_t bytes, NodeId owner) {
    std::shared_ptr<Block> block(new Block);
    wire::MemoryPlace place{.bytes = bytes};
    bool may_map = false;
    for (;;) {
        Result<std::shared_ptr<BlockOwner>> room = [&] {
            const LockOf lock(mutex_);
            return take_room(bytes, owner, may_map);
        }();
        if (room) {
            block->owner_ = *std::move(room);
            break;
        }
        // Freeing the memory of peers that have left may make enough room.
        if (sweep() == 0 && !await_reclaimer()) return tl::unexpected<Error>(room.error());
    }
    const bool made = block->make(bytes, may_map, place);
    const LockOf lock(mutex_);
    BlockOwner& of = *block->owner_;
    if (!made) {
        give_room_back(of, bytes, may_map);
        return no_memory(bytes);
    }
    if (of.gone) {
        give_room_back(of, bytes, may_map);
        return fail(ErrorCode::disconnected, "{} bytes: who asked for them has gone", bytes);
    }
    do {
        randombytes_buf(&place.key, sizeof place.key);
    } while (place.key == 0 || blocks_.contains(place.key));
    // All allocations are made before any step that would have to be undone.
    std::list<std::uint64_t> owned, unmapped;
    try {
        owned.push_back(place.key);
        if (block->file_ >= 0) unmapped.push_back(place.key);
        blocks_.emplace(place.key, block);
    } catch (const std::bad_alloc&) {
        give_room_back(of, bytes, may_map);
        return no_memory(bytes);
    }
    if (may_map && block->heap_) --mappings_;
    if (block->file_ >= 0) {
        if (unmapped_.size() >= unmapped_max_) close_file(*blocks_.at(unmapped_.front()));
        block->unmapped_ = unmapped.begin();
        unmapped_.splice(unmapped_.end(), unmapped);
    }
    block->owned_ = owned.begin();
    of.keys.splice(of.keys.end(), owned);
    return place;
}

void MemoryTable::free(std::uint64_t key) {
    std::shared_ptr<Block> last;  // freed after the lock is released
    const LockOf lock(mutex_);
    const auto found = blocks_.find(key);
    if (found == blocks_.end() || found->second->owner_->gone) return;
    last = std::move(found->second);
    blocks_.erase(found);
    close_file(*last);
    last->owner_->keys.erase(last->owned_);
    give_room_back(*last->owner_, last->bytes_.size(), last->heap_ == nullptr);
}

void MemoryTable::peer_left(NodeId node) {
    const LockOf lock(mutex_);
    const auto found = owners_.find(node);
    if (found == owners_.end()) return;
    BlockOwner& owner = *gone_.emplace_back(std::move(found->second));
    owners_.erase(found);
    owner.gone = true;
}

// A block of elsewhere_, which it counts for until it is freed: a peer can hold that up.
struct MemoryTable::Elsewhere {
    std::shared_ptr<Block> block;
    std::shared_ptr<std::atomic<std::size_t>> bytes;

    void free() {
        const std::size_t freed = block->bytes().size();
        block->give_back(0, freed);
        block.reset();
        bytes->fetch_sub(freed, std::memory_order_release);
    }
};

std::size_t MemoryTable::sweep() {
    std::vector<std::shared_ptr<Block>> doomed;  // freed after the lock is released
    std::shared_ptr<Block> large, large_file;
    std::size_t large_from = 0, bytes = 0;
    {
        const LockOf lock(mutex_);
        while (!gone_.empty() && doomed.size() < kDoomedMax && bytes < kDoomedBytesMax) {
            BlockOwner& owner = *gone_.front();
            if (owner.keys.empty()) {
                gone_.pop_front();
                continue;
            }
            const auto found = blocks_.find(owner.keys.front());
            Block& block = *found->second;
            // A block that is in use keeps its pages, and is freed with its last user.
            if (block.left_ > kDoomedBytesMax && found->second.use_count() == 1) {
                if (!doomed.empty()) break;
                if (!block.heap_) {  // the kernel may wait there for the peer
                    elsewhere_->fetch_add(block.bytes().size(), std::memory_order_relaxed);
                    large_file = take(owner, found);
                    break;
                }
                large = found->second;
                large_from = block.left_ -= kDoomedBytesMax;
                break;
            }
            bytes += block.left_;
            doomed.push_back(take(owner, found));
        }
    }
    if (large) large->give_back(large_from, kDoomedBytesMax);
    const std::size_t steps = doomed.size() + (large || large_file ? 1 : 0);
    if (large_file) give_back_elsewhere({std::move(large_file), elsewhere_});
    return steps;
}

std::shared_ptr<Block> MemoryTable::take(BlockOwner& owner, Blocks::iterator found) {
    std::shared_ptr<Block> block = std::move(found->second);
    owner.keys.pop_front();
    blocks_.erase(found);
    close_file(*block);
    bytes_ -= block->bytes_.size();
    mappings_ -= block->heap_ == nullptr ? 1 : 0;
    return block;
}

// Without a thread or memory for it, it is done here.
void MemoryTable::give_back_elsewhere(Elsewhere counted) noexcept {
    std::shared_ptr<Elsewhere> work;
    std::function<void()> free;
    try {
        work = std::make_shared<Elsewhere>();
        free = [work] { work->free(); };
    } catch (const std::bad_alloc&) {
        return counted.free();
    }
    *work = std::move(counted);
    if (!reclaimer_.run(std::move(free))) work->free();
}

// False: nothing was given back in that time.
bool MemoryTable::await_reclaimer() const {
    const std::size_t before = elsewhere_->load(std::memory_order_acquire);
    const TimePoint until = Clock::now() + kReclaimerWait;
    while (before > 0 && Clock::now() < until) {
        if (elsewhere_->load(std::memory_order_acquire) < before) return true;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return false;
}

bool MemoryTable::has_work() const {
    const LockOf lock(mutex_);
    return !gone_.empty();
}

void MemoryTable::mapped(std::uint64_t key) {
    const LockOf lock(mutex_);
    const auto found = blocks_.find(key);
    if (found != blocks_.end()) close_file(*found->second);
}

std::shared_ptr<Block> MemoryTable::find(std::uint64_t key) const {
    const LockOf lock(mutex_);
    const auto found = blocks_.find(key);
    return found != blocks_.end() && !found->second->owner_->gone ? found->second : nullptr;
}

}  // namespace rove
