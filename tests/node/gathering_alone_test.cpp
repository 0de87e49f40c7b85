// Payloads that functions read while they arrive: Gatherings without a node. The test is the peer that sends, and the leader that looks at
// the mailbox in between.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "answering_parts.hpp"
#include "engine/gathering.hpp"
#include "engine/here.hpp"
#include "package/digest.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;
using fabric::Traffic;
using wire::Kind;
using Next = Gathering::Next;

constexpr std::size_t kPart = 10'000, kParts = 5, kTotal = kParts * kPart;
constexpr std::uint64_t kNumber = 7;  // of the payload that is sent

class GatheringAlone : public AnsweringParts {
protected:
    void SetUp() override { function_.gathers = true; }
    // Not in the destructor: a function that still reads uses what this has.
    void TearDown() override {
        {
            const Hold hold(idle_.lead.mutex());
            idle_.runner.end_waits();
        }
        told_on_ = true;
        if (idle_.own_threads.count() > 0) EXPECT_FALSE(idle_.end_threads());
    }
    PeerState& add_client(unsigned number) { return neighbours_.add(kClientBit | number); }

    // ---- what the peer sends
    [[nodiscard]] wire::FrameHeader part_header(const PeerState& from, const wire::Part& part) const {
        const bool first = part.offset == 0 && part.total_bytes > 0;
        return {.kind = Kind::part, .handle = first ? function_.handle + 1 : 0, .node = from.id()};
    }
    void send_part(const PeerState& from, const wire::Part& part, std::size_t bytes = kPart) {
        neighbours_.send_from(from, Traffic::calls, part_header(from, part),
                              Bytes(payload_).subspan(part.offset, bytes), std::as_bytes(std::span(&part, 1)));
    }
    void send_part(const PeerState& from, std::size_t which) {
        send_part(from, {.number = kNumber,
                         .offset = static_cast<std::uint32_t>(which * kPart),
                         .total_bytes = static_cast<std::uint32_t>(kTotal)});
    }
    void send_rest(const PeerState& from) {
        for (std::size_t which = 1; which < kParts; ++which) send_part(from, which);
    }
    void send_call(const PeerState& from, std::uint8_t flags = 0, wire::Staged which = {kNumber, kTotal}) {
        send_call(from, call_by(from, flags), which);
    }
    void send_call(const PeerState& from, const wire::FrameHeader& header, wire::Staged which = {kNumber, kTotal}) {
        neighbours_.send_from(from, Traffic::calls, header, std::as_bytes(std::span(&which, 1)));
    }
    [[nodiscard]] wire::FrameHeader call_by(const PeerState& from, std::uint8_t flags = 0) const {
        return {.kind = Kind::call,
                .flags = static_cast<std::uint8_t>(wire::kParts | flags),
                .handle = function_.handle,
                .generation = 9,
                .node = from.id(),
                .call = 5};
    }
    void send_ping(const PeerState& from) {
        neighbours_.send_from(from, Traffic::calls, {.kind = Kind::ping, .node = from.id()}, as_bytes(text_));
    }

