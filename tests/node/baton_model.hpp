// Threads that hand on the lead, as small state machines whose steps call the node's own Baton: see baton_test.cpp. Their code is written
// after that of Lead and Runner, and after Engine::end, by hand, without Gathering::mind_the_lead, payloads that are held back,
// threads that cannot be replaced, wait_while_led and the node's telling of callbacks at its end.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "baton_scene.hpp"
#include "choices.hpp"
#include "lead/baton.hpp"
#include "lead/lookout.hpp"

namespace rove {

// Writes a state as a key. Numbers that only grow count as "the newest" or "an older one".
struct BatonView {
    static void write(const Baton& baton, std::string& key) {
        const auto bits = [&key](std::initializer_list<bool> flags) {
            unsigned sum = 0;
            for (const bool flag : flags) sum = sum * 2 + (flag ? 1 : 0);
            key.push_back(static_cast<char>(sum));
        };
        bits({baton.leading_, baton.yields_, baton.quiet_leads_, baton.idle_, baton.asleep_, baton.offered_,
              baton.offered_for_long_, baton.watched_});
        bits({baton.waiter_watches_, baton.watch_rests_, baton.standby_rests_});
        for (const int count : {baton.sleeping_, baton.waiting_, baton.quiet_, baton.followers_})
            key.push_back(static_cast<char>(count));
    }
    static bool is_offered(const Baton& baton) { return baton.offered_; }
    static std::uint64_t runs(const Baton& baton) { return baton.runs_; }
    static std::uint64_t waits(const Baton& baton) { return baton.waits_; }
};

namespace baton_model {

// ---- a state

constexpr int kThreadsMax = 5, kDepthMax = 8, kCallsMax = 3;
constexpr std::size_t kFirstOfCalls = kThreadsMax;  // among replies

enum class Kind : std::uint8_t { own_loop, standby, user, wait_until, lead_step, function };
enum class Place : std::uint8_t { ready, waits, follows, stands_by, sleeps, ended };

struct Frame {
    Kind kind = Kind::user;
    std::uint8_t at = 0;       // where in its code
    std::uint8_t what = 0;     // which reply, which call, or which operation
    bool quiet = false;        // wait_until
    bool timed = false;        // wait_until
    bool is_late = false;      // wait_until: the time is over
    bool untold = false;       // wait_until: it has handed the lead over, and nobody knows
    bool rests = false;        // lead_step: it may idle
    bool handled = false;      // lead_step
    bool watches = false;      // own_loop, wait_until; standby: it looks now and then …
    bool resting = false;      // … or not before it is told to
    bool handed_over = false;  // function
    bool replaced = false;     // function
    std::uint64_t term = 0;    // function: in_user_code_.term
    Baton::Turn turn{.own = false};
    Lookout::Seen seen{};
};

struct Thread {
    Place place = Place::ended;
    bool told = false;     // at a condition variable
    bool handled = false;  // by the lead_step that has just ended
    std::int8_t depth = 0;
    std::array<Frame, kDepthMax> stack{};
    Frame& top() { return stack[static_cast<std::size_t>(depth - 1)]; }
    const Frame& top() const { return stack[static_cast<std::size_t>(depth - 1)]; }
    Frame& below() { return stack[static_cast<std::size_t>(depth - 2)]; }
};

enum class Reply : std::uint8_t { unasked, flying, arrived, ended };

struct World {
    Baton baton;
    std::array<Thread, kThreadsMax> threads{};
    std::array<Reply, kThreadsMax + kCallsMax> replies{};  // of users first, of functions after them
    std::uint8_t arrived = 0, taken = 0;                   // calls
    std::array<bool, kCallsMax> finished{};
    std::int8_t running = -1;  // the thread in whose function the leader is
    std::int8_t long_runs = 0;
    std::int8_t quiet_runs = 0, made = 0;  // threads that have others in their place, and those
    bool attention = false, kicked = false, announced = false;
    bool stopping = false, ending = false;
};

// ---- the steps

class Machine {
public:
    Machine(const Scene& scene, World& world, Choices& choices) : scene_(scene), w_(world), choices_(choices) {}

