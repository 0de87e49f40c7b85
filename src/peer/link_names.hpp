// LinkNames: which of a node's engines has the link of which name. Functions ask that for each call over another engine's link, so it is read
// without a lock.
//
// Threads: of() by any, at any time; set() and erase() by one at a time.
//
// Invariants: a name has one engine at most. At most half of the places are taken, so a search ends. `version_` is odd while places are
// being changed, and a reader that saw it odd, or another one afterwards, reads again (a sequence lock). It yields its core, because
// the thread that changes them may have none.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/ids.hpp"
#include "base/zero_pages.hpp"
#include "peer/peer_places.hpp"

namespace rove {

class LinkNames {
public:
    // Throws std::bad_alloc: no memory, or as many names as there may be.
    void set(NodeId name, unsigned engine);
    // Nothing, where another engine has the name by now.
    void erase(NodeId name, unsigned engine) noexcept;
    [[nodiscard]] std::optional<unsigned> of(NodeId name) const noexcept;

    static constexpr std::size_t kPlaces = std::size_t{1} << 16U;
    static_assert(kPlaces / 2 >= kPeersMax);

private:
    // 0: free. Otherwise the name, and 1 + the engine.
    using Place = std::atomic<std::uint64_t>;
    static constexpr std::uint64_t place_of(NodeId name, unsigned engine) {
        return std::uint64_t{name} << 32U | (engine + 1);
    }
    static constexpr NodeId name_in(std::uint64_t place) { return static_cast<NodeId>(place >> 32U); }
    static constexpr unsigned engine_in(std::uint64_t place) { return static_cast<std::uint32_t>(place) - 1; }
    // Where the search for a name begins: names that follow one another are far apart.
    static constexpr std::size_t first_of(NodeId name) { return name * 0x9E37'79B1U >> 16U; }
    static_assert(kPlaces == std::size_t{1} << 16U, "first_of() has 16 bits");
    // The place of that name, or the free one where it would be.
    [[nodiscard]] std::size_t find(NodeId name) const noexcept;

    ZeroPages<Place> places_{kPlaces};
    std::atomic<std::uint64_t> version_{0};
    std::size_t taken_ = 0;
};

}  // namespace rove
