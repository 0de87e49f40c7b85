// Questions for code that go through a node to others, and their answers: nobody has others refused, or flooded.
#include "bytes.hpp"
#include "hand_made.hpp"
#include "node/code_arrival.hpp"
#include "node/core.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;
using fabric::Traffic;
using wire::Kind;

class CodeQuestions : public OnFabrics {
protected:
    void SetUp() override {}
    [[nodiscard]] NodeOptions by_hand(bool listens, const std::string& join = {}) const {
        NodeOptions own = options(listens);
        own.join = join;
        own.own_thread = false;
        return own;
    }
};
ROVE_ON_FABRICS(CodeQuestions);

// A client says to a member, through the node in the middle, that nobody has the code that the member waits for.
TEST_P(CodeQuestions, AnAnswerIsPassedOnOnlyToWhoAsked) {
    Node first(by_hand(true));
    Node liar(by_hand(false));
    const Peer link = liar.connect(first.address());  // its mailbox is looked at first
    Node member(by_hand(true, first.address()));
    const Peer to_member = first.connect(member.address());
    const PeerState& waits = *detail::Edge::state(member.connect(first.address()));
    const Package basics = Package::open(package("basics.c"));
    const auto store = PackageStore::open(package("basics.c")).value();
    detail::Edge::state(to_member)->code_sent.insert(store->digest());  // so that it is not sent ahead
    RawCall call = to_member.call(basics.entry("count"));
    ASSERT_TRUE(soon([&] {
        (void)member.poll();
        return waits.parked && waits.parked->asked;
    }));
    const wire::NeedCode need{.function = waits.parked->function, .asker = member.id(), .handle = waits.parked->handle};
    write_frame(link, Traffic::replies, {.kind = Kind::lack, .node = member.id()}, raw(need), {});
    (void)liar.poll();
    std::atomic<bool> done = false;
    std::thread serves([&] {
        while (!done) {
            (void)member.poll();
            (void)liar.poll();
        }
    });
    try {
        EXPECT_EQ(as<long>(call.get()), 1);
    } catch (const Error& error) {
        ADD_FAILURE() << error.message();
    }
    done = true;
    serves.join();
}

// A member asks again and again for code in another one's name.
TEST_P(CodeQuestions, NobodyHasAnotherOneFlooded) {
    Node first(options(true));
    NodeOptions joins = options(true);
    joins.join = first.address();
    Node other(joins);
    Node liar(by_hand(true, first.address()));
    const Peer to_other = first.connect(other.address());
    const Package basics = Package::open(package("basics.c"));
    ASSERT_EQ(as<long>(to_other.call(basics.entry("count")).get()), 1);
    const auto before = to_other.counters().code_bytes_sent;
    ASSERT_GT(before, 0U);
    const Peer link = liar.connect(first.address());
    wire::NeedCode need{.function = PackageStore::open(package("basics.c")).value()->function_ids().front(),
                        .asker = other.id(),
                        .origin = first.id()};
    detail::Edge::state(to_other)->triple.copy(need.triple.data(), need.triple.size() - 1);
    const Peer to_liar = first.connect(liar.address());
    const auto received = to_liar.counters().frames_received;
    const std::size_t questions = 10 * kForeignCodeBytesMax / before;
    const auto begun = std::chrono::steady_clock::now();
    for (std::size_t asked = 0; asked < questions; ++asked)
        while (!try_write_frame(link, Traffic::replies, {.kind = Kind::need, .node = first.id()}, raw(need))) {
            (void)liar.poll();
            ASSERT_LT(std::chrono::steady_clock::now() - begun, 60s);
        }
    ASSERT_TRUE(soon([&] {
        (void)liar.poll();
        return to_liar.counters().frames_received >= received + questions;
    }));
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(std::chrono::steady_clock::now() - begun).count();
    const auto sent = to_other.counters().code_bytes_sent - before;
    EXPECT_GT(sent, 0U);
    EXPECT_LE(sent, kForeignCodeBytesMax * static_cast<std::size_t>(1 + seconds) + 2 * before);
}

}  // namespace
}  // namespace rove::test
