// Baton in all orders: a few threads, each a small state machine whose steps call the node's own Baton, and every order of their
// steps. A step is what a thread does between two moments at which it releases the lock. A condition variable is the set of the
// threads that wait at it; a thread that is woken continues in a later step. There is no time: a wait with a time-out may end
// at any step. The threads are in baton_model.hpp.
//
// Checked in each state that can be reached:
//   - one thread leads, or none; it is the one whose turn it is;
//   - an offer is for a follower that was woken and has not run since;
//   - if nobody leads and a thread waits without having been woken, some thread will look: one that can run, or the one on watch;
//   - if the leader is in a function, some thread will look as well, if there is another one;
//   - from each state a good end can be reached: all waits have ended, and if the node is shut down all threads have ended.
//     Functions that run long end last of all, so nothing may depend on their end.
#include <gtest/gtest.h>

#include <cstdio>
#include <deque>
#include <ostream>
#include <string>
#include <unordered_map>
#include <vector>

#include "baton_model.hpp"

namespace rove::baton_model {

static void PrintTo(const Scene& scene, std::ostream* to) {
    *to << scene.name;
}

namespace {

// ---- all orders

std::string key_of(const World& w) {
    std::string key;
    BatonView::write(w.baton, key);
    const auto put = [&key](auto... values) { (key.push_back(static_cast<char>(values)), ...); };
    for (const Reply reply : w.replies) put(reply);
    for (std::size_t i = 0; i < kCallsMax; ++i) put(w.finished[i]);
    put(w.arrived, w.taken, w.running, w.long_runs, w.quiet_runs, w.made, w.attention, w.kicked, w.announced,
        w.stopping, w.ending);
    for (const Thread& thread : w.threads) {
        put(thread.place, thread.told, thread.depth);
        for (int i = 0; i < thread.depth; ++i) {
            const Frame& f = thread.stack[static_cast<std::size_t>(i)];
            const bool leads = f.turn.term != 0 && !w.baton.lost(f.turn);
            put(f.kind, f.at, f.what, f.quiet, f.timed, f.is_late, f.untold, f.rests, f.handled, f.watches, f.resting,
                f.handed_over, f.replaced, f.kind == Kind::function && !w.baton.lost(f.term), leads,
                leads && f.turn.for_long, leads && f.turn.runs == BatonView::runs(w.baton),
                leads && w.baton.may_sleep(f.turn));
            if (f.watches)
                put(f.seen.run == 0                          ? 0
                    : f.seen.run == BatonView::runs(w.baton) ? 1
                                                             : 2,
                    f.seen.waits == BatonView::waits(w.baton));
        }
    }
    return key;
}

// Nothing, or what is wrong with this state.
std::string wrong_with(const Scene& scene, const World& w) {
    int leaders = 0;
    bool untold = false, goes_on = false, comes = false, watched = false;
    for (const Thread& thread : w.threads) {
        const bool runs = w.running >= 0 && &thread == &w.threads[static_cast<std::size_t>(w.running)];
        if (!runs && thread.place != Place::ended &&
            (thread.told || (thread.place == Place::sleeps && w.kicked) || thread.place == Place::ready ||
             (thread.top().watches && !thread.top().resting)))
            watched = true;
        for (int i = 0; i < thread.depth; ++i) {
            const Frame& frame = thread.stack[static_cast<std::size_t>(i)];
            leaders += frame.turn.term != 0 && !w.baton.lost(frame.turn) ? 1 : 0;
        }
        if (thread.place == Place::waits && !thread.told) untold = true;
        if (thread.place == Place::follows && thread.told) comes = true;
        if (thread.place == Place::follows && (thread.told || (thread.top().watches && !thread.top().resting)))
            goes_on = true;
        if (thread.place == Place::waits && thread.told) goes_on = true;
        if (thread.place == Place::ready) goes_on = true;
    }
    if (leaders != (w.baton.is_led() ? 1 : 0)) return "not the one that has the turn leads";
    if (BatonView::is_offered(w.baton) && w.baton.is_led()) return "the lead is offered while somebody leads";
    if (BatonView::is_offered(w.baton) && !comes) return "the lead is offered, and nobody is on the way to take it";
    if (scene.takes_over && w.running >= 0 && (untold || scene.stands_by) && !watched && !w.stopping)
        return "a function runs, and nobody watches";
    if (!w.baton.is_led() && untold && !goes_on && !w.ending) return "a thread waits, and nobody will look";
    return {};
}

bool is_good_end(const Scene& scene, const World& w) {
    for (int i = scene.shut_down ? 0 : scene.owned(); i < scene.owned() + static_cast<int>(scene.users.size()); ++i)
        if (w.threads[static_cast<std::size_t>(i)].place != Place::ended) return false;
    if (scene.shut_down || scene.own == 0) return true;  // without own threads calls wait for the next thread that does
    for (std::size_t i = 0; i < scene.calls.size(); ++i)
        if (!w.finished[i]) return false;
    return true;
}

struct Found {
    std::size_t states = 0;
    std::string wrong;  // and how it came to that
};

class Search {
public:
    explicit Search(const Scene& scene) : scene_(scene) {}