    [[nodiscard]] bool can_go(int which) const {
        const Thread& thread = w_.threads[static_cast<std::size_t>(which)];
        switch (thread.place) {
            case Place::ended: return false;
            case Place::waits: return thread.told || thread.top().timed || thread.top().watches;
            case Place::follows:
            case Place::stands_by: return thread.told || (thread.top().watches && !thread.top().resting);
            case Place::sleeps: return w_.kicked || below_is_timed(thread);
            case Place::ready: break;
        }
        return !(thread.top().kind == Kind::function && in_long(thread)) || long_may_end();
    }
    // From where the thread stands to where it releases the lock next.
    void go(int which) {
        self_ = which;
        Thread& thread = me();
        thread.told = false;
        if (std::exchange(thread.place, Place::ready) == Place::sleeps) {
            w_.kicked = false;  // epoll_wait returns: it has taken in what woke it, and wants the lock now
            return;
        }
        for (running_ = true; running_ && thread.depth > 0;) switch (thread.top().kind) {
                case Kind::own_loop: own_loop(thread.top()); break;
                case Kind::standby: standby(thread.top()); break;
                case Kind::user: user(thread.top()); break;
                case Kind::wait_until: wait_until(thread.top()); break;
                case Kind::lead_step: lead_step(thread.top()); break;
                case Kind::function: function(thread.top()); break;
            }
        if (thread.depth == 0) thread.place = Place::ended;
    }
    [[nodiscard]] bool can_arrive(std::size_t reply) const {
        return w_.replies[reply] == Reply::flying && !(scene_.last_answers_first && reply == kFirstOfCalls) &&
               (scene_.reply_needs < 0 || w_.finished[static_cast<std::size_t>(scene_.reply_needs)]);
    }
    void arrive(std::size_t reply) {
        w_.replies[reply] = Reply::arrived;
        ring();
    }
    [[nodiscard]] bool can_be_called() const { return w_.arrived < scene_.calls.size(); }
    void be_called() {
        ++w_.arrived;
        ring();
    }
    // Phases 3 and 4 of shut_down(), and what the thread does between them: it looks every millisecond.
    void stop() {
        w_.stopping = true;
        for (Thread& thread : w_.threads)
            if (thread.place == Place::follows || thread.place == Place::stands_by) thread.told = true;
    }
    void end() {
        w_.ending = true;
        for (Reply& reply : w_.replies)
            if (reply != Reply::unasked) reply = Reply::ended;
        tell_waiting();
    }
    void wake_leader() {
        w_.attention = true;
        if (w_.baton.has_sleeping()) w_.kicked = true;
    }

private:
    Thread& me() { return w_.threads[static_cast<std::size_t>(self_)]; }
    void unlock() { running_ = false; }
    void block(Place place) {
        me().place = place;
        unlock();
    }
    void push(const Frame& frame) {
        if (me().depth == kDepthMax) std::abort();
        me().stack[static_cast<std::size_t>(me().depth++)] = frame;
    }
    void pop() { me().stack[static_cast<std::size_t>(--me().depth)] = {}; }
    void ring() {
        if (w_.announced) w_.kicked = true;
        w_.announced = false;
    }

    void tell(Baton::Tell whom) {
        for (Thread& thread : w_.threads) {
            if (thread.place == Place::waits ? whom.waiting : thread.place == Place::stands_by && whom.standby)
                thread.told = true;
            if (whom.watch && thread.place == Place::follows) thread.top().resting = false;
        }
        if (whom.sleeper) w_.kicked = true;
        if (!whom.follower) return;
        std::vector<Thread*> followers;
        for (Thread& thread : w_.threads)
            if (thread.place == Place::follows && !thread.told) followers.push_back(&thread);
        if (!followers.empty()) followers[choices_.choose(static_cast<unsigned>(followers.size()))]->told = true;
    }
    void tell_waiting() { tell(w_.baton.tell_change()); }
    void take(Baton::Turn& turn) {
        const Baton::Tell whom = w_.baton.take(turn);
        if (whom.sleeper) w_.announced = false;
        tell(whom);
    }