    // ---- what the leader does
    // The first part arrives, and its function begins to read.
    void begin(PeerState& from) {
        if (idle_.own_threads.count() == 0) idle_.start_threads(2);
        returned_ = false;
        send_part(from, std::size_t{0});
        const unsigned running = gatherings_.running();
        idle_.have_begun([&](Lead::Turn& turn) REQUIRES(lock_of<EngineLock>) {
            wire::Frame first;
            EXPECT_TRUE(from.link()->next(Traffic::calls, first));
            EXPECT_TRUE(gatherings_.runs_part(from, first, turn));
            returned_ = true;
        });
        EXPECT_TRUE(soon([&] { return gatherings_.running() > running; }));
    }
    // In a thread of the node's own that leads; `change`: of its turn.
    bool would_begin(PeerState& from, const wire::FrameHeader& header, const wire::Part& part,
                     const std::function<void(Lead::Turn&)>& change = {}) {
        std::atomic<bool> looked{false};
        bool ran = false;
        idle_.have_begun([&](Lead::Turn& turn) REQUIRES(lock_of<EngineLock>) {
            Lead::Turn changed{.lock = turn.lock, .baton = turn.baton};
            if (change) change(changed);
            const std::size_t before = payload_parts_.bytes();
            ran = gatherings_.runs_part(
                from, {header, std::as_bytes(std::span(&part, 1)), Bytes(payload_).first(kPart)}, changed);
            EXPECT_EQ(payload_parts_.bytes(), before);
            EXPECT_EQ(idle_.runner.leading(), nullptr);
            EXPECT_FALSE(from.calls.reader() != nullptr);
            looked = true;
        });
        const auto has_looked = [&looked] { return looked.load(); };
        if (soon(has_looked, 5s)) return ran;
        idle_.under_lock([this]() REQUIRES(lock_of<EngineLock>) { idle_.runner.end_waits(); });  // it reads
        EXPECT_TRUE(soon(has_looked));
        return true;
    }
    // The next frame of the peer's calls, while these are the leader's: a ping is taken, and with what belongs to the payload the mailbox is
    // the run's again.
    bool leader_takes(PeerState& from, Kind kind) {
        return soon([&] {
            const Hold hold(idle_.lead.mutex());
            wire::Frame frame;
            if (from.calls.reader() != nullptr) from.calls.reader()->give_back_if_long();
            if (!looks_at_calls(from) || !from.link()->next(Traffic::calls, frame)) return false;
            EXPECT_EQ(frame.header.kind, kind);
            const bool is_its_own = from.calls.reader() != nullptr && from.calls.reader()->takes(frame);
            EXPECT_EQ(is_its_own, kind != Kind::ping);
            if (!is_its_own) from.link()->release(Traffic::calls);
            return true;
        });
    }
    [[nodiscard]] bool has_returned() {
        return soon([&] { return returned_.load(); });
    }
    [[nodiscard]] bool has_read(std::size_t bytes) {
        return soon([&] { return read_ == bytes; });
    }
    std::size_t staged_bytes() {
        return idle_.under_lock([&]() REQUIRES(lock_of<EngineLock>) { return payload_parts_.bytes(); });
    }
    // Nothing is left of it, and the function was not called.
    void is_over(PeerState& peer) {
        EXPECT_TRUE(has_returned());
        EXPECT_EQ(last_, Next::over);
        EXPECT_EQ(gatherings_.running(), 0U);
        EXPECT_EQ(gatherings_.done(), 0U);
        EXPECT_EQ(staged_bytes(), 0U);
        const Hold hold(idle_.lead.mutex());
        EXPECT_EQ(peer.calls.reader(), nullptr);
        EXPECT_EQ(idle_.runner.busy(), 0U);
        EXPECT_FALSE(function_.pace.is_short()) << "it has never run";
        EXPECT_TRUE(neighbours_.received_by(peer).empty());
    }
    // As a function that reads all that there is.
    void read_all(rove_here& here) {
        while ((last_ = here.gathering->next(here)) == Next::part) {
            const Bytes part = here.gathering->part();
            if (std::equal(part.begin(), part.end(), payload_.begin() + static_cast<std::ptrdiff_t>(read_.load())))
                read_ += part.size();
        }
        EXPECT_EQ(here.gathering->next(here), last_) << "it gives that again";
        EXPECT_EQ(here.gathering->total_bytes(), kTotal);
    }

    const ByteBuffer payload_ = [] {
        ByteBuffer bytes(2 * kTotal);
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 251);
        return bytes;
    }();
    const std::string text_ = "between";
    code::Function& function_ = *value_or_throw(
        cache_->add_resident(resident_id({"GatheringAlone"}), "gathers", [](rove_here*, const void*, std::size_t) {}));
    std::function<void(rove_here&)> runs_ = [this](rove_here& here) { read_all(here); };
    std::atomic<std::size_t> read_{0};  // bytes, all of them right
    std::atomic<Next> last_{Next::part};
    std::atomic<bool> returned_{false}, others_wait_{false}, told_on_{false};
    char no_engine_ = 0;  // functions here do not ask for it
    Gatherings gatherings_{
        {.engine = reinterpret_cast<Engine&>(no_engine_),
         .options = options_,
         .cache = cache_,
         .lead = idle_.lead,
         .runner = idle_.runner,
         .own_threads = idle_.own_threads,
         .checks = checks_,
         .answers = answers_,
         .payload_parts = payload_parts_,
         .housekeeping = housekeeping_,
         .run = [this](rove::Run& /*run*/, rove_here& here) { runs_(here); },
         .others_wait = [this](const PeerState& /*read*/, TimePoint) { return others_wait_.load(); }}};
    GatheringAlone() { options_.threads = 2; }
};