    Found run() {
        World first;
        for (int i = 0; i < scene_.owned() + static_cast<int>(scene_.users.size()); ++i) {
            if (i >= scene_.own - scene_.in_place && i < scene_.own) continue;  // not made yet
            Thread& thread = first.threads[static_cast<std::size_t>(i)];
            thread.place = Place::ready;
            thread.depth = 1;
            const Kind kind = i < scene_.own ? Kind::own_loop : i < scene_.owned() ? Kind::standby : Kind::user;
            thread.stack[0] = {.kind = kind, .turn = {.own = i < scene_.owned(), .quiet = kind == Kind::standby}};
        }
        add(first, 0, "begin");
        while (!open_.empty() && found_.wrong.empty()) {
            const World world = open_.front();
            open_.pop_front();
            expand(world);
            ++from_;
        }
        found_.states = came_.size();
        if (found_.wrong.empty()) check_ends();
        return found_;
    }

private:
    struct Came {
        std::uint32_t from;
        std::string how;
    };

    void expand(const World& world) {
        Choices none;
        World copy = world;
        const Machine asks(scene_, copy, none);
        for (int i = 0; i < kThreadsMax; ++i)
            if (asks.can_go(i)) each(world, name_of(i), [i](Machine& machine) { machine.go(i); });
        for (std::size_t reply = 0; reply < world.replies.size(); ++reply)
            if (asks.can_arrive(reply))
                each(world, "reply " + std::to_string(reply) + " arrives",
                     [reply](Machine& machine) { machine.arrive(reply); });
        if (asks.can_be_called() && !world.stopping)
            each(world, "a call arrives", [](Machine& machine) { machine.be_called(); });
        if (!scene_.shut_down) return;
        if (!world.stopping) {
            each(world, "shut_down", [](Machine& machine) { machine.stop(); });
            return;
        }
        each(world, "the one that shuts down looks", [](Machine& machine) { machine.wake_leader(); });
        if (!world.ending) each(world, "the grace is over", [](Machine& machine) { machine.end(); });
    }
    template <typename Step>
    void each(const World& world, const std::string& how, const Step& step) {
        Choices choices;
        do {
            World next = world;
            Machine machine(scene_, next, choices);
            step(machine);
            add(next, from_, how);
        } while (choices.next());
    }
    void add(const World& world, std::uint32_t from, const std::string& how) {
        const auto [at, is_new] = seen_.try_emplace(key_of(world), static_cast<std::uint32_t>(came_.size()));
        steps_.emplace_back(at->second, from);
        if (!is_new) return;
        came_.push_back({from, how});
        open_.push_back(world);
        if (is_good_end(scene_, world)) good_.push_back(at->second);
        if (std::string wrong = wrong_with(scene_, world); !wrong.empty() && found_.wrong.empty())
            found_.wrong = wrong + way_to(at->second);
    }
    // From each state some good end can be reached: backwards from those.
    void check_ends() {
        const std::size_t count = came_.size();
        std::vector<std::uint32_t> first(count + 1), to(steps_.size());
        for (const auto& [state, from] : steps_) ++first[state + 1];
        for (std::size_t i = 0; i < count; ++i) first[i + 1] += first[i];
        std::vector<std::uint32_t> fill(first.begin(), first.end() - 1);
        for (const auto& [state, from] : steps_) to[fill[state]++] = from;
        std::vector<bool> reaches(count);
        for (const std::uint32_t good : good_) reaches[good] = true;
        for (std::vector<std::uint32_t> todo = good_; !todo.empty();) {
            const std::uint32_t state = todo.back();
            todo.pop_back();
            for (std::uint32_t i = first[state]; i < first[state + 1]; ++i)
                if (!reaches[to[i]]) {
                    reaches[to[i]] = true;
                    todo.push_back(to[i]);
                }
        }
        for (std::uint32_t state = 0; state < count; ++state)
            if (!reaches[state]) {
                found_.wrong = "somebody waits for ever" + way_to(state);
                return;
            }
    }
    [[nodiscard]] std::string name_of(int thread) const {
        if (thread < scene_.own) return "own thread " + std::to_string(thread);
        return thread < scene_.owned() ? "the one that stands by" : "user " + std::to_string(thread - scene_.owned());
    }
    [[nodiscard]] std::string way_to(std::uint32_t state) const {
        std::deque<std::string> way;
        for (; state != 0; state = came_[state].from) way.push_front(came_[state].how);
        std::string text;
        for (const std::string& step : way) text += "\n    " + step;
        return text;
    }

