// Turns: what the thread that leads does in one turn, and how long it may sleep afterwards (Lead::Duties). It handles the frames that have
// arrived, ends calls that are late, notifies threads that wait, and at intervals cleans up links that have ended and frees memory.
//
// Threads: the leader, under the engine's lock, which is released while functions run and while memory is freed.
//
// Invariants: a step that finds no memory leaves things as they are, and is begun again in the next turn.
#pragma once

#include <functional>
#include <memory>

#include "engine/dispatcher.hpp"
#include "engine/left_frames.hpp"
#include "engine/peers.hpp"
#include "services/service.hpp"

namespace rove {

class Turns final : public Lead::Duties {
public:
    // The parts of the node that this one uses. They outlive it.
    struct Beside {
        Lead& lead;
        Runner& runner;
        Peers& peers;
        LinkEnds& link_ends;
        Dispatcher& dispatcher;
        LocalFrames& local;
        LeftFrames& left;
        OwnCalls& own_calls;
        RoomWaits& rooms;
        PayloadParts& payload_parts;
        AbsentMembers& absent;
        HousekeepingClock& housekeeping;
        Services services;
        const std::unique_ptr<fabric::Fabric>& fabric;
        const std::shared_ptr<SpareMemory>& spare_memory;
    };
    explicit Turns(Beside beside)
        : lead_(beside.lead),
          runner_(beside.runner),
          peers_(beside.peers),
          link_ends_(beside.link_ends),
          dispatcher_(beside.dispatcher),
          local_(beside.local),
          left_(beside.left),
          own_calls_(beside.own_calls),
          rooms_(beside.rooms),
          payload_parts_(beside.payload_parts),
          absent_(beside.absent),
          housekeeping_(beside.housekeeping),
          services_(beside.services),
          fabric_(beside.fabric),
          spare_memory_(beside.spare_memory) {}

    unsigned work(Lead::Turn& turn) override REQUIRES(lock_of<EngineLock>);
    void await_signals(Lead::Turn& turn) noexcept override REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool waits_for_room() const override REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Lead::Rest rest(const Lead::Turn& turn) override REQUIRES(lock_of<EngineLock>);
    void woke_up() override REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool runs_function() const override REQUIRES(lock_of<EngineLock>);
    void take_function_away() noexcept override REQUIRES(lock_of<EngineLock>);
    void follower_came() override REQUIRES(lock_of<EngineLock>);

    // Whether there is anything for a leader to do but that peer's calls, which it reads itself (Gathering).
    [[nodiscard]] bool others_wait(const PeerState& read, TimePoint now) REQUIRES(lock_of<EngineLock>);
    // To be called every second: wakes the leader if a frame waits whose bell, or whose bit on the board, somebody else has taken back, because peers
    // that share memory share these. While the node is idle its leader does not look by itself.
    void look_for_missed() REQUIRES(lock_of<EngineLock>);
    // Before that: looks at some of the cold mailboxes, unless the leader does so, and returns how many of `left` are left. The lock is to be free in
    // between.
    [[nodiscard]] std::size_t look_at_cold_of_idle(std::size_t left) REQUIRES(lock_of<EngineLock>);
    // Has links that are quiet give memory back, and wakes the leader where it can remove peers that nobody needs. To be called every second, until
    // none of `left` is left: at half of all peers (or 256, if that is more) in any case. Looks at some, and returns how many are left. It ends early
    // where a link has given pages back, which takes long, so that the lock is free in between.
    [[nodiscard]] std::size_t tend_memory(std::size_t left) REQUIRES(lock_of<EngineLock>);
    // The next turn asks the fabric to make progress.
    void progress_soon() REQUIRES(lock_of<EngineLock>) { progress_in_ = 1; }

private:
    unsigned serve_all(Lead::Turn& turn) REQUIRES(lock_of<EngineLock>);
    unsigned tend(Lead::Turn& turn, unsigned handled) REQUIRES(lock_of<EngineLock>);
    unsigned housekeep(Lead::Turn& turn) REQUIRES(lock_of<EngineLock>);
    unsigned give_back_memory(Lead::Turn& turn, TimePoint now) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool progress_is_due(unsigned handled) REQUIRES(lock_of<EngineLock>);
    unsigned look_after(const std::shared_ptr<PeerState>& peer, TimePoint now, Lead::Turn& turn)
        REQUIRES(lock_of<EngineLock>);
    void look_at_cold(TimePoint now) REQUIRES(lock_of<EngineLock>);
    unsigned prune() REQUIRES(lock_of<EngineLock>);
    void look_at_cold_and_cool(TimePoint now) REQUIRES(lock_of<EngineLock>);

    Lead& lead_;
    Runner& runner_;
    Peers& peers_;
    LinkEnds& link_ends_;
    Dispatcher& dispatcher_;
    LocalFrames& local_;
    LeftFrames& left_;
    OwnCalls& own_calls_;
    RoomWaits& rooms_;
    PayloadParts& payload_parts_;
    AbsentMembers& absent_;
    HousekeepingClock& housekeeping_;
    const Services services_;
    const std::unique_ptr<fabric::Fabric>& fabric_ GUARDED_BY(lock_of<EngineLock>);
    const std::shared_ptr<SpareMemory>& spare_memory_;
    bool was_cut_short_ GUARDED_BY(lock_of<EngineLock>) = false;    // the last turn lost the lead before tend()
    std::size_t served_first_ GUARDED_BY(lock_of<EngineLock>) = 0;  // of the peers, by whoever leads next
    // Steps until the fabric is given a turn where no link needs it.
    unsigned progress_in_ GUARDED_BY(lock_of<EngineLock>) = 1;
    TimePoint progressed_at_ GUARDED_BY(lock_of<EngineLock>){};
    TimePoint cooled_at_ GUARDED_BY(lock_of<EngineLock>){}, looked_at_cold_at_ GUARDED_BY(lock_of<EngineLock>){};
    std::size_t tended_ GUARDED_BY(lock_of<EngineLock>) = 0;  // of all peers, in turn: tend_memory()
    std::size_t pruned_ GUARDED_BY(lock_of<EngineLock>) = 0;  // of all peers, in turn: whether anybody needs it
};

}  // namespace rove
