// Memory for what travels in parts: payloads that arrive, and results that were not taken yet. It is mapped and not cleared: its pages
// are made as bytes are written into them, so what a peer merely announces costs nothing. What is given back is kept for the next
// payload for a while, because the page faults of new memory take several times as long as copying into it does.
//
// Threads: any. take() and giving back take as long for much memory as for little, so both may be under the engine's lock; trim(),
// which unmaps, may not.
//
// Invariants: `kept_` has a reserved place for each mapping that is in use, so giving back needs no memory and cannot fail. kept_bytes_ is the
// sum of the sizes of `kept_`. A LargeBytes keeps the SpareMemory alive to which it is given back.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "wire/frame.hpp"

namespace rove {

// The memory that is kept for later payloads: a payload and a result of the largest size.
inline constexpr std::size_t kSpareBytesMax = 2 * wire::kMessageBytesMax;
// For how long it is kept while none of it is used.
inline constexpr auto kSpareFor = std::chrono::seconds(2);
// Less than this is on the heap: with 1 GiB of payloads and 1 GiB of results there are 8,192 mappings at most.
inline constexpr std::size_t kMappedPayloadBytesMin = 256UL * 1024;

class SpareMemory;

// Memory that is given back to its SpareMemory, or to the heap, when this is destroyed. It is not cleared: it may hold bytes of earlier use.
class LargeBytes {
public:
    LargeBytes() = default;
    LargeBytes(LargeBytes&& other) noexcept;
    LargeBytes& operator=(LargeBytes&& other) noexcept;
    ~LargeBytes() { give_back(); }

    [[nodiscard]] std::byte* data() const { return place_.data(); }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] Bytes bytes() const { return place_.first(size_); }
    // The memory that it takes: less than twice its size.
    [[nodiscard]] std::size_t room() const { return place_.size(); }

private:
    friend class SpareMemory;
    void give_back();
    std::shared_ptr<SpareMemory> home_;  // null: `heap_` has it
    std::unique_ptr<std::byte[]> heap_;
    std::span<std::byte> place_;  // all that there is
    std::size_t size_ = 0;
};

class SpareMemory : public std::enable_shared_from_this<SpareMemory> {
public:
    SpareMemory() = default;
    SpareMemory(const SpareMemory&) = delete;
    ~SpareMemory();

    // The memory that this many bytes take: mappings have few sizes, so that most of the kept ones can be reused.
    [[nodiscard]] static std::size_t room_for(std::size_t bytes);
    // overloaded: the machine has no memory.
    [[nodiscard]] Result<LargeBytes> take(std::size_t bytes);
    // Unmaps what is beyond the bound, and everything where none of it was used for kSpareFor.
    void trim(TimePoint now);
    // Whether trim() has something to do.
    [[nodiscard]] bool is_due(TimePoint now);
    // Whether more is kept than should be, and whether nothing is. Both without the mutex.
    [[nodiscard]] bool is_over() const { return kept_bytes_.load(std::memory_order_relaxed) > kSpareBytesMax; }
    [[nodiscard]] bool is_empty() const { return kept_bytes_.load(std::memory_order_relaxed) == 0; }

private:
    friend class LargeBytes;
    void keep(std::span<std::byte> place);
    [[nodiscard]] std::size_t most(TimePoint now) const REQUIRES(mutex_) {
        return now - used_at_ > kSpareFor ? 0 : kSpareBytesMax;
    }
    Mutex mutex_;
    std::vector<std::span<std::byte>> kept_ GUARDED_BY(mutex_);  // the one that was given back last at the end
    std::size_t away_ GUARDED_BY(mutex_) = 0;                    // mapped and not here: kept_ has a place for each
    TimePoint used_at_ GUARDED_BY(mutex_){};
    std::atomic<std::size_t> kept_bytes_{0};  // written under the mutex, and read without it
};

// Trims when it is destroyed, if there is more than is to be kept: for functions that have given memory back under a lock, and destroy this
// when they have released the lock.
class TrimAtEnd {
public:
    TrimAtEnd() = default;
    explicit TrimAtEnd(const std::shared_ptr<SpareMemory>& memory) {
        if (memory->is_over()) memory_ = memory;
    }
    TrimAtEnd(TrimAtEnd&&) = default;
    TrimAtEnd& operator=(TrimAtEnd&&) = default;
    ~TrimAtEnd() {
        if (memory_) memory_->trim(Clock::now());
    }

private:
    std::shared_ptr<SpareMemory> memory_;
};

}  // namespace rove
