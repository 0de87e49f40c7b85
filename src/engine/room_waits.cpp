#include "engine/room_waits.hpp"

#include "peer/names.hpp"

namespace rove {

using fabric::Traffic;

bool RoomWaits::One::has_room() const {
    if (!peer.linked()) return true;  // there will be no room: the wait ends with an error
    const bool free = traffic == Traffic::prompt || !peer.sends.has_open_frame();
    return free && peer.outbox_of(traffic).is_empty() && peer.link()->has_room(traffic, bytes);
}

unsigned RoomWaits::tell() {
    unsigned told = 0;
    for (One* wait : waits_)
        if (!wait->told && wait->has_room()) {
            wait->told = true;
            ++told;
        }
    if (told > 0) lead_.tell_waiting();
    return told;
}

Status RoomWaits::wait(PeerState& peer, HeldLock& lock, Traffic traffic, std::size_t bytes, Deadline deadline,
                       Runner::Manner manner) {
    One wait{peer, traffic, bytes};
    if (!wait.has_room()) {
        struct Noted {
            std::vector<One*>& all;
            One* wait;
            ~Noted() { std::erase(all, wait); }  // also where memory runs out
        };
        waits_.push_back(&wait);
        const Noted noted{waits_, &wait};
        lead_.expect_room();  // the leader may be sleeping until a frame arrives
        const bool room = runner_.wait_until(
            lock, deadline,
            [&wait]() REQUIRES(lock_of<EngineLock>) {
                wait.told = false;  // it is looking itself
                return wait.has_room();
            },
            manner);
        if (!room && runner_.is_ending()) return tl::unexpected<Error>(was_shut_down(name_()));
        if (!room)
            return fail(ErrorCode::timed_out,
                        "the mailbox of {} had no room until the time that the call was given was over: it is stopped, "
                        "or busy; the call was not sent",
                        who(peer));
    }
    if (!peer.linked())
        return fail(ErrorCode::disconnected, "{} was lost while a call waited for room{}", who(peer),
                    because(peer.gone()));
    return {};
}

}  // namespace rove
