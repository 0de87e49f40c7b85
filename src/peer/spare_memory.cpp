#include "peer/spare_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace rove {
namespace {

// If there is no memory for this message either, the error is the one that needs none.
tl::unexpected<Error> none_for(std::size_t bytes) try {
    return fail(ErrorCode::overloaded, "this machine has no memory for {} bytes that arrive", bytes);
} catch (const std::bad_alloc&) {
    return tl::unexpected<Error>(no_memory());
}

}  // namespace

LargeBytes::LargeBytes(LargeBytes&& other) noexcept
    : home_(std::move(other.home_)),
      heap_(std::move(other.heap_)),
      place_(std::exchange(other.place_, {})),
      size_(std::exchange(other.size_, 0)) {}

LargeBytes& LargeBytes::operator=(LargeBytes&& other) noexcept {
    if (this == &other) return *this;
    give_back();
    home_ = std::move(other.home_);
    heap_ = std::move(other.heap_);
    place_ = std::exchange(other.place_, {});
    size_ = std::exchange(other.size_, 0);
    return *this;
}

void LargeBytes::give_back() {
    if (home_) home_->keep(place_);
    home_.reset();
    heap_.reset();
    place_ = {};
    size_ = 0;
}

SpareMemory::~SpareMemory() {
    for (const auto& place : kept_) munmap(place.data(), place.size());
}

std::size_t SpareMemory::room_for(std::size_t bytes) {
    return bytes < kMappedPayloadBytesMin ? bytes : std::bit_ceil(bytes);
}

Result<LargeBytes> SpareMemory::take(std::size_t bytes) {
    LargeBytes taken;
    taken.size_ = bytes;
    if (bytes < kMappedPayloadBytesMin) {
        taken.heap_.reset(new (std::nothrow) std::byte[bytes]);  // not cleared
        if (!taken.heap_) return none_for(bytes);
        taken.place_ = {taken.heap_.get(), bytes};
        return taken;
    }
    const std::size_t wanted = room_for(bytes);
    {
        const MutexLock lock(mutex_);
        // The one that was used last of those of this size: it is the likeliest to be in the cache. None that is larger, for all of
        // its pages are there.
        const auto found =
            std::find_if(kept_.rbegin(), kept_.rend(), [wanted](const auto& place) { return place.size() == wanted; });
        if (found != kept_.rend()) {
            taken.place_ = *found;
            kept_.erase(std::next(found).base());
            kept_bytes_ -= taken.place_.size();
            ++away_;
            taken.home_ = shared_from_this();
            return taken;
        }
        // A place for each that may be given back: giving back takes no memory.
        if (const std::size_t places = kept_.size() + away_ + 1; kept_.capacity() < places) try {
                kept_.reserve(2 * places);
            } catch (const std::bad_alloc&) {
                return none_for(bytes);
            }
        ++away_;
    }
    void* const memory =
        mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        const MutexLock lock(mutex_);
        --away_;
        return none_for(bytes);
    }
    (void)madvise(memory, wanted, MADV_HUGEPAGE);  // a fault for 2 MiB, where the kernel can
    taken.home_ = shared_from_this();
    taken.place_ = {static_cast<std::byte*>(memory), wanted};
    return taken;
}

void SpareMemory::keep(std::span<std::byte> place) {
    const MutexLock lock(mutex_);
    kept_.push_back(place);
    --away_;
    kept_bytes_ += place.size();
    used_at_ = Clock::now();
}

bool SpareMemory::is_due(TimePoint now) {
    if (is_empty()) return false;
    const MutexLock lock(mutex_);
    return kept_bytes_ > most(now);
}

void SpareMemory::trim(TimePoint now) {
    for (;;) {  // the one that was used longest ago first, with the mutex free while it is unmapped
        std::span<std::byte> place;
        {
            const MutexLock lock(mutex_);
            if (kept_bytes_ <= most(now)) return;
            place = kept_.front();
            kept_bytes_ -= place.size();
            kept_.erase(kept_.begin());
        }
        munmap(place.data(), place.size());
    }
}

}  // namespace rove
