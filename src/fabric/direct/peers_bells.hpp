// PeersBells: the doorbells of peers that this process has open. Those that have not been rung for longest are closed and opened again when
// they are to be rung, so links cost no descriptors of their own. All links to one fabric share its bell.
//
// Threads: as Fabric (fabric.hpp).
//
// Invariant: at most kOpenMax are open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/direct/doorbell.hpp"

namespace rove::fabric {

class PeersBells {
public:
    // To open one again takes 16 us (median of 2,000), and the peer that it wakes some 100.
    static constexpr std::size_t kOpenMax = 64;

    struct Name {
        std::uint32_t pid = 0;
        ProcFile file;
        bool operator==(const Name&) const = default;
    };
    // Opens it, as it will be opened when it is to be rung. Errors: those of ProcFile::open().
    [[nodiscard]] Status open(const Name& name);
    // A bell that is closed, and cannot be opened any more, is not rung: its owner then sees what was sent when it next looks into its mailboxes
    // without having been woken, within 100 ms. That happens where descriptors are short, or the owner has made itself unreadable since (it
    // has changed its user, or called prctl(PR_SET_DUMPABLE)). Logged once.
    void ring(const Name& name) noexcept;
    // For a link that ends.
    void close(const Name& name) noexcept;

private:
    struct Opened {
        Name name;
        Doorbell bell;
    };
    [[nodiscard]] std::vector<Opened>::iterator find(const Name& name);

    bool has_complained_ = false;
    std::vector<Opened> opened_;  // the one that was rung last is the last
};

}  // namespace rove::fabric
