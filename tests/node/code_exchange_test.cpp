// Code on its way between nodes, without a node.
#include <thread>

#include "exchanging.hpp"
#include "some_package.hpp"

namespace rove::test {
namespace {

using wire::Kind;

class CodeExchangeTest : public Exchanging {
protected:
    template <typename Extension>
    static wire::Frame frame(Kind kind, NodeId node, const Extension& extra, Bytes payload = {}) {
        return {{.body_bytes = static_cast<std::uint32_t>(sizeof extra + payload.size()),
                 .extra_bytes = sizeof extra,
                 .kind = kind,
                 .node = node},
                std::as_bytes(std::span(&extra, 1)),
                payload};
    }
    static wire::NeedCode need_of(const FunctionId& function, NodeId asker, NodeId origin) {
        wire::NeedCode need{.function = function, .asker = asker, .origin = origin};
        std::string_view("x86_64-linux-gnu").copy(need.triple.data(), need.triple.size() - 1);
        return need;
    }
    template <typename Extension>
    static Extension extra_of(const Neighbours::Received& received) {
        Extension extra;
        EXPECT_EQ(received.extra.size(), sizeof extra);
        std::memcpy(&extra, received.extra.data(), sizeof extra);
        return extra;
    }
    // In pieces, as they fit into frames.
    void arrives(PeerState& peer, std::uint32_t item, Bytes bytes) {
        for (std::size_t offset = 0; offset < bytes.size(); offset += 1'000) {
            const Bytes piece = bytes.subspan(offset, std::min<std::size_t>(1'000, bytes.size() - offset));
            exchange_.on_code(peer, frame(Kind::code, 0,
                                          wire::CodeChunk{.package = package_->digest(),
                                                          .item = item,
                                                          .offset = static_cast<std::uint32_t>(offset),
                                                          .total_bytes = static_cast<std::uint32_t>(bytes.size())},
                                          piece));
        }
    }
    // Nothing is said against the peer.
    static void expect_trusted(const PeerState& peer) {
        EXPECT_EQ(peer.link()->broken(), nullptr) << peer.link()->broken()->message();
    }

    std::shared_ptr<PackageStore> package_ = some_package({"run"}, {{Forms::image, 3'000}, {Forms::bitcode, 200'000}});
};

TEST_F(CodeExchangeTest, WhoAsksForCodeThatIsHereGetsManifestAndSlices) {
    own_functions_.keep(package_);
    PeerState& peer = neighbours_.add(2);
    const auto need = need_of(package_->function_ids()[0], 2, 0);
    exchange_.on_need(peer, frame(Kind::need, 0, need));
    std::map<std::uint32_t, ByteBuffer> items;
    for (const auto& received : neighbours_.received_by(peer)) {
        ASSERT_EQ(received.header.kind, Kind::code);
        EXPECT_EQ(received.header.node, 2U);
        const auto chunk = extra_of<wire::CodeChunk>(received);
        EXPECT_EQ(chunk.package, package_->digest());
        ByteBuffer& item = items[chunk.item];
        EXPECT_EQ(chunk.offset, item.size()) << "in their order";
        item.insert(item.end(), received.payload.begin(), received.payload.end());
    }
    ASSERT_EQ(items.size(), 3U);
    EXPECT_TRUE(std::ranges::equal(items[0], package_->manifest_bytes()));
    EXPECT_EQ(items[1], *package_->stored_slice(0));
    EXPECT_EQ(items[2], *package_->stored_slice(1));
}

TEST_F(CodeExchangeTest, OnlyTheFormThatMayBeSentIs) {
    options_.forms = Forms::image;
    own_functions_.keep(package_);
    PeerState& peer = neighbours_.add(2);
    exchange_.on_need(peer, frame(Kind::need, 0, need_of(package_->function_ids()[0], 2, 0)));
    const auto received = neighbours_.received_by(peer);
    ASSERT_EQ(received.size(), 3U) << "the manifest, the image, and that this was not all";
    EXPECT_EQ(received[1].header.kind, Kind::code);
    EXPECT_EQ(received[2].header.kind, Kind::lack);
    const auto only_bitcode = some_package({"other"}, {{Forms::bitcode, 10}});
    const Status checked = exchange_.check_forms(peer, *only_bitcode);
    ASSERT_FALSE(checked);
    EXPECT_NE(checked.error().message().find("sends image only"), std::string::npos) << checked.error().message();
    PeerIdentity of_another_machine = neighbours_.identity_of(3);
    of_another_machine.triple = "aarch64-linux-gnu";
    EXPECT_NE(exchange_.check_forms(neighbours_.add(of_another_machine), *package_)
                  .error()
                  .message()
                  .find("no form for aarch64-linux-gnu"),
              std::string::npos);
}

TEST_F(CodeExchangeTest, WhatNobodyHasIsLacked) {
    PeerState& peer = neighbours_.add(2);
    const auto need = need_of(package_->function_ids()[0], 2, 0);
    exchange_.on_need(peer, frame(Kind::need, 0, need));
    const auto received = neighbours_.received_by(peer);
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(received.front().header.kind, Kind::lack);
    EXPECT_EQ(extra_of<wire::NeedCode>(received.front()).function, need.function);
}

TEST_F(CodeExchangeTest, AQuestionIsPassedOnToTheCallsOriginAndItsAnswerBack) {
    PeerState& asker = neighbours_.add(2);
    PeerState& origin = neighbours_.add(3);
    PeerState& other = neighbours_.add(1);
    const auto need = need_of(package_->function_ids()[0], 2, 3);
    exchange_.on_need(asker, frame(Kind::need, 0, need));
    const auto asked = neighbours_.received_by(origin);
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked.front().header.kind, Kind::need);
    EXPECT_TRUE(neighbours_.received_by(asker).empty());

    const wire::CodeChunk chunk{.package = package_->digest(), .item = 0, .total_bytes = 10};
    const ByteBuffer piece(10);
    exchange_.on_code(other, frame(Kind::code, 2, chunk, piece));  // whom nobody asked
    EXPECT_TRUE(neighbours_.received_by(asker).empty());
    exchange_.on_code(origin, frame(Kind::code, 2, chunk, piece));
    const auto answered = neighbours_.received_by(asker);
    ASSERT_EQ(answered.size(), 1U);
    EXPECT_EQ(answered.front().header.kind, Kind::code);
    EXPECT_EQ(answered.front().header.hops, 1) << "it is passed on";
}

TEST_F(CodeExchangeTest, WhenTheOriginLeavesItsQuestionsAreLacked) {
    PeerState& asker = neighbours_.add(2);
    PeerState& origin = neighbours_.add(3);
    exchange_.on_need(asker, frame(Kind::need, 0, need_of(package_->function_ids()[0], 2, 3)));
    exchange_.peer_left(origin);
    const auto received = neighbours_.received_by(asker);
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(received.front().header.kind, Kind::lack);
}

TEST_F(CodeExchangeTest, WhoAsksInTheNameOfAnotherIsCutOff) {
    PeerState& client = neighbours_.add(client_id(0, 7));
    exchange_.on_need(client, frame(Kind::need, 0, need_of(package_->function_ids()[0], 2, 0)));
    ASSERT_NE(client.link()->broken(), nullptr);
    EXPECT_NE(client.link()->broken()->message().find("in the name of"), std::string::npos);
}

TEST_F(CodeExchangeTest, AParkedCallAsksItsSenderAndEndsWhereNobodyHasItsCode) {
    PeerState& peer = neighbours_.add(2);
    peer.calls.parked.emplace();
    peer.calls.parked->function = package_->function_ids()[0];
    ASSERT_TRUE(peer.calls.parked->wait_for_code(Clock::now()));
    exchange_.ask(&peer, *peer.calls.parked, 2);
    const auto asked = neighbours_.received_by(peer);
    ASSERT_EQ(asked.size(), 1U);
    const auto need = extra_of<wire::NeedCode>(asked.front());
    EXPECT_EQ(need.function, peer.calls.parked->function);
    EXPECT_EQ(need.asker, 0U);
    PeerState& other = neighbours_.add(3);
    exchange_.on_lack(other, frame(Kind::lack, 0, need));  // whom it has not asked
    EXPECT_EQ(peer.calls.parked->why_not(), nullptr);
    exchange_.on_lack(peer, frame(Kind::lack, 0, need));
    ASSERT_NE(peer.calls.parked->why_not(), nullptr);
    EXPECT_EQ(peer.calls.parked->why_not()->code(), ErrorCode::unsupported);
}

// Who sent it has the other form no more, or does not send it.
TEST_F(CodeExchangeTest, ALackAfterAFormThatRunsEndsNoCall) {
    const auto with_image = value_or_throw(PackageStore::from_manifest(package_->manifest_bytes()));
    ASSERT_TRUE(with_image->add_slice(0, Bytes(*package_->stored_slice(0))));
    ASSERT_TRUE(cache_->add(with_image, false));
    PeerState& peer = neighbours_.add(2);
    peer.calls.parked.emplace();
    peer.calls.parked->function = package_->function_ids()[0];
    ASSERT_TRUE(peer.calls.parked->wait_for_code(Clock::now()));
    exchange_.ask(&peer, *peer.calls.parked, 2);
    const auto need = extra_of<wire::NeedCode>(neighbours_.received_by(peer).front());
    exchange_.on_lack(peer, frame(Kind::lack, 0, need));
    EXPECT_EQ(peer.calls.parked->why_not(), nullptr);
    options_.forms = Forms::bitcode;
    Parked& came = neighbours_.add(3).calls.parked.emplace(*peer.calls.parked);
    came.has_come(Clock::now());
    exchange_.on_lack(peer, frame(Kind::lack, 0, need));
    EXPECT_NE(peer.calls.parked->why_not(), nullptr);
    EXPECT_EQ(came.why_not(), nullptr) << "it has made way, and is asked for again";
}

// A call's image arrives, it runs, and the image is evicted before the lack of the other form is read. Then the next call has asked.
TEST_F(CodeExchangeTest, ALackOfAnEarlierQuestionEndsNoCall) {
    PeerState& peer = neighbours_.add(2);
    const auto known = value_or_throw(PackageStore::from_manifest(package_->manifest_bytes()));
    ASSERT_TRUE(cache_->add(known, false));
    peer.code.sent.insert(package_->digest());
    Parked& parked = peer.calls.parked.emplace();
    parked.function = package_->function_ids()[0];
    ASSERT_TRUE(parked.wait_for_code(Clock::now()));
    exchange_.ask(&peer, parked, 2);
    const auto need = extra_of<wire::NeedCode>(neighbours_.received_by(peer).front());
    exchange_.on_lack(peer, frame(Kind::lack, 0, need));
    EXPECT_EQ(parked.why_not(), nullptr);
    EXPECT_FALSE(parked.wait_for_code(Clock::now())) << "its own answer is on its way";
    EXPECT_TRUE(parked.wait_for_code(Clock::now() + 2 * kAskAgainAfter));
    exchange_.on_lack(peer, frame(Kind::lack, 0, need));
    ASSERT_NE(parked.why_not(), nullptr) << "it is lacked indeed";
    EXPECT_EQ(parked.why_not()->code(), ErrorCode::unsupported);
}

// The client's own node is asked for the code of a call that came back to it, and asks nobody on in its direction: that costs no time.
TEST_F(CodeExchangeTest, ALackOfACallThatCameBackHasItsOriginAskedAtOnce) {
    PeerState &sender = neighbours_.add(2), &origin = neighbours_.add(3);
    const auto known = value_or_throw(PackageStore::from_manifest(package_->manifest_bytes()));
    ASSERT_TRUE(cache_->add(known, false));
    sender.code.sent.insert(package_->digest());
    Parked& parked = sender.calls.parked.emplace();
    parked.function = package_->function_ids()[0];
    ASSERT_TRUE(parked.wait_for_code(Clock::now()));
    exchange_.ask(&sender, parked, 3);
    auto need = extra_of<wire::NeedCode>(neighbours_.received_by(sender).front());
    need.origin = 1;
    exchange_.on_lack(sender, frame(Kind::lack, 0, need));
    EXPECT_TRUE(neighbours_.received_by(origin).empty()) << "it answers the question of another one's call";
    need.origin = 3;
    exchange_.on_lack(sender, frame(Kind::lack, 0, need));
    ASSERT_EQ(neighbours_.received_by(origin).size(), 1U);
    EXPECT_EQ(parked.why_not(), nullptr);
}

TEST_F(CodeExchangeTest, APackageThatArrivesIsKnown) {
    PeerState& peer = neighbours_.add(2);
    const auto arrives = [&](std::uint32_t item, Bytes bytes) { this->arrives(peer, item, bytes); };
    arrives(0, package_->manifest_bytes());
    arrives(1, *package_->stored_slice(0));
    expect_trusted(peer);
    const auto known = cache_->package(package_->digest());
    ASSERT_NE(known, nullptr);
    EXPECT_NE(known->stored_slice(0), nullptr);
    EXPECT_TRUE(peer.code.sent.contains(package_->digest())) << "it has what it has sent";
    EXPECT_EQ(exchange_.package_with(package_->function_ids()[0]), known) << "for others that ask";
}

// It has made way, or will be looked at before. What does not run here says nothing of what is still on its way.
TEST_F(CodeExchangeTest, OnlyCodeThatRunsHereIsAskedForAgainOnceItHasCome) {
    options_.forms = Forms::bitcode;
    PeerState& peer = neighbours_.add(client_id(0, 7));
    Parked& parked = peer.calls.parked.emplace();
    parked.function = package_->function_ids()[0];
    ASSERT_TRUE(parked.wait_for_code(Clock::now()));
    const auto later = [] { return Clock::now() + 2 * kAskAgainAfter; };
    arrives(peer, 0, package_->manifest_bytes());
    arrives(peer, 1, *package_->stored_slice(0));
    EXPECT_FALSE(parked.wait_for_code(later())) << "its bitcode is on its way";
    const TimePoint begun = Clock::now();
    EXPECT_TRUE(parked.expired(begun + kCodeWaitMax + std::chrono::seconds(1)));
    parked.was_asked(peer.back(), peer.id());
    arrives(peer, 1, *package_->stored_slice(0));
    EXPECT_FALSE(parked.expired(begun + kCodeWaitMax)) << "for as long as any of it comes";
    PeerState& member = neighbours_.add(2);
    Parked& others_wait = member.calls.parked.emplace(parked);
    others_wait.was_asked(member.back(), 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const auto limit = [](const Parked& each, TimePoint from) {
        while (!each.expired(from)) from += std::chrono::milliseconds(1);
        return from;
    };
    const TimePoint before = limit(others_wait, begun);
    arrives(member, 1, *package_->stored_slice(0));
    EXPECT_EQ(limit(others_wait, begun), before) << "others' calls wait behind a member's";
    arrives(peer, 2, *package_->stored_slice(1));
    EXPECT_TRUE(parked.wait_for_code(later()));
    expect_trusted(peer);
}

TEST_F(CodeExchangeTest, APieceForWhichThereIsNoRoomIsAskedForAgainOfItsSenderAlone) {
    const auto waits = [this](PeerState& peer) -> Parked& {
        Parked& parked = peer.calls.parked.emplace();
        parked.function = package_->function_ids()[0];
        EXPECT_TRUE(parked.wait_for_code(Clock::now()));
        exchange_.ask(&peer, parked, peer.id());
        return parked;
    };
    PeerState &honest = neighbours_.add(2), &other = neighbours_.add(client_id(0, 7));
    Parked &asked_honest = waits(honest), &asked_other = waits(other);
    const auto later = [] { return Clock::now() + 2 * kAskAgainAfter; };
    // Not its beginning, of a package that nobody has heard of.
    const ByteBuffer piece(100);
    exchange_.on_code(other,
                      frame(Kind::code, 0, wire::CodeChunk{.item = 1, .offset = 100, .total_bytes = 1'000}, piece));
    expect_trusted(other);
    EXPECT_TRUE(asked_other.wait_for_code(later()));
    EXPECT_FALSE(asked_honest.wait_for_code(later())) << "it was not this peer's to send";
}

TEST_F(CodeExchangeTest, AWrongPieceCutsItsSenderOffAndNotWhoPassedItOn) {
    const ByteBuffer piece(100);
    const wire::CodeChunk outside{.package = package_->digest(), .item = 1, .offset = 950, .total_bytes = 1'000};
    PeerState& honest = neighbours_.add(2);
    wire::Frame passed_on = frame(Kind::code, 0, outside, piece);
    passed_on.header.hops = 1;
    exchange_.on_code(honest, passed_on);
    expect_trusted(honest);
    exchange_.on_code(honest, frame(Kind::code, 0, outside, piece));
    ASSERT_NE(honest.link()->broken(), nullptr);
    EXPECT_NE(honest.link()->broken()->message().find("outside its item"), std::string::npos);
}

// "Your handle, which I no longer know": the answer is believed where a call by that handle waits, and nowhere else.
TEST_F(CodeExchangeTest, AForgottenHandleIsNamedToWhoAsked) {
    PeerState& peer = neighbours_.add(2);
    peer.calls.parked.emplace();
    peer.calls.parked->handle = 5;
    wire::Frame named{{.extra_bytes = sizeof(FunctionId), .kind = Kind::bind, .flags = wire::kMeant, .handle = 6},
                      package_->function_ids()[0].raw(),
                      {}};
    CodeExchange::on_bind(peer, named);
    EXPECT_EQ(peer.calls.parked->function, FunctionId{});
    named.header.handle = 5;
    CodeExchange::on_bind(peer, named);
    EXPECT_EQ(peer.calls.parked->function, package_->function_ids()[0]);
}

}  // namespace
}  // namespace rove::test