    const Scene& scene_;
    std::unordered_map<std::string, std::uint32_t> seen_;
    std::vector<Came> came_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> steps_;  // to, from
    std::vector<std::uint32_t> good_;
    std::deque<World> open_;
    std::uint32_t from_ = 0;  // the state that is expanded: they come in the order in which they were found
    Found found_;
};

const Call kShort{.does = Does::short_time};
const Call kKnownShort{.does = Does::short_time, .known_short = true};
const Call kLong{.does = Does::long_time};
const Call kKnownLong{.does = Does::long_time, .known_long = true};
const Call kPolls{.does = Does::polls};
const Call kWaits{.does = Does::waits};
const Call kWaitsQuietly{.does = Does::waits_quietly};
const Call kKnownToWait{.does = Does::waits, .known_long = true};
const Call kKnownToWaitQuietly{.does = Does::waits_quietly, .known_long = true};
const Call kKnownLongByMistake{.does = Does::short_time, .known_long = true};

const Call kEndsThread{.does = Does::ends_thread, .known_short = true};

const std::vector<Scene> kScenes = {
    {.name = "a thread that leads ends, no own thread",
     .users = {Op::wait, Op::finish, Op::wait},
     .calls = {kEndsThread}},
    {.name = "a thread that leads ends, one own thread",
     .own = 1,
     .takes_over = false,
     .users = {Op::wait, Op::wait},
     .calls = {kEndsThread, kShort}},
    {.name = "a thread that leads ends, two own threads",
     .own = 2,
     .users = {Op::wait, Op::wait},
     .calls = {kEndsThread, kKnownShort}},
    {.name = "one waits, one finishes, no own thread", .users = {Op::wait, Op::finish, Op::wait}},
    {.name = "one waits quietly, no own thread", .users = {Op::wait, Op::wait_quietly, Op::finish}},
    {.name = "a limit, no own thread", .users = {Op::wait_a_while, Op::wait_quietly, Op::wait}},
    {.name = "one polls, no own thread", .users = {Op::poll, Op::wait, Op::wait_quietly}},
    {.name = "a callback, no own thread", .users = {Op::wait, Op::finish}, .calls = {kShort}, .reply_needs = 0},
    {.name = "one own thread", .own = 1, .takes_over = false, .users = {Op::finish, Op::wait}, .calls = {kShort}},
    {.name = "one own thread, quiet",
     .own = 1,
     .takes_over = false,
     .users = {Op::wait_quietly, Op::wait},
     .calls = {kShort},
     .reply_needs = 0},
    {.name = "one own thread, its function waits",
     .own = 1,
     .takes_over = false,
     .users = {Op::wait},
     .calls = {kWaits, kShort}},
    {.name = "one own thread, its function polls",
     .own = 1,
     .takes_over = false,
     .users = {Op::wait},
     .calls = {kPolls, kShort}},
    {.name = "one own thread, its function waits quietly",
     .own = 1,
     .takes_over = false,
     .users = {Op::wait},
     .calls = {kWaitsQuietly}},
    {.name = "three own threads, long", .own = 3, .users = {Op::finish}, .calls = {kLong, kShort}, .reply_needs = 1},
    {.name = "three own threads, known long",
     .own = 3,
     .users = {Op::wait},
     .calls = {kKnownLong, kShort},
     .reply_needs = 1},
    {.name = "three own threads, long ones queue", .own = 3, .users = {Op::wait}, .calls = {kKnownLong, kKnownLong}},
    {.name = "two own threads, a function polls",
     .own = 2,
     .long_runs_max = 2,
     .users = {Op::wait},
     .calls = {kPolls, kShort},
     .reply_needs = 1},
    {.name = "two own threads, a function waits",
     .own = 2,
     .long_runs_max = 2,
     .users = {Op::finish},
     .calls = {kWaits, kShort},
     .reply_needs = 1},
    {.name = "two own threads, a function waits quietly",
     .own = 2,
     .long_runs_max = 2,
     .users = {Op::wait_quietly},
     .calls = {kWaitsQuietly, kKnownShort},
     .reply_needs = 1},
    {.name = "two own threads, one polls",
     .own = 2,
     .long_runs_max = 2,
     .users = {Op::poll, Op::wait},
     .calls = {kShort}},
    {.name = "a long function, no own thread", .users = {Op::wait, Op::wait, Op::finish}, .calls = {kLong}},
    {.name = "a long function, no own thread, quiet ones", .users = {Op::wait, Op::wait_quietly}, .calls = {kLong}},
    {.name = "two own threads, in functions that wait, and a long one",
     .own = 2,
     .long_runs_max = 2,
     .calls = {kWaits, kLong, kShort}},
    {.name = "one stands by, all others are in functions",
     .own = 2,
     .stands_by = true,
     .long_runs_max = 2,
     .calls = {kWaits, kLong, kLong}},
    {.name = "one stands by, one waits quietly",
     .own = 2,
     .stands_by = true,
     .long_runs_max = 2,
     .calls = {kWaitsQuietly, kLong}},
    {.name = "all wait quietly for a call that comes here",
     .own = 3,
     .in_place = 1,
     .long_runs_max = 2,
     .calls = {kWaitsQuietly, kWaitsQuietly, kShort},
     .reply_needs = 2},
    {.name = "a function waits for room",
     .own = 2,
     .long_runs_max = 2,
     .users = {Op::wait},
     .calls = {kWaits, kShort},
     .is_room = true},
    {.name = "a function waits for room, one own thread",
     .own = 1,
     .takes_over = false,
     .users = {Op::wait, Op::wait_quietly},
     .calls = {kWaits},
     .is_room = true},
    {.name = "a function waits for another one's end",
     .own = 3,
     .long_runs_max = 2,
     .calls = {kWaits, kShort},
     .last_answers_first = true},
    {.name = "a function waits quietly for another one's end",
     .own = 3,
     .in_place = 1,
     .long_runs_max = 2,
     .calls = {kWaitsQuietly, kShort},
     .last_answers_first = true},
    {.name = "one waits for a place that another one leaves when it begins to wait",
     .own = 3,
     .users = {Op::wait},
     .calls = {kKnownToWait, kKnownLongByMistake},
     .reply_needs = 1},
    {.name = "the same, and it waits quietly",
     .own = 3,
     .users = {Op::wait},
     .calls = {kKnownToWaitQuietly, kKnownLongByMistake},
     .reply_needs = 1},
    {.name = "the end, some wait quietly",
     .own = 3,
     .in_place = 1,
     .long_runs_max = 2,
     .calls = {kWaitsQuietly},
     .shut_down = true},
    {.name = "the end, one stands by",
     .own = 2,
     .stands_by = true,
     .long_runs_max = 2,
     .calls = {kLong, kWaits},
     .shut_down = true},
    {.name = "the end, three own threads, long",
     .own = 3,
     .users = {Op::wait},
     .calls = {kKnownLong},
     .shut_down = true},
    {.name = "the end, two own threads",
     .own = 2,
     .long_runs_max = 2,
     .users = {Op::wait_quietly},
     .calls = {kWaits, kPolls},
     .shut_down = true},
    {.name = "the end, one own thread",
     .own = 1,
     .takes_over = false,
     .users = {Op::finish, Op::wait_quietly},
     .calls = {kWaits},
     .shut_down = true},
};

class BatonOrders : public ::testing::TestWithParam<Scene> {};

TEST_P(BatonOrders, LoseNobody) {
    for (const bool for_long : {true, false}) {
        Scene scene = GetParam();
        scene.sleeps_for_long = for_long;
        const Found found = Search(scene).run();
        std::printf("%s, sleeping for %s: %zu states\n", scene.name, for_long ? "long" : "a short time", found.states);
        EXPECT_TRUE(found.wrong.empty()) << found.wrong;
    }
}

INSTANTIATE_TEST_SUITE_P(Scenes, BatonOrders, ::testing::ValuesIn(kScenes),
                         [](const auto& scene) { return std::to_string(scene.index); });

// The standby thread, where all others are in functions that ask again and again whether a call has ended.
TEST(Baton, WhoAsksTakesTheLeadFromAnIdleThreadThatTakesRepliesOnly) {
    Baton baton;
    Baton::Turn standby{.own = true, .quiet = true}, other{.own = true};
    (void)baton.take(standby);
    EXPECT_FALSE(baton.ask().leads) << "it is busy";
    baton.pause();
    EXPECT_TRUE(baton.ask().leads);
    (void)baton.take(other);
    baton.pause();
    EXPECT_FALSE(baton.ask().leads) << "it takes calls itself";
}

}  // namespace
}  // namespace rove::baton_model
