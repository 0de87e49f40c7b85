// BetweenEngines: which of a node's engines has the link to whom, and the frames and notices that one engine leaves for another because of that.
// A reply may arrive over a link of one engine for a caller whose link, or whose call, another engine has.
//
// Threads: any. What waits for each engine has a lock of its own, which is taken under that of an engine, and under which nothing else is asked;
// an engine is woken under it, which needs no lock. So an engine that leaves something for another takes no lock that a third one wants, unless
// that leaves something for the same one. Which engine has a link is asked without a lock. A node with one engine takes none of these.
//
// Invariants: a name has a link of one engine at most. What is left for an engine is taken once, and in the order in which it was left. At most
// kLeftBytesMax bytes of frames wait for an engine; a further reply becomes an error. Errors, notices and questions for code are kLeftSmallMax
// at most. What is of code may take three quarters of either. Beyond that a question is answered by the engine that got it, and a piece of code,
// a lack, or a question that comes back is dropped: whoever asked waits for a limited time.
// While half of either waits for an engine that is still taking some, none takes frames from its peers (must_wait): they wait in their mailboxes.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/mutex.hpp"
#include "peer/link_names.hpp"
#include "wire/frame.hpp"

namespace rove {

inline constexpr std::size_t kLeftBytesMax = 32UL * 1024 * 1024;
// At some 200 bytes each, 13 MiB.
inline constexpr std::size_t kLeftSmallMax = 65536;
// How long the others wait for an engine that takes nothing of what is left for it.
inline constexpr auto kCatchesUpFor = std::chrono::milliseconds(100);

// Who leaves it: that engine, and where it is about a question for code, the peer that asks, by the name that Routes gives it.
struct LeftBy {
    unsigned engine = 0;
    NodeId peer = kNoNode;
};

// What one engine leaves for another.
struct LeftForEngine {
    enum class What : std::uint8_t {
        to_caller,    // an answer, for a peer of that engine
        to_own_call,  // an answer to a call that the engine has made: of this node, or of another member
        to_lower,     // an answer for a node that this one has never met, for a member with a lower id, which may have
        answered,     // the call that this header names has been answered, so nobody has to report it as lost
        caller_left,  // the peer with the name in `header.node` has gone: so are the calls that it made, and its questions
        // Of code, each with the peer that asks for it (LeftBy::peer):
        need,             // that peer's question, for the engine with the link towards `header.node`
        need_not_passed,  // it could not be passed on from there, so its own engine goes on with it
        code,             // a piece of the answer, for that peer
        lack,             // the answer that there is none, for that peer
    };
    What what = What::to_caller;
    LeftBy by{};
    ByteBuffer frame;  // whole, for wire::frame_in()
};

class BetweenEngines {
public:
    explicit BetweenEngines(unsigned engines);
    BetweenEngines(const BetweenEngines&) = delete;

    [[nodiscard]] unsigned count() const { return count_; }
    // `wake` wakes that engine; any thread calls it, without the lock of any engine. null: the engine is woken no more.
    void wake_by(unsigned engine, std::function<void()> wake);

    // ---- links, by the name that Routes gives a peer
    // Throws std::bad_alloc.
    void entered(unsigned engine, NodeId name) EXCLUDES(names_mutex_);
    void left(unsigned engine, NodeId name) EXCLUDES(names_mutex_);
    // Without a lock.
    [[nodiscard]] std::optional<unsigned> with_link(NodeId name) const {
        return links_ ? links_->of(name) : std::nullopt;
    }

    // ---- calls: their generations say which engine has made them
    // The first power of two that is not less than the number of engines.
    [[nodiscard]] std::uint32_t generation_step() const { return step_; }
    // Nothing: no engine of this node has.
    [[nodiscard]] std::optional<unsigned> with_call(std::uint32_t generation) const {
        const unsigned engine = generation % step_;
        return engine < count() ? std::optional(engine) : std::nullopt;
    }