TEST_F(GatheringAlone, PartsAreReadAsTheyComeAndTheFunctionRunsWithItsCall) {
    PeerState& peer = add_client(1);
    begin(peer);
    EXPECT_TRUE(has_read(kPart));
    EXPECT_EQ(staged_bytes(), kTotal) << "it counts among what its sender may begin";
    send_part(peer, 1);
    EXPECT_TRUE(has_read(2 * kPart));
    for (std::size_t which = 2; which < kParts; ++which) send_part(peer, which);
    EXPECT_TRUE(has_read(kTotal));
    EXPECT_FALSE(idle_.under_lock([&]() REQUIRES(lock_of<EngineLock>) { return peer.calls.reader()->is_called(); }));
    EXPECT_EQ(last_, Next::part);
    EXPECT_EQ(gatherings_.done(), 0U);
    EXPECT_TRUE(neighbours_.received_by(peer).empty());
    send_call(peer);
    EXPECT_TRUE(has_returned());
    EXPECT_EQ(last_, Next::call);
    EXPECT_EQ(gatherings_.done(), 1U);
    EXPECT_EQ(gatherings_.running(), 0U);
    EXPECT_EQ(staged_bytes(), 0U);
    const auto replies = neighbours_.received_by(peer);
    ASSERT_EQ(replies.size(), 1U) << "it has returned without an answer of its own";
    EXPECT_EQ(replies[0].header.kind, Kind::reply);
    EXPECT_EQ(replies[0].header.flags, 0);
    EXPECT_EQ(replies[0].header.call, 5);
    EXPECT_EQ(replies[0].header.generation, 9U);
    EXPECT_TRUE(replies[0].payload.empty());
    EXPECT_TRUE(idle_.under_lock([&]() REQUIRES(lock_of<EngineLock>) { return takes_calls(peer); }));
}

TEST_F(GatheringAlone, WhatTheFunctionDoesNotReadIsSkipped) {
    runs_ = [](rove_here&) {};
    PeerState& peer = add_client(1);
    begin(peer);
    send_rest(peer);
    EXPECT_FALSE(returned_);
    send_call(peer);
    send_ping(peer);
    EXPECT_TRUE(has_returned());
    EXPECT_EQ(gatherings_.done(), 1U);
    EXPECT_TRUE(leader_takes(peer, Kind::ping)) << "the frame after its call";
}

TEST_F(GatheringAlone, ACallIsAnsweredOnce) {
    PeerState& peer = add_client(1);
    const auto answers_after = [&](std::uint8_t flags, const std::function<void(rove_here&)>& ends) {
        read_ = 0;
        runs_ = [this, ends](rove_here& here) {
            read_all(here);
            EXPECT_FALSE(here.ended) << "its call has come";
            EXPECT_EQ(here.call.call, 5);
            ends(here);
        };
        begin(peer);
        send_rest(peer);
        send_call(peer, flags);
        EXPECT_TRUE(has_returned());
        return neighbours_.received_by(peer);
    };
    EXPECT_TRUE(answers_after(wire::kNoReply, [](rove_here&) {}).empty()) << "a post";
    EXPECT_TRUE(answers_after(0, [](rove_here& here) { here.ended = true; }).empty()) << "it has answered";
    const auto errors = answers_after(0, [](rove_here& here) { here.answer_lost = true; });
    ASSERT_EQ(errors.size(), 1U);
    EXPECT_EQ(errors[0].header.flags, wire::kError) << "memory ran out for its answer";
    EXPECT_EQ(errors[0].header.status, static_cast<std::uint8_t>(ErrorCode::overloaded));
}