    // ---- Lead::serve, keep_watch
    void own_loop(Frame& frame) {
        Baton& baton = w_.baton;
        switch (frame.at) {
            case 0:
                if (w_.stopping) {
                    tell(baton.end_own());
                    pop();
                    return unlock();
                }
                if (!baton.is_free_for_own()) {
                    frame.at = 2;
                    return;
                }
                frame.turn.for_long = baton.accept_for_long();
                take(frame.turn);
                frame.at = 1;
                return;
            case 1:
                if (!w_.stopping && baton.take_step(frame.turn)) return push({.kind = Kind::lead_step, .rests = true});
                if (!baton.lost(frame.turn)) tell(baton.give(frame.turn));
                frame.at = baton.leads_again() ? 0 : 2;
                return;
            case 2:
                if (w_.long_runs >= scene_.long_runs_max) wake_leader();
                frame.watches = baton.follow();
                frame.seen = Lookout(baton).begin();
                frame.at = 3;
                if (w_.stopping && frame.watches) return;
                frame.resting = frame.watches && baton.rest_watch();
                return block(Place::follows);
            default:
                if (frame.watches && !w_.stopping) {
                    switch (Lookout(baton).by_follower(frame.seen, w_.running >= 0 && scene_.takes_over)) {
                        case Lookout::Look::stay: frame.resting = baton.rest_watch(); return block(Place::follows);
                        case Lookout::Look::take: break;
                        case Lookout::Look::take_over:
                            set_aside();
                            baton.hand_over();
                            break;
                    }
                }
                tell(baton.end_follow(frame.watches));
                frame.watches = false;
                frame.at = 0;
        }
    }

    // ---- Lead::stand_by
    void standby(Frame& frame) {
        Baton& baton = w_.baton;
        switch (frame.at) {
            case 0:
                frame.at = 1;
                frame.watches = true;
                frame.resting = baton.rest_standby();
                return block(Place::stands_by);
            case 1: {
                if (w_.stopping) {
                    pop();
                    return unlock();
                }
                const Lookout::Look look = Lookout(baton).by_standing_by(frame.seen, w_.running >= 0);
                frame.at = 0;
                if (look == Lookout::Look::stay) return;
                if (look == Lookout::Look::take_over) {
                    set_aside();
                    baton.hand_over();
                }
                take(frame.turn);
                frame.at = 2;
                return;
            }
            default:
                if (!w_.stopping && !baton.lost(frame.turn) && !baton.has_others())
                    return push({.kind = Kind::lead_step, .rests = true});
                if (!baton.lost(frame.turn)) tell(baton.give(frame.turn));
                frame.at = 0;
                if (!w_.stopping) return;
                pop();
                return unlock();
        }
    }

    // ---- a thread of the program
    void user(Frame& frame) {
        const auto mine = static_cast<std::size_t>(self_);
        const Op op = scene_.users[static_cast<std::size_t>(self_ - scene_.owned())];
        const auto wait = [&] {
            frame.at = 9;
            push({.kind = Kind::wait_until,
                  .what = static_cast<std::uint8_t>(mine),
                  .quiet = op == Op::wait_quietly,
                  .timed = op == Op::wait_a_while});
        };
        switch (frame.at) {
            case 0:
                if (w_.replies[mine] == Reply::unasked) w_.replies[mine] = w_.ending ? Reply::ended : Reply::flying;
                if (op == Op::poll) {
                    if (w_.baton.is_led()) {
                        frame.at = 2;
                        return;
                    }
                    take(frame.turn);
                    frame.at = 1;
                    return push({.kind = Kind::lead_step});
                }
                if (op != Op::finish || !w_.baton.is_free(false)) return wait();
                w_.baton.begin_wait();
                take(frame.turn);
                frame.at = 3;
                if (w_.replies[mine] == Reply::arrived) return;  // it is taken before the thread spins
                w_.baton.pause();
                return unlock();
            case 1:  // poll
                if (!w_.baton.lost(frame.turn)) tell(w_.baton.give(frame.turn));
                frame.at = 2;
                return;
            case 2: frame.at = w_.replies[mine] == Reply::ended ? 9 : 0; return unlock();
            case 3:  // finish_at_once
                if (!w_.baton.resume(frame.turn)) return wait();
                if (w_.replies[mine] == Reply::arrived) w_.replies[mine] = Reply::ended;
                tell(w_.baton.give(frame.turn));
                if (w_.replies[mine] != Reply::ended) return wait();
                frame.at = 9;
                return;
            default: pop(); unlock();
        }
    }

