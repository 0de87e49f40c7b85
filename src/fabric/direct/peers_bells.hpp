// PeersBells: the doorbells of peers that this process has open. All nodes of a process share them, and all links to one fabric share its bell, so
// links cost no descriptors of their own. The last link that uses a bell closes it. Of the others those that have not been rung for longest are
// closed, and opened again when they are to be rung.
//
// Threads: any; its lock is taken last of all. A peer can hold up whoever opens, rings or closes its bell (SECURITY.md), so that is done without the
// lock, and holds up only those nodes that have a link to this peer.
//
// Invariants: at most kOpenMax stay open; a thread that opens one has it beside these for a moment. Each bell is in one of the two lists, and its
// place there stays valid for as long as it has a link.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "fabric/direct/doorbell.hpp"

namespace rove::fabric {

class PeersBells {
public:
    // To open one again takes 16 us (median of 2,000), and the peer that it wakes some 100.
    static constexpr std::size_t kOpenMax = 128;
    // All but this many are closed when they have not been rung for some time: idle peers cost no descriptors.
    static constexpr std::size_t kStayOpen = 4;
    static constexpr auto kQuietFor = std::chrono::seconds(3);

    struct Name {
        std::uint32_t pid = 0;
        ProcFile file;
        auto operator<=>(const Name&) const = default;
    };

private:
    struct Bell {
        Name name;
        std::size_t links = 0;
        std::shared_ptr<const Doorbell> opened;  // null: closed
        TimePoint rung_at{};
    };
    using Bells = std::list<Bell>;

public:
    // A link's share in a bell. It ends before the process's PeersBells, which last for ever.
    class Use {
    public:
        Use() = default;
        Use(Use&& other) noexcept
            : of_(std::exchange(other.of_, nullptr)), bell_(std::exchange(other.bell_, Bells::iterator())) {}
        Use& operator=(Use&& other) noexcept {
            std::swap(of_, other.of_);
            std::swap(bell_, other.bell_);
            return *this;
        }
        ~Use() {
            if (of_ != nullptr) of_->leave(bell_);
        }
        // A bell that is closed, and cannot be opened any more, is not rung: its owner then sees what was sent when it next looks into its
        // mailboxes without having been woken, which may take it two seconds. That happens where descriptors are short, or the owner has made
        // itself unreadable since (it has changed its user, or called prctl(PR_SET_DUMPABLE)). Logged once. Precondition: PeersBells::open() has
        // returned this.
        void ring() const noexcept { of_->ring(bell_); }

    private:
        friend class PeersBells;
        Use(PeersBells& of, Bells::iterator bell) : of_(&of), bell_(bell) {}
        PeersBells* of_ = nullptr;
        Bells::iterator bell_;
    };

    // Those of this process. The child of a fork has its own: its parent's nodes are not used there.
    [[nodiscard]] static PeersBells& of_process();
    // Opens it, as it will be opened when it is to be rung. Errors: those of ProcFile::open().
    [[nodiscard]] Result<Use> open(const Name& name) EXCLUDES(mutex_);
    // Closes those that have not been rung for kQuietFor. To be called from time to time.
    void close_quiet(TimePoint now) noexcept EXCLUDES(mutex_);

private:
    using Opened = std::shared_ptr<const Doorbell>;

    void ring(Bells::iterator bell) noexcept EXCLUDES(mutex_);
    void leave(Bells::iterator bell) noexcept EXCLUDES(mutex_);
    [[nodiscard]] Result<Opened> open_now(const Name& name) EXCLUDES(mutex_);
    [[nodiscard]] Result<Opened> open_again(Bells::iterator bell) EXCLUDES(mutex_);
    // Takes note of the opened bell, or of the one that another thread has opened since. Returns that one.
    [[nodiscard]] Opened keep(Bells::iterator bell, Opened opened) noexcept EXCLUDES(mutex_);
    void note_rung(Bells::iterator bell) REQUIRES(mutex_);
    // The bell that has not been rung for longest, which the caller closes, by ending it without the lock. Null: no more than that are open.
    [[nodiscard]] Opened take_oldest_beyond(std::size_t open) noexcept EXCLUDES(mutex_);
    [[nodiscard]] Opened take_oldest() noexcept REQUIRES(mutex_);

    Mutex mutex_;
    Bells open_ GUARDED_BY(mutex_), closed_ GUARDED_BY(mutex_);  // the one that was rung last is the last
    std::map<Name, Bells::iterator> by_name_ GUARDED_BY(mutex_);
    std::atomic<bool> has_complained_ = false;
};

}  // namespace rove::fabric
