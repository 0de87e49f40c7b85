// A client may act in its own name only. It makes no calls in another's name, answers no calls of others, and attempts that are refused
// leave no state.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "engine/here.hpp"
#include "hand_made.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using fabric::Traffic;
using wire::Kind;

std::size_t count(const std::vector<char>& data) {
    return data.size();
}

class Callers : public BesideAnEnemy {
protected:
    // What the server calls the honest client: an id that is in use.
    [[nodiscard]] NodeId honest() const { return detail::Inside::state(peer())->my_id(); }
};
ROVE_ON_FABRICS(Callers);

TEST_P(Callers, ACallInTheNameOfALivingClientIsRefused) {
    ASSERT_NE(honest(), detail::Inside::state(*link_)->my_id());
    is_cut_off("a call", [&] {
        write_frame(*link_, Traffic::calls, {.kind = Kind::call, .handle = handle(), .node = honest()}, {},
                    ByteBuffer(8));
    });
    is_cut_off("a batch", [&] {
        write_frame(
            *link_, Traffic::calls,
            {.kind = Kind::batch, .flags = wire::kNoReply, .handle = handle(), .generation = 8, .node = honest()}, {},
            ByteBuffer(16));
    });
    is_cut_off("a ping", [&] { write_frame(*link_, Traffic::calls, {.kind = Kind::ping, .node = honest()}, {}); });
}

TEST_P(Callers, AReplyToALivingClientIsRefused) {
    is_cut_off("a reply", [&] { write_frame(*link_, Traffic::prompt, {.kind = Kind::reply, .node = honest()}, {}); });
    is_cut_off("a part of one", [&] {
        const wire::Part part{.total_bytes = 100};
        write_frame(*link_, Traffic::prompt, {.kind = Kind::part, .node = honest()}, raw(part), ByteBuffer(10));
    });
}

