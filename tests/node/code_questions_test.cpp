// Questions for code that go through a node to others, and their answers: nobody has others refused, or flooded.
#include <filesystem>
#include <fstream>
#include <random>

#include "bytes.hpp"
#include "hand_made.hpp"
#include "node/core.hpp"
#include "peer/code_arrival.hpp"
#include "process.hpp"
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
    Node first(started(by_hand(true)));
    Node liar(started(by_hand(false)));
    const Peer link = liar.connect(first.address());  // its mailbox is looked at first
    Node member(started(by_hand(true, first.address())));
    const Peer to_member = first.connect(member.address());
    const PeerState& waits = *detail::Inside::state(member.connect(first.address()));
    const Package basics = Package::open(package("basics.c"));
    const auto store = PackageStore::open(package("basics.c")).value();
    detail::Inside::state(to_member)->code.sent.insert(store->digest());  // so that it is not sent ahead
    RawCall call = to_member.call(basics.entry("count"));
    EngineView::carry(detail::Inside::core(to_member)->first_engine());
    ASSERT_TRUE(soon([&] {
        (void)member.poll();
        return waits.calls.parked && waits.calls.parked->waits_for_code();
    }));
    const wire::NeedCode need{
        .function = waits.calls.parked->function, .asker = member.id(), .handle = waits.calls.parked->handle};
    write_frame(link, Traffic::prompt, {.kind = Kind::lack, .node = member.id()}, raw(need), {});
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

// What a client sends as an answer to a question that nobody asked it.
class UnaskedCode : public CodeQuestions {
protected:
    void SetUp() override {
        first_ = std::make_unique<Node>(started(options(true)));
        second_ = std::make_unique<Node>(started(joining()));
        to_second_ = std::make_unique<Peer>(first_->connect(second_->address()));
        to_second_->sync(fn<nothing>);
        liar_ = std::make_unique<Node>(started(by_hand(false)));
        link_ = std::make_unique<Peer>(liar_->connect(first_->address()));
        link_->sync(fn<nothing>);
        met_ = meeting();
    }
    [[nodiscard]] NodeOptions joining() const {
        NodeOptions joins = options(true);
        joins.join = first_->address();
        return joins;
    }
    [[nodiscard]] std::uint64_t meeting() const { return detail::Inside::state(*to_second_)->meeting(); }
    void send_code(const wire::CodeChunk& chunk, std::size_t bytes) const { send_code_to(*second_, chunk, bytes); }
    void send_code_to(const Node& node, const wire::CodeChunk& chunk, std::size_t bytes, std::uint8_t hops = 0) const {
        write_frame(*link_, Traffic::prompt, {.kind = Kind::code, .node = node.id(), .hops = hops}, raw(chunk),
                    ByteBuffer(bytes, std::byte{1}));
    }
    [[nodiscard]] bool is_cut() const {
        return soon([&, cut = detail::Inside::state(*link_)->link()] {
            (void)liar_->poll();
            return detail::Inside::state(*link_)->link() != cut;
        });
    }
    std::unique_ptr<Node> first_, second_, liar_;
    std::unique_ptr<Peer> to_second_, link_;
    std::uint64_t met_ = 0;
};
ROVE_ON_FABRICS(UnaskedCode);

TEST_P(UnaskedCode, OfNoMeaningCostsItsSender) {
    send_code({.item = 1, .total_bytes = 0}, 64);
    EXPECT_TRUE(is_cut());
    to_second_->sync(fn<nothing>);
    EXPECT_EQ(meeting(), met_) << "two members were parted";
}

TEST_P(UnaskedCode, ThatAClientSaysToPassOnCostsItsSender) {
    send_code_to(*first_, {.item = 1, .total_bytes = 128}, 64, 1);
    EXPECT_TRUE(is_cut());
}

