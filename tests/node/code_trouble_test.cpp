// Code that peers ask for, announce and answer as no honest one does: nobody else's calls suffer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "api/access.hpp"
#include "bytes.hpp"
#include "hand_made.hpp"
#include "peer/code_arrival.hpp"
#include "process.hpp"
#include "wire/frame.hpp"

namespace rove::test {
namespace {

using fabric::Traffic;
using wire::Kind;

// With a victim that has no thread of its own either.
class CodeTrouble : public BesideAnEnemy {
protected:
    void SetUp() override {
        BesideAnEnemy::SetUp();
        NodeOptions own = options();
        own.own_thread = false;
        victim_ = std::make_unique<Node>(started(own));
        honest_ = std::make_unique<Peer>(victim_->connect(server_->address()));
    }
    void TearDown() override {
        honest_.reset();
        victim_.reset();
        BesideAnEnemy::TearDown();
    }
    // What the enemy has sent is handled by now, and it is still connected.
    void is_served_on() { EXPECT_EQ(link_->sync(fn<add>, 3, 4), 7); }

    std::unique_ptr<Node> victim_;
    std::unique_ptr<Peer> honest_;
};
ROVE_ON_FABRICS(CodeTrouble);

// The server has asked the victim, which has not looked yet.
TEST_P(CodeTrouble, OnlyWhoWasAskedCanLackCode) {
    const Package basics = Package::open(package("basics.c"));
    const Entry entry = basics.entry("count");
    detail::Inside::state(*honest_)->code.sent.insert(PackageStore::open(package("basics.c")).value()->digest());
    RawCall parked = honest_->call(entry);
    is_served_on();
    const auto store = PackageStore::open(package("basics.c")).value();
    for (const FunctionId& function : store->function_ids())
        write_frame(*link_, Traffic::prompt, {.kind = Kind::lack}, raw(wire::NeedCode{.function = function}));
    write_frame(*link_, Traffic::prompt, {.kind = Kind::lack}, raw(wire::NeedCode{}));
    is_served_on();
    EXPECT_EQ(as<long>(parked.get()), 1);
}

TEST_P(CodeTrouble, AClientAsksForItselfOnly) {
    is_cut_off("a question in another's name", [&] {
        write_frame(*link_, Traffic::prompt, {.kind = Kind::need},
                    raw(wire::NeedCode{.asker = detail::Inside::state(*honest_)->my_id()}));
    });
    EXPECT_EQ(honest_->sync(fn<add>, 2, 2), 4);
}

int take_away(int a, int b) {
    return a - b;
}

// What a handle meant is told by who was asked for it: else the handle means what it did.
TEST_P(CodeTrouble, AHandleIsNamedOnlyWhereItWasAskedFor) {
    const std::uint32_t handle = this->handle();  // add's
    ASSERT_EQ(link_->sync(fn<take_away>, 3, 2), 1);
    const PeerState& state = *detail::Inside::state(*link_);
    const std::vector<Bindings::Bound> all = state.code.bindings.all();
    const auto other = std::ranges::find_if(all, [&](const auto& each) { return each.handle != handle; });
    ASSERT_NE(other, all.end());
    write_frame(*link_, Traffic::prompt, {.kind = Kind::bind, .flags = wire::kMeant, .handle = handle},
                other->function.raw());
    for (int i = 0; i < 3; ++i) (void)link_->ping().get();  // it has been read: replies are, before calls
    EXPECT_EQ(link_->sync(fn<add>, 3, 2), 5) << "it is believed unasked";
    EXPECT_EQ(link_->sync(fn<take_away>, 3, 2), 1);
}

TEST_P(CodeTrouble, InlineCodeIsThatOfTheFunctionItNames) {
    const auto named = PackageStore::open(package("basics.c")).value();
    const auto sent = PackageStore::open(package("plain.c", {"-DANSWER=1"})).value();
    const auto slice = sent->slice_index(code::host_triple(), Forms::image);
    ASSERT_TRUE(slice);
    const wire::InlineCode code{.manifest_bytes = static_cast<std::uint32_t>(sent->manifest_bytes().size()),
                                .slice = static_cast<std::uint32_t>(*slice),
                                .slice_bytes = static_cast<std::uint32_t>(sent->stored_slice(*slice)->size())};
    Writer out;
    out.bytes(named->function_ids().front().raw());
    out.bytes(raw(code));
    out.bytes(sent->manifest_bytes());
    out.bytes(*sent->stored_slice(*slice));
    ByteBuffer extension = out.take();
    extension.resize(wire::inline_extension_bytes(code));
    is_cut_off("another function's code", [&] {
        write_frame(*link_, Traffic::calls, {.kind = Kind::call, .flags = wire::kInline | wire::kNoReply}, extension);
    });
}

// Items that are begun and not ended, more than there may be: the others find room again, and the sender is not cut off.
TEST_P(CodeTrouble, BegunPartsAreDroppedBeyondTheirBound) {
    const NodeId server = detail::Inside::state(*link_)->id();
    for (std::uint32_t i = 0; i < 2 * kAssembliesMax; ++i) {
        wire::CodeChunk chunk{.item = i + 1, .total_bytes = static_cast<std::uint32_t>(wire::kSliceBytesMax)};
        write_frame(*link_, Traffic::prompt, {.kind = Kind::code, .node = server}, raw(chunk), ByteBuffer(10));
        chunk.offset = 10;
        write_frame(*link_, Traffic::prompt, {.kind = Kind::code, .node = server}, raw(chunk), ByteBuffer(10));
        is_served_on();
    }
}

TEST_P(CodeTrouble, ALoadIsAnsweredWhenItIsDone) {
    const Package basics = Package::open(package("basics.c"));
    honest_->load(basics);
    EXPECT_EQ(as<long>(honest_->call(basics.entry("count")).get()), 1);
}

TEST(LoadTrouble, ALoadThatFindsNoRoomSaysWhy) {
    const NodeProcess full({"--known-packages", "1"});
    Node client(NodeOptions{.log = "off"});
    const Peer peer = client.connect(full.address());
    (void)peer.load(Package::open(package("shelf.c", {"--interface", "-DLABEL=1"})));
    try {
        (void)peer.load(Package::open(package("shelf.c", {"--interface", "-DLABEL=2"})));
        FAIL() << "the node knows a package more than it may";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::overloaded);
        EXPECT_NE(std::string(error.what()).find("knows 1 packages, the most a node does"), std::string::npos)
            << error.what();
    }
}

CodeArrival::Piece piece(std::uint32_t item, std::size_t offset, std::size_t total_bytes, Bytes bytes) {
    return {.package = {}, .item = item, .offset = offset, .total_bytes = total_bytes, .bytes = bytes};
}

TEST(CodeArrives, InPiecesThatAreCountedUntilTheyAreWhole) {
    std::size_t of_all = 0;
    CodeArrival arrival;
    const TimePoint now = Clock::now();
    const ByteBuffer bytes(100, std::byte{7});
    for (std::uint32_t item = 0; item < 3 * kAssembliesMax; ++item) {
        EXPECT_EQ(arrival.take(of_all, piece(item, 0, 200, bytes), now), CodeArrival::Took::more_to_come);
        EXPECT_EQ(arrival.bytes(), 200U);
        EXPECT_EQ(of_all, 100U);
        EXPECT_EQ(arrival.take(of_all, piece(item, 100, 200, bytes), now), CodeArrival::Took::whole);
        EXPECT_EQ(arrival.taken(piece(item, 100, 200, bytes)).take().bytes->size(), 200U);
        EXPECT_EQ(arrival.bytes(), 0U);
        EXPECT_EQ(of_all, 0U);
    }
}

// Sent ahead of its call, and asked for by who had seen the call first: two streams of the same bytes, as their frames fall.
TEST(CodeArrives, TwiceAtOnce) {
    using Took = CodeArrival::Took;
    std::size_t of_all = 0;
    CodeArrival arrival;
    const TimePoint now = Clock::now();
    ByteBuffer bytes(300);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 251);
    const auto at = [&](std::size_t offset, std::size_t size) {
        return piece(1, offset, bytes.size(), Bytes(bytes).subspan(offset, size));
    };
    EXPECT_EQ(arrival.take(of_all, at(0, 100), now), Took::more_to_come);
    EXPECT_EQ(arrival.take(of_all, at(100, 100), now), Took::more_to_come);
    EXPECT_EQ(arrival.take(of_all, at(0, 100), now), Took::more_to_come) << "the other begins";
    EXPECT_EQ(of_all, 200U) << "and brings nothing new";
    EXPECT_EQ(arrival.take(of_all, at(50, 200), now), Took::more_to_come) << "a part of it is new";
    EXPECT_EQ(arrival.take(of_all, at(100, 100), now), Took::more_to_come);
    EXPECT_EQ(arrival.take(of_all, at(200, 100), now), Took::whole);
    EXPECT_EQ(*arrival.taken(at(200, 100)).take().bytes, bytes);
    EXPECT_EQ(arrival.take(of_all, at(200, 100), now), Took::no_room) << "late: there is nothing that it goes on";
    EXPECT_EQ(of_all, 0U);
    EXPECT_EQ(arrival.take(of_all, at(0, 100), now), Took::more_to_come) << "a third begins";
    EXPECT_EQ(arrival.take(of_all, at(200, 100), now), Took::more_to_come) << "and the rest of the first is none of it";
    EXPECT_EQ(of_all, 100U);
    EXPECT_EQ(arrival.take(of_all, at(100, 200), now), Took::whole);
    EXPECT_EQ(*arrival.taken(at(100, 200)).take().bytes, bytes);
    EXPECT_EQ(of_all, 0U);
}