// Nothing is done, and the part is taken as ever.
TEST_F(GatheringAlone, WhereItMayNotReadNothingIsDone) {
    PeerState& peer = add_client(1);
    const wire::Part first{.number = kNumber, .total_bytes = kTotal};
    const wire::FrameHeader header = part_header(peer, first);
    runs_ = [](rove_here&) { ADD_FAILURE() << "it runs"; };
    {
        Hold hold(idle_.lead.mutex());
        Lead::Turn turn{.lock = hold.lock(), .baton = {.own = true}};
        EXPECT_FALSE(gatherings_.runs_part(peer, {header, std::as_bytes(std::span(&first, 1)), {}}, turn))
            << "nobody else could lead";
    }
    idle_.start_threads(2);
    for (const std::uint32_t named : {std::uint32_t{0}, header.handle + 1'000'000, ~std::uint32_t{0}}) {
        wire::FrameHeader other = header;
        other.handle = named;
        EXPECT_FALSE(would_begin(peer, other, first)) << "no such function: " << named;
    }
    for (const wire::Part& wrong : {wire::Part{.number = kNumber, .offset = kPart, .total_bytes = kTotal},
                                    wire::Part{.number = kNumber, .total_bytes = 0},
                                    wire::Part{.number = kNumber, .total_bytes = wire::kMessageBytesMax + 1}})
        EXPECT_FALSE(would_begin(peer, header, wrong)) << wrong.offset << " of " << wrong.total_bytes;
    EXPECT_FALSE(would_begin(peer, header, first, [](Lead::Turn& turn) { turn.baton.own = false; }));
    EXPECT_FALSE(would_begin(peer, header, first, [](Lead::Turn& turn) { turn.baton.quiet = true; }));
    EXPECT_FALSE(would_begin(peer, header, first, [](Lead::Turn& turn) { turn.holds_back = true; }));
    const auto is_refused_while = [&](const std::string& what, const std::function<void()>& begins,
                                      const std::function<void()>& ends) {
        idle_.under_lock(begins);
        EXPECT_FALSE(would_begin(peer, header, first)) << what;
        idle_.under_lock(ends);
    };
    is_refused_while(
        "the function has not said that it can", [&] { function_.gathers = false; }, [&] { function_.gathers = true; });
    is_refused_while(
        "the handle meant another function", [&] { peer.code.aliases.learn(function_.handle, FunctionId{}); },
        [&] { peer.code.aliases.clear(); });
    is_refused_while(
        "a call waits before it", [&] { peer.calls.parked.emplace(); }, [&] { peer.calls.parked.reset(); });
    is_refused_while(
        "a payload of that number has begun", [&] { payload_parts_.begin_elsewhere(peer, first, Clock::now()); },
        [&] { payload_parts_.forget_all(peer); });
    is_refused_while(
        "as many read as may", [&] { idle_.own_threads.begin_gathering(); },
        [&] { idle_.own_threads.end_gathering(); });
    rove::Run long_ones[2];
    is_refused_while(
        "all places are taken",
        [&]() REQUIRES(lock_of<EngineLock>) {
            HeldLock held(idle_.lead.mutex());
            Lead::Turn turn{.lock = held, .baton = {.own = false}};
            for (rove::Run& each : long_ones) {
                idle_.runner.begin(each, turn);
                idle_.runner.set_aside(Clock::now());
            }
        },
        [&]() REQUIRES(lock_of<EngineLock>) {
            for (rove::Run& each : long_ones) idle_.runner.give_up(each);
        });
    ASSERT_FALSE(HasFailure()) << "what has begun wrongly has ended all waits";
    runs_ = [this](rove_here& here) { read_all(here); };
    begin(peer);
    EXPECT_TRUE(has_read(kPart)) << "it was for these reasons";
}

TEST_F(GatheringAlone, OfASenderThatHasGoneNothingIsRead) {
    PeerState& peer = add_client(1);
    const wire::Part first{.number = kNumber, .total_bytes = kTotal};
    idle_.start_threads(2);
    idle_.under_lock([&]() REQUIRES(lock_of<EngineLock>) { peer.lose(Error(ErrorCode::disconnected, "it went")); });
    runs_ = [](rove_here&) { ADD_FAILURE() << "it runs"; };
    EXPECT_FALSE(would_begin(peer, part_header(peer, first), first));
}

