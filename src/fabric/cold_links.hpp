// What a cold link is (MayBeCold), and the cold links of a fabric (ColdLinks): those that nobody looks at, because nothing has come over them for
// some time, and those of them to which something has happened since, until Fabric::take_warmed() has reported them.
//
// Threads: as Fabric (fabric.hpp).
//
// Invariants: a link is in at most one of the two lists, once, and knows its place. Both have room for all links that are cold or warmed, so
// that only add() needs memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rove::fabric {

class ColdLinks;

// Whose a link is, for whoever takes it from Fabric::take_warmed().
class LinkHolder {
public:
    // The link was cold, and is to be looked at again.
    virtual void link_warmed() noexcept = 0;

protected:
    ~LinkHolder() = default;
};

// A link, as far as it may be cold.
class MayBeCold {
public:
    MayBeCold() = default;
    MayBeCold(const MayBeCold&) = delete;

    [[nodiscard]] LinkHolder* holder() const { return holder_; }
    void set_holder(LinkHolder* holder) { holder_ = holder; }

    // Whether its fabric learns of what arrives without looking at it.
    [[nodiscard]] virtual bool can_be_cold() const { return false; }
    // Nobody looks at it, until the fabric reports it.
    [[nodiscard]] bool is_cold() const { return warmth_ == Warmth::cold; }
    // Whether it is warm, and the fabric has not reported that yet.
    [[nodiscard]] bool is_reported_next() const { return warmth_ == Warmth::warmed; }
    // Whether the sender has not yet said on the board that it has sent something. For links that have a place there.
    [[nodiscard]] virtual bool announces_cold() const { return false; }
    // What it means that its sender's bit on the board was set. A slow sender may have taken a later announcement, and said so before it sends: so the
    // link is warm from here on, whether something has arrived or not. But a hostile sender could keep its links warm for nothing: where nothing came
    // the last time, the sender is only to say again what it sends, and warm_if_arrived() follows once all senders see that (SleepFence).
    enum class Said : std::uint8_t { nothing, unlikely, something };
    [[nodiscard]] Said hear() noexcept;
    void warm_if_arrived() noexcept;
    // Something has happened to the link: if it is cold, the fabric reports it.
    void warm() noexcept {
        if (is_cold()) [[unlikely]]
            warm_rarely();
    }

protected:
    virtual ~MayBeCold();
    // Has the sender say on the board when it sends something, or no longer.
    virtual void announce_cold(bool /*cold*/) noexcept {}
    // Has the sender of a cold link, which has said something, do so again.
    virtual void announce_again() noexcept {}
    // For links that have a place on the board: the frames that have been taken from it, and one more where another one waits.
    [[nodiscard]] virtual std::uint64_t frames_seen() const { return 0; }

private:
    friend class ColdLinks;
    enum class Warmth : std::uint8_t { warm, cold, warmed };  // warmed: not reported yet

    void warm_rarely() noexcept;

    void judge_bit() noexcept;

    Warmth warmth_ = Warmth::warm;
    bool was_said_ = false;    // it is warm because of its bit
    bool is_doubted_ = false;  // it was, the last time, and nothing came
    std::uint64_t frames_when_cooled_ = 0;
    std::size_t listed_at_ = 0;
    ColdLinks* lists_ = nullptr;  // which have it in one of them
    LinkHolder* holder_ = nullptr;
};

class ColdLinks {
public:
    // The link is warm and can be cold. Throws std::bad_alloc, and nothing has changed.
    void add(MayBeCold& link);
    // Takes a link off the list that it is on: it is warm.
    void forget(MayBeCold& link) noexcept;

    [[nodiscard]] const std::vector<MayBeCold*>& cold() const { return cold_; }
    [[nodiscard]] bool has_warmed() const { return !warmed_.empty(); }
    // One to which something has happened; it is warm from here on. Precondition: has_warmed().
    [[nodiscard]] MayBeCold& take_warmed() noexcept;

private:
    friend class MayBeCold;
    void note_warmed(MayBeCold& link) noexcept;
    static void take_out(std::vector<MayBeCold*>& list, const MayBeCold& link) noexcept;

    std::vector<MayBeCold*> cold_, warmed_;
};

}  // namespace rove::fabric