    // ---- Runner::wait_until
    void wait_until(Frame& frame) {
        Baton& baton = w_.baton;
        const auto is_done = [&] { return w_.replies[frame.what] == Reply::ended; };
        const auto done = [&] {
            const bool comes = scene_.is_room && frame.what >= kFirstOfCalls &&
                               (w_.replies[frame.what] == Reply::arrived || can_arrive(frame.what));
            if (comes && choices_.choose(2) == 1) w_.replies[frame.what] = Reply::ended;
            return is_done();
        };
        const auto late = [&] {
            frame.is_late = frame.is_late || (frame.timed && choices_.choose(2) == 1);
            return w_.ending || frame.is_late;
        };
        switch (frame.at) {
            case 0:
                if (is_done() || w_.ending) return pop();  // room may come between this look and the next one
                frame.untold = step_aside();
                if (handed_over() && w_.long_runs-- >= scene_.long_runs_max) wake_leader();
                if (frame.quiet) replace_thread();
                frame.turn = {.own = false, .quiet = frame.quiet};
                baton.begin_wait();
                frame.at = 1;
                return;
            case 1:
                if (done() || late()) {
                    if (std::exchange(frame.watches, false)) tell(baton.end_watch_waiting());
                    if (frame.untold) tell(baton.leave_to_others());
                    tell(baton.end_wait());
                    if (handed_over()) ++w_.long_runs;
                    return pop();
                }
                if (baton.is_free(frame.quiet)) {
                    if (std::exchange(frame.watches, false)) tell(baton.end_watch_waiting());
                    take(frame.turn);
                    frame.untold = false;
                    frame.at = 2;
                    return;
                }
                tell(baton.await(frame.quiet));
                frame.untold = false;
                frame.watches = scene_.takes_over && baton.begin_watch_waiting(frame.watches);
                frame.at = 3;
                return block(Place::waits);
            case 2:
                if (!baton.lost(frame.turn) && !done() && !late())
                    return push({.kind = Kind::lead_step, .rests = true});
                if (!baton.lost(frame.turn)) tell(baton.give(frame.turn));
                frame.at = 1;
                return;
            default:
                tell(baton.end_await(frame.quiet));
                frame.at = 1;
                if (!frame.watches ||
                    Lookout(baton).by_waiting(frame.seen, w_.running >= 0) != Lookout::Look::take_over)
                    return;
                set_aside();
                tell(baton.hand_over_to_waiting());
        }
    }