TEST_F(GatheringAlone, AsManyReadAsHalfOfTheThreads) {
    PeerState &one = add_client(1), &other = add_client(2);
    begin(one);
    const wire::Part first{.number = kNumber, .total_bytes = kTotal};
    EXPECT_FALSE(would_begin(other, part_header(other, first), first));
    EXPECT_EQ(gatherings_.running(), 1U);
    send_rest(one);
    send_call(one);
    EXPECT_TRUE(has_returned());
    begin(other);
}

// What comes between the parts is the leader's to serve, in the order in which it came.
TEST_F(GatheringAlone, TheMailboxIsTheLeadersWhileAnotherFrameIsNext) {
    PeerState& peer = add_client(1);
    begin(peer);
    EXPECT_TRUE(has_read(kPart));
    EXPECT_FALSE(idle_.under_lock([&]() REQUIRES(lock_of<EngineLock>) { return looks_at_calls(peer); }))
        << "two would look at one mailbox";
    send_ping(peer);
    send_ping(peer);
    send_part(peer, 1);
    EXPECT_TRUE(leader_takes(peer, Kind::ping));
    EXPECT_TRUE(leader_takes(peer, Kind::ping));
    EXPECT_EQ(read_, kPart) << "it looks at nothing in between";
    EXPECT_TRUE(leader_takes(peer, Kind::part));
    EXPECT_TRUE(has_read(2 * kPart));
    for (std::size_t which = 2; which < kParts; ++which) send_part(peer, which);
    send_ping(peer);
    send_call(peer);
    EXPECT_TRUE(leader_takes(peer, Kind::ping));
    EXPECT_TRUE(leader_takes(peer, Kind::call));
    EXPECT_TRUE(has_returned());
    EXPECT_EQ(last_, Next::call);
}

TEST_F(GatheringAlone, WhatBelongsToAnotherPayloadIsTheLeaders) {
    PeerState& peer = add_client(1);
    begin(peer);
    send_ping(peer);
    ASSERT_TRUE(leader_takes(peer, Kind::ping));
    const Hold hold(idle_.lead.mutex());
    const auto takes = [&](const wire::FrameHeader& header, Bytes extra, Bytes payload) REQUIRES(lock_of<EngineLock>) {
        return peer.calls.reader()->takes({header, extra, payload});
    };
    const wire::Part other{.number = kNumber + 1, .offset = kPart, .total_bytes = kTotal};
    EXPECT_FALSE(takes(part_header(peer, other), std::as_bytes(std::span(&other, 1)), {}));
    const wire::Staged mine{kNumber, kTotal}, others{kNumber + 1, kTotal};
    EXPECT_FALSE(takes(call_by(peer), {}, std::as_bytes(std::span(&others, 1))));
    wire::FrameHeader whole = call_by(peer);
    whole.flags = 0;
    EXPECT_FALSE(takes(whole, {}, std::as_bytes(std::span(&mine, 1)))) << "a call whose payload only looks like it";
    EXPECT_TRUE(looks_at_calls(peer));
    EXPECT_TRUE(takes(call_by(peer), {}, std::as_bytes(std::span(&mine, 1))));
    EXPECT_FALSE(looks_at_calls(peer));
}

TEST_F(GatheringAlone, WhoBreaksTheRulesIsCutOffAndNothingRuns) {
    unsigned number = 0;
    const auto is_cut_off = [&](const std::string& with, const std::function<void(PeerState&)>& goes_on) {
        SCOPED_TRACE(with);
        PeerState& peer = add_client(++number);
        read_ = 0;
        begin(peer);
        EXPECT_TRUE(has_read(kPart));
        goes_on(peer);
        is_over(peer);
        const Hold hold(idle_.lead.mutex());
        ASSERT_NE(peer.link()->broken(), nullptr);
        EXPECT_TRUE(contains(peer.link()->broken()->message(), with)) << peer.link()->broken()->message();
    };
    is_cut_off("out of its order", [&](PeerState& peer) { send_part(peer, 2); });
    is_cut_off("out of its order", [&](PeerState& peer) { send_part(peer, std::size_t{0}); });
    is_cut_off("out of its order", [&](PeerState& peer) {
        send_part(peer, {.number = kNumber, .offset = kPart, .total_bytes = kTotal + 1});
    });
    is_cut_off("reaches beyond the whole", [&](PeerState& peer) {
        send_part(peer, {.number = kNumber, .offset = kPart, .total_bytes = kTotal}, kTotal - kPart + 1);
    });
    is_cut_off("a part of nothing", [&](PeerState& peer) {
        send_part(peer, {.number = kNumber, .offset = kPart, .total_bytes = kTotal}, 0);
    });
    is_cut_off("a call without its parts", [&](PeerState& peer) { send_call(peer); });
    is_cut_off("a call without its parts", [&](PeerState& peer) {
        send_rest(peer);
        send_call(peer, 0, {kNumber, kTotal - 1});
    });
    is_cut_off("another function", [&](PeerState& peer) {
        send_rest(peer);
        wire::FrameHeader other = call_by(peer);
        ++other.handle;
        send_call(peer, other);
    });
    is_cut_off("another caller", [&](PeerState& peer) {
        send_rest(peer);
        wire::FrameHeader other = call_by(peer);
        other.node = kClientBit | 99;
        send_call(peer, other);
    });
}