// Runs with the honest client, while the server waits for its answer: the enemy answers first.
const Peer* enemys_link = nullptr;
wire::FrameHeader forged(Here& here, Kind kind) {
    const wire::CallContext& call = here.raw()->call;
    return {.kind = kind,
            .generation = call.generation,
            .node = detail::Inside::state(*enemys_link)->id(),
            .call = call.call};
}
// Once the enemy's own call has been answered, the server has seen what it sent before.
void wait_until_seen() {
    try {
        (void)enemys_link->sync(fn<add>, 1, 1);
    } catch (const Error&) {  // cut off: as good
    }
}
int one(Here& here) {
    const int lie = 666;
    write_frame(*enemys_link, Traffic::prompt, forged(here, Kind::reply), {}, raw(lie));
    wait_until_seen();
    return 1;
}
std::vector<char> many(Here& here) {
    const wire::Part part{.offset = 0, .total_bytes = 100};
    write_frame(*enemys_link, Traffic::prompt, forged(here, Kind::part), raw(part), ByteBuffer(10));
    wait_until_seen();
    return std::vector<char>(300'000, 'x');
}
// Run with the server.
int ask_for_one(Here& here) {
    return here.caller().sync(fn<one>);
}
std::size_t ask_for_many(Here& here) {
    const std::vector<char> answer = here.caller().sync(fn<many>);
    return static_cast<std::size_t>(std::count(answer.begin(), answer.end(), 'x'));
}

TEST_P(Callers, OnlyWhoWasCalledAnswers) {
    enemys_link = link_.get();
    EXPECT_EQ(peer().sync(fn<ask_for_one>), 1);
    EXPECT_EQ(peer().sync(fn<ask_for_many>), 300'000U);
    EXPECT_EQ(link_->sync(fn<add>, 3, 2), 5);
}

TEST_P(Callers, NobodyHasCodeSentToAClient) {
    const wire::CodeChunk chunk{.item = 1, .total_bytes = 16};
    for (const Traffic traffic : {Traffic::calls, Traffic::prompt})
        is_cut_off("code", [&] {
            write_frame(*link_, traffic, {.kind = Kind::code, .node = honest()}, raw(chunk), ByteBuffer(16));
        });
}

// Runs with a server that means ill: answers whatever its caller may have asked others. Calls are numbered in order, from one first
// generation.
void answer_others(Here& here) {
    const Result<Peer> found = detail::Inside::peer(here.raw()->node(), here.raw()->call.node);
    ASSERT_TRUE(found);
    const wire::CallContext& own = here.raw()->call;
    const int forged = 99;
    for (std::uint16_t call = 0; call < 8; ++call)
        for (std::uint32_t generation = own.generation - 2; generation != own.generation + 3; ++generation)
            if (call != own.call)
                write_frame(*found, Traffic::prompt,
                            {.kind = Kind::reply, .generation = generation, .node = own.node, .call = call}, {},
                            std::as_bytes(std::span(&forged, 1)));
}
TEST_P(Callers, ANodeAnswersOnlyWhatItWasAsked) {
    NodeOptions silent = options(true);
    silent.own_thread = false;
    Node other(started(silent));
    Node client(started(options()));
    const Peer to_other = client.connect(other.address());
    const Peer to_server = client.connect(server_->address());
    Call<int> asked = to_other.async(fn<add>, 1, 2);
    to_server.sync(fn<answer_others>);
    EXPECT_EQ(to_server.sync(fn<add>, 2, 2), 4);  // it has read what came before
    EXPECT_FALSE(asked.wait_for(std::chrono::seconds(0))) << "with what another node says";
    ASSERT_TRUE(soon([&] {
        (void)other.poll();
        return asked.wait_for(std::chrono::seconds(0));
    }));
    EXPECT_EQ(asked.get(), 3);
}

// Runs with a server that means ill: sends its caller code that nobody has asked for.
void send_code_back(Here& here, bool among_calls) {
    const Result<Peer> found = detail::Inside::peer(here.raw()->node(), here.raw()->call.node);
    ASSERT_TRUE(found);
    const Peer& caller = *found;
    const wire::CodeChunk chunk{.item = 1, .total_bytes = 16};
    write_frame(caller, among_calls ? Traffic::calls : Traffic::prompt,
                {.kind = Kind::code, .node = detail::Inside::state(caller)->id()}, raw(chunk), ByteBuffer(16));
}
TEST_P(Callers, AClientTakesNoCode) {
    for (const bool listens : {false, true}) {  // one that others call is still a client of those that it calls
        Node client(started(options(listens)));
        const Peer link = client.connect(server_->address());
        ASSERT_EQ(link.sync(fn<add>, 1, 2), 3);
        for (const bool among_calls : {false, true}) {
            // The news may come behind the answer, and the next call begin a new meeting.
            const std::uint64_t met = detail::Inside::state(link)->meeting();
            const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
            const auto is_met = [&] { return detail::Inside::state(link)->meeting() == met; };
            const auto call = [&](const auto& work) {
                try {
                    work();
                } catch (const Error& error) {
                    EXPECT_EQ(error.code(), ErrorCode::disconnected) << error.what();
                }
            };
            call([&] { link.sync(fn<send_code_back>, among_calls); });
            while (is_met() && std::chrono::steady_clock::now() < patience)
                call([&] { (void)link.sync(fn<add>, 1, 2); });
            EXPECT_FALSE(is_met()) << "it was taken" << (among_calls ? " among calls" : "");
            EXPECT_EQ(link.sync(fn<add>, 2, 2), 4);
        }
    }
}

// More refused calls than payloads in parts may be staged at once: each takes its parts with it.
TEST_P(Callers, TheirRefusedCallsLeaveNoPartsBehind) {
    const std::shared_ptr<fabric::Link> link = detail::Inside::state(*link_)->link();
    const std::array<std::uint64_t, 2> id{1, 2};
    const wire::Either nobodys{.resident = FunctionId::from(std::as_bytes(std::span(id)))};
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const auto write = [&](const wire::FrameHeader& header, Bytes extra, Bytes payload) {
        while (!try_write_frame(*link_, Traffic::calls, header, extra, payload)) {
            ASSERT_LT(std::chrono::steady_clock::now(), patience) << "the server takes nothing more";
            (void)enemy_->poll();
        }
    };
    for (std::uint64_t number = 1; number <= 300; ++number) {
        // Numbers that the honest way of sending does not come to.
        const wire::Part part{.number = number + (1UL << 40U), .total_bytes = 1000};
        const wire::Staged which{.number = part.number, .total_bytes = part.total_bytes};
        write({.kind = Kind::part}, raw(part), ByteBuffer(part.total_bytes));
        write({.kind = Kind::call, .flags = wire::kByEither | wire::kParts}, raw(nobodys), raw(which));
        if (HasFatalFailure()) return;
        (void)enemy_->poll();
    }
    EXPECT_EQ(link_->sync(fn<add>, 3, 2), 5);
    EXPECT_EQ(link_->sync(fn<count>, std::vector<char>(300'000)), 300'000U);
    EXPECT_EQ(detail::Inside::state(*link_)->link(), link) << "the link was cut";
}

}  // namespace
}  // namespace rove::test