    // ---- Lead::step: work, and idle where there was none
    void lead_step(Frame& frame) {
        Baton& baton = w_.baton;
        const Baton::Turn& turn = me().below().turn;
        switch (frame.at) {
            case 0:
                baton.begin_step(me().below().turn);
                w_.attention = false;
                for (Reply& reply : w_.replies)
                    if (reply == Reply::arrived) {
                        reply = Reply::ended;
                        frame.handled = true;
                        tell_waiting();
                    }
                frame.at = 1;
                return;
            case 1:
                if (!baton.lost(turn) && !turn.quiet && w_.taken < w_.arrived && begin_next(frame, turn)) return;
                if (!frame.rests || frame.handled || baton.lost(turn)) return pop();
                frame.at = 2;
                if (choices_.choose(2) == 1) return sleep(frame, turn);
                baton.pause();
                frame.at = 3;
                return unlock();
            case 3:
                if (!baton.resume(turn) || choices_.choose(2) == 0) return pop();
                return sleep(frame, turn);
            default:  // woken
                tell(baton.wake_up());
                if (baton.resume(turn)) w_.announced = false;
                return pop();
        }
    }
    void sleep(Frame& frame, const Baton::Turn& turn) {
        bool pending = !turn.quiet && w_.taken < w_.arrived && !must_wait_for_thread();
        for (const Reply reply : w_.replies) pending = pending || reply == Reply::arrived;
        if (pending || w_.attention || !w_.baton.may_sleep(turn)) return pop();
        w_.announced = true;
        w_.baton.fall_asleep(scene_.sleeps_for_long);
        frame.at = 4;
        block(Place::sleeps);
    }
    // True: what there was to do for now is done, or a function has begun.
    bool begin_next(Frame& frame, const Baton::Turn& turn) {
        const Call& call = scene_.calls[w_.taken];
        if (!turn.own && w_.baton.has_followers() && call.known_long) {
            tell(w_.baton.give_for_long(turn));
            pop();
            return true;
        }
        if (must_wait_for_thread() || w_.running >= 0) return false;
        frame.handled = true;
        Frame run{.kind = Kind::function, .what = w_.taken++, .term = turn.term};
        w_.baton.begin_run();
        w_.running = static_cast<std::int8_t>(self_);
        push(run);
        if (w_.baton.has_followers() && call.known_long && scene_.takes_over) {
            set_aside();
            tell(w_.baton.hand_over_to_follower());
        }
        unlock();
        return true;
    }
    [[nodiscard]] bool must_wait_for_thread() const {
        if (w_.taken >= scene_.calls.size() || w_.long_runs < scene_.long_runs_max || scene_.own - scene_.in_place < 2)
            return false;
        const Call& call = scene_.calls[w_.taken];
        return call.known_long || (!w_.baton.has_followers() && !call.known_short);
    }

    // ---- functions
    void function(Frame& frame) {
        const std::size_t reply = kFirstOfCalls + frame.what;
        const Does does = scene_.calls[frame.what].does;
        switch (frame.at) {
            case 0:
                if (does == Does::ends_thread) return keep_thread();
                if (does == Does::short_time || does == Does::long_time) {
                    frame.at = 9;
                    return;
                }
                if (w_.replies[reply] == Reply::unasked) w_.replies[reply] = w_.ending ? Reply::ended : Reply::flying;
                if (does != Does::polls) {
                    frame.at = 3;
                    return push({.kind = Kind::wait_until,
                                 .what = static_cast<std::uint8_t>(reply),
                                 .quiet = does == Does::waits_quietly});
                }
                frame.at = 2;
                if (w_.replies[reply] == Reply::ended) return;
                {  // look_once
                    step_aside();
                    const Baton::Asked asked = w_.baton.ask();
                    tell(asked.tell);
                    if (!asked.leads) return;
                    frame.turn = {.own = false};
                    take(frame.turn);
                    frame.at = 1;
                }
                return push({.kind = Kind::lead_step});
            case 1:
                if (!w_.baton.lost(frame.turn)) tell(w_.baton.give(frame.turn));
                frame.at = 2;
                return;
            case 2: frame.at = w_.replies[reply] == Reply::ended ? 9 : 0; return unlock();
            case 3: frame.at = 9; return unlock();
            case 9:
                frame.at = 10;
                if (!scene_.last_answers_first || frame.what + 1U < scene_.calls.size()) return;
                w_.replies[kFirstOfCalls] = Reply::ended;
                tell_waiting();
                return unlock();
            default:  // end_run
                w_.finished[frame.what] = true;
                if (!frame.handed_over)
                    w_.running = -1;
                else if (w_.long_runs-- >= scene_.long_runs_max)
                    wake_leader();
                if (frame.replaced) --w_.quiet_runs;
                pop();
        }
    }
    // Engine::keep_thread: it runs nothing more, and one of the node's own has another one in its place.
    void keep_thread() {
        step_aside();
        tell(w_.baton.leave_to_others());
        Thread& thread = me();
        for (; thread.depth > 0; pop()) {
            if (thread.top().kind != Kind::function) continue;
            w_.finished[thread.top().what] = true;
            if (thread.top().handed_over && w_.long_runs-- >= scene_.long_runs_max) wake_leader();
        }
        if (self_ < scene_.own && !w_.stopping) push({.kind = Kind::own_loop, .turn = {.own = true}});
        unlock();
    }
    [[nodiscard]] Frame* innermost_function(Thread& thread) {
        for (int i = thread.depth; i-- > 0;)
            if (Frame& frame = thread.stack[static_cast<std::size_t>(i)]; frame.kind == Kind::function) return &frame;
        return nullptr;
    }
    [[nodiscard]] bool handed_over() {
        const Frame* run = innermost_function(me());
        return run != nullptr && run->handed_over;
    }
    bool step_aside() {
        const Frame* run = innermost_function(me());
        if (run == nullptr || w_.baton.lost(run->term) || w_.running < 0) return false;
        set_aside();
        w_.baton.hand_over();
        return true;
    }
    void set_aside() {
        Frame* run = innermost_function(w_.threads[static_cast<std::size_t>(w_.running)]);
        run->handed_over = true;
        ++w_.long_runs;
        w_.running = -1;
    }