TEST_P(UnaskedCode, IsNotPassedOn) {
    const auto sent = to_second_->counters().frames_sent;
    for (std::uint32_t i = 0; i < 2 * kAssembliesMax; ++i) send_code({.item = i, .total_bytes = 60'000}, 1000);
    for (int i = 0; i < 3; ++i) link_->sync(fn<nothing>);  // it was read: replies are, before calls
    EXPECT_EQ(to_second_->counters().frames_sent, sent);
    EXPECT_EQ(meeting(), met_);
}

// A call that came over two members, which know nothing of its code: from a client of the first of them.
class TwoAway : public CodeQuestions {
protected:
    void SetUp() override {
        first_ = std::make_unique<Node>(started(options(true)));
        NodeOptions joins = options(true);
        joins.join = first_->address();
        last_ = std::make_unique<Node>(started(joins));
        joins.own_thread = false;
        middle_ = std::make_unique<Node>(started(joins));
        to_last_ = std::make_unique<Peer>(middle_->connect(last_->address()));
        client_ = std::make_unique<Node>(started(by_hand(false)));
        home_ = std::make_unique<Peer>(client_->connect(first_->address()));
        home_->sync(fn<nothing>);
    }
    void TearDown() override {
        drives_ = {};
        OnFabrics::TearDown();
    }
    // As the middle sends on a call whose package it has forgotten since.
    void send_on(const FunctionId& function) {
        received_ = last_->connect(middle_->address()).counters().frames_received;
        write_frame(*to_last_, Traffic::calls,
                    {.kind = Kind::call,
                     .flags = wire::kById,
                     .generation = 1,
                     .node = detail::Inside::state(*home_)->my_id(),
                     .call = 5,
                     .hops = 2},
                    function.raw());
    }
    void drive(bool client_answers) {
        drives_ = std::jthread([this, client_answers](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
                (void)middle_->poll();
                if (client_answers) (void)client_->poll();
            }
        });
    }
    // How long it takes until the last one has the call, and does not wait for its code any more.
    [[nodiscard]] Clock::duration waited() const {
        const auto begun = Clock::now();
        const Peer back = last_->connect(middle_->address());
        EXPECT_TRUE(soon([&] {
            const bool has_come = back.counters().frames_received > received_;
            const PeerState& state = *detail::Inside::state(back);
            const Hold hold(state.engine->lock());
            return has_come && !state.calls.parked && !state.link()->pending();
        }));
        return Clock::now() - begun;
    }
    std::unique_ptr<Node> first_, last_, middle_, client_;
    std::unique_ptr<Peer> to_last_, home_;
    std::uint64_t received_ = 0;  // by the last one, of the middle
    std::jthread drives_;
};
ROVE_ON_FABRICS(TwoAway);

TEST_P(TwoAway, ThatNobodyHasTheCodeComesBackToWhoAsked) {
    const ByteBuffer seven(sizeof(FunctionId), std::byte{7});
    send_on(FunctionId::from(Bytes(seven).first<sizeof(FunctionId)>()));
    drive(true);
    EXPECT_LT(waited(), kCodeWaitMax) << "it was ended by its time alone";
}

TEST_P(TwoAway, TheCodeComesTheSameWay) {
    const Package basics = Package::open(package("basics.c"));
    ASSERT_EQ(as<long>(home_->call(basics.entry("count")).get()), 1);
    const auto sent = home_->counters().code_bytes_sent;
    const auto store = PackageStore::open(package("basics.c")).value();
    send_on(store->function_ids()[store->entry("count").value()]);
    drive(true);
    EXPECT_LT(waited(), kCodeWaitMax);
    // Once more, and not as much as before: the first time it may have been asked for twice. The last of it comes after the call has run.
    std::size_t whole = store->manifest_bytes().size();
    for (const wire::Slice& each : store->manifest().slices)
        if (each.triple == code::host_triple()) whole += each.stored_bytes;
    EXPECT_TRUE(soon([&] { return home_->counters().code_bytes_sent >= sent + whole; }))
        << home_->counters().code_bytes_sent << " after " << sent << "; it has " << whole;
    drives_ = {};
    EXPECT_EQ(as<long>(first_->connect(last_->address()).call(basics.entry("count")).get()), 2) << "it ran there once";
}

// Takes 5 s.
class TwoAwayInSeconds : public TwoAway {};
ROVE_ON_FABRICS_WITH_ONE_SEED(TwoAwayInSeconds);

// Its pieces are whole and in their order, and nothing.
TEST_P(TwoAwayInSeconds, CodeOfNoMeaningDoesNotPartTheMembersThatPassedItOn) {
    const auto meeting = [](const Peer& peer) { return detail::Inside::state(peer)->meeting(); };
    const Peer first_to_middle = first_->connect(middle_->address());
    const auto met = meeting(*to_last_), met_first = meeting(first_to_middle);
    const ByteBuffer seven(sizeof(FunctionId), std::byte{7});
    send_on(FunctionId::from(Bytes(seven).first<sizeof(FunctionId)>()));
    drive(false);
    Engine& clients = detail::Inside::core(*home_)->first_engine();
    ASSERT_TRUE(soon([&] {  // it does not answer
        (void)EngineView::progress(clients);
        return detail::Inside::state(*home_)->link()->pending();
    })) << "the client was not asked";
    const auto passed = to_last_->counters().frames_sent;
    const auto piece = [&](std::uint32_t offset, std::uint32_t total, std::size_t bytes) {
        write_frame(*home_, Traffic::prompt, {.kind = Kind::code, .node = last_->id()},
                    raw(wire::CodeChunk{.offset = offset, .total_bytes = total}), ByteBuffer(bytes, std::byte{5}));
    };
    piece(0, 64, 64);
    piece(0, 128, 64);
    piece(96, 128, 32);  // not where the last one ended: it goes no further than to the first
    piece(64, 128, 64);
    EXPECT_TRUE(soon([&] {
        (void)EngineView::progress(clients);  // a stream has gathered some
        return to_last_->counters().frames_sent == passed + 3;
    }));
    EXPECT_GE(waited(), kCodeWaitMax / 2) << "what came was believed";
    EXPECT_EQ(meeting(*to_last_), met);
    EXPECT_EQ(meeting(first_to_middle), met_first);
}

// Each question is some bytes, and its answer megabytes: they go as fast as who asks takes them.
class LargeAnswers : public CodeQuestions {};
// Not on streams: a socket takes more than this package.
INSTANTIATE_TEST_SUITE_P(Fabrics, LargeAnswers, testing::Values(kLoopback, kChaos, kChaosOfTwoEngines, kShm),
                         fabric_name);

TEST_P(LargeAnswers, WhoAsksAgainAndAgainHasNoMoreWaitingThanOnePiece) {
    constexpr int kQuestions = 32;
    const std::filesystem::path folder = scratch() / "fat";
    std::filesystem::create_directories(folder);
    {
        std::mt19937 any(7);
        std::ofstream bytes(folder / "fat.bin", std::ios::binary);
        for (int i = 0; i < 1 << 20; ++i) bytes.put(static_cast<char>(any()));
    }
    const std::string path = package("fat.c", {"--flag=--embed-dir=" + folder.string()});
    const Package fat = Package::open(path);
    const auto store = PackageStore::open(path).value();
    Node server(started(options(true)));
    Node asks(started(by_hand(true, server.address())));
    const Peer link = asks.connect(server.address());
    EXPECT_EQ(link.call(fat.entry("fat")).get().size(), 1U);
    ASSERT_TRUE(soon([&] {  // its other form goes after the call
        (void)asks.poll();
        return !detail::Inside::state(link)->has_frames_waiting();
    }));
    const Peer back = server.connect(asks.address());
    const auto looks = [&](const auto& look) {
        const Hold hold(detail::Inside::core(back)->first_engine().lock());
        return look(*detail::Inside::state(back));
    };
    wire::NeedCode need{.function = store->function_ids().front(), .asker = asks.id()};
    code::host_triple().copy(need.triple.data(), need.triple.size() - 1);
    const auto received = back.counters().frames_received;
    for (int i = 0; i < kQuestions; ++i)
        ASSERT_TRUE(soon([&] {
            return try_write_frame(link, Traffic::prompt, {.kind = Kind::need, .node = server.id()}, raw(need));
        }));
    ASSERT_TRUE(soon([&] { return back.counters().frames_received >= received + kQuestions; }));
    EXPECT_LE(looks([](const PeerState& peer) { return peer.outbox_of(fabric::Traffic::prompt).count(); }), 1U);
    EXPECT_LE(looks([](const PeerState& peer) { return peer.outbox_of(fabric::Traffic::prompt).bytes(); }),
              bytes_waiting(wire::kFrameBytesMax));
    EXPECT_FALSE(looks([](const PeerState& peer) { return peer.code.answers.empty(); }));
    EXPECT_TRUE(soon([&] {
        (void)asks.poll();
        return looks([](const PeerState& peer) {
            return peer.code.answers.empty() && peer.outbox_of(fabric::Traffic::prompt).is_empty();
        });
    }));
    detail::Inside::state(back)->code.sent.insert(store->digest());
    const auto sent = back.counters().code_bytes_sent;
    RawCall call = back.call(fat.entry("fat"));
    EXPECT_TRUE(soon([&] {
        (void)asks.poll();
        return call.done();
    }));
    EXPECT_EQ(call.get().size(), 1U);
    EXPECT_EQ(back.counters().code_bytes_sent, sent) << "what came at last was not whole";
}

}  // namespace
}  // namespace rove::test
