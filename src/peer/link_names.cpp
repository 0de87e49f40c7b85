#include "peer/link_names.hpp"

#include <sched.h>

#include <new>

namespace rove {
namespace {

// Makes the version odd while it exists.
class Changing {
public:
    explicit Changing(std::atomic<std::uint64_t>& version) : version_(version) {
        version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_release);
    }
    ~Changing() { version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
    Changing(const Changing&) = delete;

private:
    std::atomic<std::uint64_t>& version_;
};

}  // namespace

std::size_t LinkNames::find(NodeId name) const noexcept {
    std::size_t at = first_of(name);
    for (std::size_t looks = 0; looks < kPlaces; ++looks, at = (at + 1) % kPlaces) {
        const std::uint64_t place = places_[at].load(std::memory_order_relaxed);
        if (place == 0 || name_in(place) == name) break;
    }
    return at;
}

void LinkNames::set(NodeId name, unsigned engine) {
    const std::size_t at = find(name);
    const bool is_new = places_[at].load(std::memory_order_relaxed) == 0;
    if (is_new && taken_ == kPlaces / 2) throw std::bad_alloc();
    places_[at].store(place_of(name, engine), std::memory_order_release);  // one place: readers see it or not
    taken_ += is_new ? 1 : 0;
}

// The places after it move back, so that searches for their names still find them.
void LinkNames::erase(NodeId name, unsigned engine) noexcept {
    std::size_t free = find(name);
    if (places_[free].load(std::memory_order_relaxed) != place_of(name, engine)) return;
    const Changing changing(version_);
    --taken_;
    for (std::size_t at = (free + 1) % kPlaces;; at = (at + 1) % kPlaces) {
        const std::uint64_t place = places_[at].load(std::memory_order_relaxed);
        if (place == 0) break;
        const std::size_t first = first_of(name_in(place));
        if ((at - first) % kPlaces < (at - free) % kPlaces) continue;  // it would be before its first place
        places_[free].store(place, std::memory_order_relaxed);
        free = at;
    }
    places_[free].store(0, std::memory_order_relaxed);
}

std::optional<unsigned> LinkNames::of(NodeId name) const noexcept {
    for (;;) {
        const std::uint64_t version = version_.load(std::memory_order_acquire);
        const std::uint64_t place = places_[find(name)].load(std::memory_order_acquire);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (version % 2 != 0 || version_.load(std::memory_order_relaxed) != version) {
            (void)sched_yield();
            continue;
        }
        if (place == 0 || name_in(place) != name) return std::nullopt;
        return engine_in(place);
    }
}

}  // namespace rove