    // A thread is in one function that waits quietly at most here.
    void replace_thread() {
        Frame* run = innermost_function(me());
        if (run == nullptr || run->replaced || self_ >= scene_.own || scene_.in_place == 0) return;
        run->replaced = true;
        ++w_.quiet_runs;
        if (w_.stopping || w_.made >= w_.quiet_runs || w_.made >= scene_.in_place) return;
        const int made = scene_.own - scene_.in_place + w_.made++;
        Thread& thread = w_.threads[static_cast<std::size_t>(made)];
        thread.place = Place::ready;
        thread.depth = 1;
        thread.stack[0] = {.kind = Kind::own_loop, .turn = {.own = true}};
    }
    [[nodiscard]] bool below_is_timed(const Thread& thread) const {
        const Frame& frame = thread.stack[static_cast<std::size_t>(thread.depth - 2)];
        return frame.kind == Kind::wait_until && frame.timed;
    }
    [[nodiscard]] bool in_long(const Thread& thread) const {
        for (int i = 0; i < thread.depth; ++i)
            if (const Frame& frame = thread.stack[static_cast<std::size_t>(i)];
                frame.kind == Kind::function && scene_.calls[frame.what].does == Does::long_time)
                return true;
        return false;
    }
    // All that others want is there, but for what waits beneath such a function in its own thread.
    [[nodiscard]] bool long_may_end() const {
        if (!w_.stopping && w_.taken < scene_.calls.size() && !(w_.taken < w_.arrived && must_wait_for_thread()))
            return false;
        for (int i = 0; i < kThreadsMax; ++i) {
            const Thread& thread = w_.threads[static_cast<std::size_t>(i)];
            if (thread.place == Place::ended) continue;
            const bool beneath = in_long(thread);
            if (i >= scene_.owned() && !beneath) return false;
            for (int k = 0; k < thread.depth; ++k) {
                const Frame& frame = thread.stack[static_cast<std::size_t>(k)];
                // Without own threads there may be nobody else for what waits beneath.
                const bool alone = beneath && scene_.own == 0;
                if (frame.kind == Kind::wait_until && w_.replies[frame.what] != Reply::ended && !alone) return false;
                if (frame.kind == Kind::function && scene_.calls[frame.what].does != Does::long_time && !beneath)
                    return false;
            }
        }
        return true;
    }

    const Scene& scene_;
    World& w_;
    Choices& choices_;
    int self_ = 0;
    bool running_ = false;
};

}  // namespace baton_model
}  // namespace rove