TEST(CodeArrives, AndMakesWayWhereItHasNotGoneOnForLongest) {
    using Took = CodeArrival::Took;
    std::size_t of_all = 0;
    CodeArrival arrival;
    const TimePoint begun = Clock::now();
    const auto at = [begun](int second) { return begun + std::chrono::seconds(second); };
    const ByteBuffer bytes(10);
    constexpr int kMost = kAssembliesMax;
    for (int item = 0; item < kMost; ++item)
        EXPECT_EQ(arrival.take(of_all, piece(item, 0, 100, bytes), at(item)), Took::more_to_come);
    EXPECT_EQ(arrival.take(of_all, piece(0, 10, 100, bytes), at(kMost)), Took::more_to_come);
    EXPECT_EQ(arrival.take(of_all, piece(kMost, 0, 100, bytes), at(kMost + 1)), Took::more_to_come);
    EXPECT_EQ(arrival.items(), kAssembliesMax);
    EXPECT_EQ(arrival.take(of_all, piece(1, 10, 100, bytes), at(kMost + 2)), Took::no_room) << "it made way";
    EXPECT_EQ(arrival.take(of_all, piece(0, 20, 100, bytes), at(kMost + 3)), Took::more_to_come);
    EXPECT_EQ(arrival.take(of_all, piece(2, 20, 101, bytes), at(kMost + 3)), Took::no_meaning);
    EXPECT_EQ(of_all, 10U * (kAssembliesMax + 2));
    arrival.drop_idle(at(kMost + 1));
    EXPECT_EQ(arrival.items(), 2U) << "those that went on since";
    EXPECT_EQ(arrival.bytes(), 200U);
    EXPECT_EQ(of_all, 40U);
}