// It speaks for others, but not of what it has sent in parts.
TEST_F(GatheringAlone, AMemberSendsOnNoCallWhosePayloadCameInParts) {
    PeerState& member = neighbours_.add(2);
    begin(member);
    send_rest(member);
    wire::FrameHeader sent_on = call_by(member);
    sent_on.node = 3;
    send_call(member, sent_on);
    is_over(member);
    const Hold hold(idle_.lead.mutex());
    ASSERT_NE(member.link()->broken(), nullptr);
    EXPECT_TRUE(contains(member.link()->broken()->message(), "sent on a call whose payload came in parts"));
}

TEST_F(GatheringAlone, WhatIsTakenBackIsOverAndNobodysFault) {
    PeerState& peer = add_client(1);
    begin(peer);
    EXPECT_TRUE(has_read(kPart));
    send_part(peer, {.number = kNumber}, 0);
    send_ping(peer);
    is_over(peer);
    EXPECT_EQ(peer.link()->broken(), nullptr);
    EXPECT_TRUE(leader_takes(peer, Kind::ping));
}

TEST_F(GatheringAlone, WhereItsSenderGoesItIsOver) {
    PeerState& cut = add_client(1);
    begin(cut);
    EXPECT_TRUE(has_read(kPart));
    idle_.under_lock(
        [&]() REQUIRES(lock_of<EngineLock>) { cut.link()->break_with(Error(ErrorCode::invalid, "too slow")); });
    is_over(cut);

    PeerState& gone = add_client(2);
    read_ = 0;
    begin(gone);
    EXPECT_TRUE(has_read(kPart));
    idle_.under_lock([&]() REQUIRES(lock_of<EngineLock>) {
        ends_.lose(gone, Error(ErrorCode::disconnected, "it went"));
        ends_.clean_up(gone);
    });
    EXPECT_TRUE(has_returned());
    EXPECT_EQ(last_, Next::over);
    EXPECT_EQ(gatherings_.running(), 0U);
    EXPECT_EQ(staged_bytes(), 0U) << "given back once";
}

// Its next meeting is none of this run's business, whatever number a payload has there.
TEST_F(GatheringAlone, WhereItsSenderIsMetAgainItIsOver) {
    PeerState& peer = add_client(1);
    begin(peer);
    EXPECT_TRUE(has_read(kPart));
    auto opened = neighbours_.open();
    idle_.under_lock([&]() REQUIRES(lock_of<EngineLock>) {
        ends_.lose(peer, Error(ErrorCode::disconnected, "it went"));
        ends_.clean_up(peer);
        meet(peer, peer.identity(), peer.back(), std::move(opened.first));
        payload_parts_.begin_elsewhere(peer, {.number = kNumber, .total_bytes = kTotal}, Clock::now());
    });
    EXPECT_TRUE(has_returned());
    EXPECT_EQ(last_, Next::over);
    EXPECT_EQ(staged_bytes(), kTotal) << "the new meeting's payload is still on its way";
}

TEST_F(GatheringAlone, TheNodesEndWaitsForNoMoreParts) {
    PeerState& peer = add_client(1);
    begin(peer);
    EXPECT_TRUE(has_read(kPart));
    idle_.under_lock([&]() REQUIRES(lock_of<EngineLock>) {
        idle_.lead.stop();
        idle_.lead.wake();
    });
    is_over(peer);
}

