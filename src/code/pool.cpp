#include "code/pool.hpp"

#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "arch/arch.hpp"
#include "base/bytes.hpp"
#include "base/made_once.hpp"
#include "base/memory_file.hpp"

namespace rove::code {
namespace {

// Address space only: the kernel provides pages as they are written. At 4 KiB: 4096 one-page packages in a chunk.
constexpr std::size_t kChunkBytes = 16 * 1024 * 1024;
// The part of a new chunk that is populated at once in both views: two page faults are a tenth of a first call. At 4 KiB: 64 small
// packages.
constexpr std::size_t kReadyBytes = 256 * 1024;

void touch([[maybe_unused]] void* memory, [[maybe_unused]] bool writable) {
#ifdef MADV_POPULATE_WRITE  // kernels before 5.14 cannot; the faults then occur later
    (void)madvise(memory, kReadyBytes, writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
#endif
}

bool registered() {
    static constinit MadeOnce<const bool> done;
    return done.get([] {
        return new const bool(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0);
    });
}

bool synchronise_cores() {
    return registered() && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0;
}

}  // namespace

CodePool::Piece::~Piece() {
    if (pool_ != nullptr) pool_->release(*this);
}

Status CodePool::add_chunk(std::size_t bytes) {
    Chunk chunk;
    chunk.file = Descriptor(memfd_create("rove-code", MFD_CLOEXEC));
    const auto map = [&](int protection) {
        return Mapping(mmap(nullptr, bytes, protection, MAP_SHARED, chunk.file.number(), 0), bytes);
    };
    if (chunk.file.is_open() && grow_file(chunk.file.number(), bytes)) chunk.writable = map(PROT_READ | PROT_WRITE);
    if (!chunk.writable)
        return fail(ErrorCode::overloaded, "no memory for {} bytes of code ({})", bytes, strerror(errno));
    chunk.executable = map(PROT_READ | PROT_EXEC);
    if (!chunk.executable)
        return fail(ErrorCode::refused,
                    "this system lets no memory be mapped for execution ({}): shipped code cannot run here",
                    strerror(errno));
    touch(chunk.writable.start(), true);
    touch(chunk.executable.start(), false);
    chunk.free[0] = bytes;
    chunks_.push_back(std::move(chunk));
    return {};
}

Result<CodePool::Piece> CodePool::allocate(std::size_t bytes) {
    const std::size_t needed = round_up(bytes, arch::page_bytes());
    Ranges own;
    own[0] = needed;
    const MutexLock lock(mutex_);
    for (;;) {
        for (std::size_t i = 0; i < chunks_.size(); ++i) {
            Chunk& chunk = chunks_[i];
            const auto found =
                std::ranges::find_if(chunk.free, [needed](const auto& each) { return each.second >= needed; });
            if (found == chunk.free.end()) continue;
            auto range = chunk.free.extract(found);
            const std::size_t offset = range.key();
            if (range.mapped() > needed) {
                range.key() += needed;
                range.mapped() -= needed;
                chunk.free.insert(std::move(range));
            }
            Piece piece;
            piece.pool_ = this;
            piece.chunk_ = i;
            piece.writable_ = chunk.writable.start() + offset;
            piece.executable_ = chunk.executable.start() + offset;
            piece.bytes_ = needed;
            piece.range_ = own.extract(own.begin());
            return piece;
        }
        ROVE_CHECK(add_chunk(std::max(kChunkBytes, needed)));
    }
}

void CodePool::release(Piece& piece) {
    const MutexLock lock(mutex_);
    Chunk& chunk = chunks_[piece.chunk_];
    Ranges::node_type range = std::move(piece.range_);
    range.key() = static_cast<std::size_t>(piece.writable_ - chunk.writable.start());
    fallocate(chunk.file.number(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(range.key()),
              static_cast<off_t>(range.mapped()));
    const auto after = chunk.free.find(range.key() + range.mapped());
    if (after != chunk.free.end()) {
        range.mapped() += after->second;
        chunk.free.erase(after);
    }
    auto before = chunk.free.lower_bound(range.key());
    if (before != chunk.free.begin()) --before;
    if (before != chunk.free.end() && before->first + before->second == range.key())
        before->second += range.mapped();
    else
        chunk.free.insert(std::move(range));
}

void CodePool::prepare_process() {
    (void)registered();
}

void CodePool::make_ready(const Piece& piece) {
    arch::code_written(piece.executable_, piece.executable_ + piece.bytes_);
    // A core may have fetched what was at these addresses before: every core that runs this process passes a serialising
    // instruction before the address is published.
    (void)synchronise_cores();
}

}  // namespace rove::code