TEST(CodeArrives, WithinBoundsOfOnePeerAndOfAll) {
    using Took = CodeArrival::Took;
    std::size_t of_all = 0;
    const TimePoint now = Clock::now();
    const ByteBuffer bytes(wire::kSliceBytesMax / 2);
    std::vector<CodeArrival> peers(9);
    for (std::uint32_t item = 0; item < 4; ++item) {
        EXPECT_EQ(peers[0].take(of_all, piece(item, 0, wire::kSliceBytesMax, bytes), now), Took::more_to_come);
        EXPECT_LE(peers[0].bytes(), kAssemblyBytesMax);
        EXPECT_LE(of_all, kAssemblyBytesMax / 2) << "what has come counts";
    }
    for (int i = 1; i < 8; ++i)
        for (std::uint32_t item = 0; item < 2; ++item)
            EXPECT_EQ(peers[i].take(of_all, piece(item, 0, wire::kSliceBytesMax, bytes), now), Took::more_to_come);
    EXPECT_EQ(of_all, kAssemblyBytesOfAllMax);
    EXPECT_EQ(peers[8].take(of_all, piece(0, 0, wire::kSliceBytesMax, bytes), now), Took::no_room);
    EXPECT_EQ(peers[8].items(), 0U);
    EXPECT_EQ(peers[7].take(of_all, piece(0, bytes.size(), wire::kSliceBytesMax, bytes), now), Took::no_room);
    EXPECT_EQ(peers[7].items(), 1U) << "of that item nothing is left";
    EXPECT_EQ(of_all, kAssemblyBytesOfAllMax - bytes.size());
    EXPECT_EQ(peers[8].take(of_all, piece(0, 0, wire::kSliceBytesMax, bytes), now), Took::more_to_come);
    peers.clear();
    EXPECT_EQ(of_all, 0U);
}

TEST(CodeAnswers, AreOneForEachAskerAndPackageAndBounded) {
    CodeAnswers answers;
    EXPECT_TRUE(answers.empty());
    CodeAnswer answer{.need = {.asker = 3}, .item_count = 2};
    EXPECT_TRUE(answers.add(answer));
    answers.first().item = 1;
    EXPECT_TRUE(answers.add(answer));
    EXPECT_EQ(answers.first().item, 0U) << "who asks again has lost some of it";
    for (NodeId asker = 4; asker < 3 + CodeAnswers::kMax; ++asker) {
        answer.need.asker = asker;
        EXPECT_TRUE(answers.add(answer));
    }
    answer.need.asker = 2;
    EXPECT_FALSE(answers.add(answer));
    answers.drop_first();
    EXPECT_TRUE(answers.add(answer));
    EXPECT_EQ(answers.first().need.asker, 4U);
}

TEST(CodeArrives, AndWhatAPeerHasHadIsRememberedInMeasure) {
    SentPackages sent;
    for (std::uint32_t i = 0; i < 3 * kPackagesSentMax; ++i) {
        Digest digest;
        std::memcpy(digest.bytes.data(), &i, sizeof i);
        sent.insert(digest);
        EXPECT_TRUE(sent.contains(digest));
        EXPECT_LE(sent.size(), kPackagesSentMax);
    }
}

}  // namespace
}  // namespace rove::test