TEST_F(GatheringAlone, TheEndOfAllWaitsEndsThisOneToo) {
    PeerState& peer = add_client(1);
    begin(peer);
    EXPECT_TRUE(has_read(kPart));
    idle_.under_lock([&]() REQUIRES(lock_of<EngineLock>) { idle_.runner.end_waits(); });
    is_over(peer);
}

// Another thread leads, and what it reads takes no place among the functions that run long.
TEST_F(GatheringAlone, WhileOthersWaitItReadsBesideTheLeader) {
    others_wait_ = true;
    runs_ = [this](rove_here& here) {
        EXPECT_EQ(here.gathering->next(here), Next::part);
        read_ += here.gathering->part().size();
        EXPECT_EQ(idle_.under_lock([&]() REQUIRES(lock_of<EngineLock>) { return idle_.runner.leading(); }), nullptr)
            << "it has left the lead to others";
        read_all(here);
    };
    PeerState& peer = add_client(1);
    begin(peer);
    EXPECT_TRUE(soon([&] {
        return idle_.under_lock([&]() REQUIRES(lock_of<EngineLock>) {
            return idle_.runner.leading() == nullptr && idle_.runner.busy() == 1 && idle_.lead.is_led();
        });
    }));
    EXPECT_EQ(idle_.under_lock([&]() REQUIRES(lock_of<EngineLock>) { return idle_.runner.places_taken(); }), 0U);
    send_rest(peer);
    EXPECT_TRUE(has_read(kTotal));
    std::this_thread::sleep_for(2 * code::Pace::kShort);
    send_call(peer);
    EXPECT_TRUE(has_returned());
    EXPECT_EQ(last_, Next::call);
    EXPECT_FALSE(function_.pace.is_long()) << "that its payload took long makes no long function of it";
}

// So what follows its call does not overtake it. A busy machine may hold the function up for longer than that: not always.
TEST_F(GatheringAlone, AFunctionThatRunsBesideTheLeaderKeepsTheMailboxAtFirst) {
    others_wait_ = true;
    PeerState& peer = add_client(1);
    bool has_kept = false;
    for (int i = 0; i < 1000 && !has_kept; ++i) {
        read_ = 0;
        TimePoint sent{};
        runs_ = [&](rove_here& here) {
            Gathering& gathering = *here.gathering;
            read_all(here);
            const Hold hold(idle_.lead.mutex());
            const bool keeps = peer.calls.reader() == &gathering && gathering.keeps_mailbox();
            if (Clock::now() - sent < 1ms) {  // it began no earlier
                has_kept = true;
                EXPECT_TRUE(keeps);
            }
            if (!looks_at_calls(peer)) return;
            gathering.give_back_if_long();
            EXPECT_EQ(peer.calls.reader(), nullptr);
        };
        begin(peer);
        send_rest(peer);
        ASSERT_TRUE(has_read(kTotal));
        sent = Clock::now();
        send_call(peer);
        ASSERT_TRUE(has_returned());
    }
    EXPECT_TRUE(has_kept);
}

TEST_F(GatheringAlone, AFunctionThatRunsLongGivesTheMailboxBackAndIsKnownForThat) {
    others_wait_ = true;
    runs_ = [this](rove_here& here) {
        read_all(here);
        EXPECT_TRUE(soon([&] { return told_on_.load(); }));
    };
    PeerState& peer = add_client(1);
    begin(peer);
    send_rest(peer);
    send_call(peer);
    send_ping(peer);
    EXPECT_TRUE(leader_takes(peer, Kind::ping));
    EXPECT_FALSE(returned_);
    EXPECT_TRUE(function_.pace.is_long());
    EXPECT_EQ(gatherings_.running(), 0U) << "its thread is as any other's that runs long";
    EXPECT_EQ(idle_.under_lock([&]() REQUIRES(lock_of<EngineLock>) { return idle_.runner.places_taken(); }), 1U);
    told_on_ = true;
    EXPECT_TRUE(has_returned());
}

}  // namespace
}  // namespace rove::test
