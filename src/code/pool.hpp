// Executable memory. One memfd, mapped twice: written through one view and executed through the other, so that no mapping is ever both
// writable and executable. Allocation is by whole pages: a package's code shares no page with another's, and its memory is returned to the
// kernel when it is evicted.
//
// Threads: any; a Piece is used by one at a time.
//
// Invariants: the free ranges of a chunk neither overlap nor touch each other, and no existing piece overlaps one. A chunk, once made, exists
// for as long as the pool.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "base/descriptor.hpp"
#include "base/mapping.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"

namespace rove::code {

class CodePool {
    using Ranges = std::map<std::size_t, std::size_t>;  // offset -> bytes

public:
    // A page-aligned piece; gives its memory back when destroyed. Must not outlive the pool.
    class Piece {
    public:
        Piece() = default;
        Piece(Piece&& other) noexcept { swap(other); }
        Piece& operator=(Piece&& other) noexcept {
            swap(other);
            return *this;
        }
        ~Piece();
        [[nodiscard]] std::byte* writable() const { return writable_; }
        [[nodiscard]] std::byte* executable() const { return executable_; }
        [[nodiscard]] std::size_t bytes() const { return bytes_; }

    private:
        friend class CodePool;
        void swap(Piece& other) noexcept {
            std::swap(pool_, other.pool_);
            std::swap(chunk_, other.chunk_);
            std::swap(writable_, other.writable_);
            std::swap(executable_, other.executable_);
            std::swap(bytes_, other.bytes_);
            range_.swap(other.range_);
        }
        CodePool* pool_ = nullptr;
        std::size_t chunk_ = 0;
        std::byte* writable_ = nullptr;
        std::byte* executable_ = nullptr;
        std::size_t bytes_ = 0;
        Ranges::node_type
            range_;  // its entry among the free ranges, made in advance, so that freeing the piece takes no memory
    };

    CodePool() = default;
    CodePool(const CodePool&) = delete;

    [[nodiscard]] Result<Piece> allocate(std::size_t bytes);
    // Registers the process for make_ready(). Costs 10 ms once the process has threads, next to nothing before.
    static void prepare_process();
    // To be called after writing: from here on any thread that sees an address in the piece may execute it.
    static void make_ready(const Piece& piece);

private:
    struct Chunk {
        Descriptor file;
        Mapping writable, executable;  // views of the whole file
        Ranges free;
    };
    [[nodiscard]] Status add_chunk(std::size_t bytes) REQUIRES(mutex_);
    void release(Piece& piece);
    Mutex mutex_;
    std::vector<Chunk> chunks_ GUARDED_BY(mutex_);
};

}  // namespace rove::code