    // ---- what is left
    // Wakes that engine. For an answer that finds no room, or no memory, an error is left; false: not even that.
    bool leave(unsigned to, LeftForEngine::What what, const wire::Frame& frame, LeftBy by = {}) noexcept;
    // Without the lock. What was left before its engine was woken is seen by a leader that has begun its work after that (Wakes::begin_work).
    [[nodiscard]] bool has_any_for(unsigned engine) const {
        return engines_[engine].count.load(std::memory_order_relaxed) > 0;
    }
    [[nodiscard]] std::optional<LeftForEngine> take(unsigned engine);
    // True: half of what may wait for an engine does, and the engine takes some. So no frames are taken now that may leave more for it; those
    // that are being handled still find room. Nobody waits for an engine that has taken nothing for kCatchesUpFor: it has no thread, or none
    // that is not in a function, and the others' peers are not to wait for that.
    [[nodiscard]] bool must_wait() const { return behind_.load(std::memory_order_relaxed) > 0 && one_catches_up(); }

private:
    struct Waiting {
        LeftForEngine left;
        bool small;  // a notice, a question for code, or an error in place of an answer
    };
    struct alignas(64) One {
        mutable Mutex mutex;
        std::deque<Waiting> waiting GUARDED_BY(mutex);
        std::atomic<std::size_t> count{0};        // its size; changed under the lock, and read without
        std::size_t bytes GUARDED_BY(mutex) = 0;  // of frames that are not small
        std::size_t small GUARDED_BY(mutex) = 0;  // how many are
        // Changed under the lock, and read without:
        std::atomic<bool> behind{false};
        std::atomic<TimePoint> taken_at{};  // by its engine, while it was behind; or when it fell behind
        std::function<void()> wake GUARDED_BY(mutex);
        [[nodiscard]] bool is_behind() const REQUIRES(mutex) {
            return bytes > kLeftBytesMax / 2 || small > kLeftSmallMax / 2;
        }
    };
    [[nodiscard]] bool add(One& to, Waiting added) REQUIRES(to.mutex);
    template <typename Change>
    void count(One& of, const Change& change) REQUIRES(of.mutex);
    [[nodiscard]] bool one_catches_up() const;

    const unsigned count_;
    const std::uint32_t step_;
    std::atomic<unsigned> behind_{0};  // how many engines are; changed under their locks
    std::deque<One> engines_;
    Mutex names_mutex_;                       // of whoever changes them
    const std::unique_ptr<LinkNames> links_;  // null: there is one engine
};

// What one engine knows of the others of its node.
//
// Threads and invariants: as BetweenEngines says. It has no state of its own.
class OtherEngines {
public:
    OtherEngines(BetweenEngines& between, unsigned engine) : between_(between), engine_(engine) {}

    [[nodiscard]] bool any() const { return between_.count() > 1; }
    void entered(NodeId name) const {
        if (any()) between_.entered(engine_, name);
    }
    void left(NodeId name) const {
        if (any()) between_.left(engine_, name);
    }
    // Another engine with a link to the peer of that name.
    [[nodiscard]] std::optional<unsigned> with_link(NodeId name) const {
        return any() ? other(between_.with_link(name)) : std::nullopt;
    }
    // Another engine that has made the call of that generation.
    [[nodiscard]] std::optional<unsigned> with_call(std::uint32_t generation) const {
        return any() ? other(between_.with_call(generation)) : std::nullopt;
    }
    // `peer`: LeftBy::peer.
    bool leave(unsigned to, LeftForEngine::What what, const wire::Frame& frame, NodeId peer = kNoNode) const noexcept {
        return between_.leave(to, what, frame, {engine_, peer});
    }
    void leave_to_all(LeftForEngine::What what, const wire::FrameHeader& header) const noexcept {
        for (unsigned each = 0; any() && each < between_.count(); ++each)
            if (each != engine_) (void)between_.leave(each, what, {header, {}, {}}, {engine_});
    }
    // The first engine from `from` on, and another than this one, that has a link to a member with a lower id.
    [[nodiscard]] std::optional<unsigned> with_lower(NodeId id, unsigned from) const;
    [[nodiscard]] unsigned index() const { return engine_; }
    [[nodiscard]] bool must_wait() const { return any() && between_.must_wait(); }
    [[nodiscard]] bool have_left_any() const { return any() && between_.has_any_for(engine_); }
    [[nodiscard]] std::optional<LeftForEngine> take() const { return between_.take(engine_); }
    // Of the calls that this engine makes.
    [[nodiscard]] std::uint32_t generation_step() const { return between_.generation_step(); }
    [[nodiscard]] std::uint32_t first_generation(std::uint32_t random) const {
        return random - random % generation_step() + engine_;
    }

private:
    [[nodiscard]] std::optional<unsigned> other(std::optional<unsigned> engine) const {
        return engine != engine_ ? engine : std::nullopt;
    }

    BetweenEngines& between_;
    const unsigned engine_;
};

}  // namespace rove
