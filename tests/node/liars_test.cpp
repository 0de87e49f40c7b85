// Members that lie: whose word about ids is believed, and what healing may cost.
#include "control/healing.hpp"
#include "liar.hpp"

namespace rove::test {
namespace {

// Of a process that says it is a member: which node it is, and that a member has certified it.
wire::control::Member claimed_by(const Impostor& impostor, NodeId id, const Request& request) {
    return {
        .id = id, .generation = 0xF000'0000U, .address = request.address, .key = impostor.keys.key(), .signature = {}};
}

TEST(Membership, OnlyTheClusterIsBelieved) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    Node first(options(unix_address())), other(options(unix_address()));
    Liar liar, stranger;
    ASSERT_NO_FATAL_FAILURE(liar.joins(first.address()));
    ASSERT_NO_FATAL_FAILURE(stranger.joins(other.address()));
    EXPECT_TRUE(soon([&] { return first.node_count() == 2; }));
    const Impostor impostor;
    Request request{.triple = {}, .address = unix_address(), .offer = {}};
    const auto said_of = [&](const wire::control::Member& member) {
        request.certificate = {member.id, member.generation, member.signature};
        request.whom = impostor.key_of(first.address());
        const ByteBuffer answer = impostor.answer(first.address(), Role::member, request);
        if (decode<Welcome>(answer)) return std::string("welcome");
        const auto goodbye = decode<Goodbye>(answer);
        return goodbye ? goodbye->text : "it said nothing";
    };
    const auto refused = [](const std::string& said) {
        return said.find("no certificate of this cluster") != std::string::npos;
    };
    for (const NodeId id : {2U, 65U}) {
        wire::control::Member vouched = claimed_by(impostor, id, request);
        vouched.signature = liar.keys().sign(statement(vouched));
        std::string said = said_of(vouched);
        EXPECT_TRUE(refused(said)) << "by a member's own hand: " << said;
        said = said_of(stranger.certify(vouched));
        EXPECT_TRUE(refused(said)) << "in another cluster: " << said;
    }
    const std::string far = said_of(liar.certify(claimed_by(impostor, 30'000, request)));
    EXPECT_NE(far.find("try again when more are"), std::string::npos) << far;
    EXPECT_EQ(said_of(liar.certify(claimed_by(impostor, 2, request))), "welcome");
    EXPECT_EQ(first.node_count(), 2U) << "its meeting was not finished";
    liar.tells({claimed_by(impostor, 3, request)});
    EXPECT_TRUE(liar.is_cut_off()) << "who names others has their certificates";
    // As soon as the node has seen the end of that meeting, which keeps the id until then.
    EXPECT_TRUE(soon([&] { return Node(options(unix_address(), first.address())).id() == 2; }));
}

// The opener knows another process by that id. It is told so before anything else is checked, and its own claim is looked into.
TEST(Membership, WhoWantsToMeetAnotherProcessIsToldSo) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    Node first(options(unix_address()));
    Liar liar;
    ASSERT_NO_FATAL_FAILURE(liar.joins(first.address()));
    const Impostor impostor;
    std::promise<void> sought;
    std::atomic<bool> came = false;
    FakeNode forgotten([&](const Raw& guest) {
        if (!came.exchange(true)) sought.set_value();
        (void)guest.is_ended();
    });
    Request request{.triple = {}, .address = forgotten.address(), .offer = {}};
    request.whom = KeyPair().key();
    const auto asks_as = [&](const wire::control::Member& member) {
        request.certificate = {member.id, member.generation, member.signature};
        const auto goodbye = impostor.meets(first.address(), Role::member, request);
        return goodbye ? goodbye->reason : Goodbye::Reason::left;
    };
    const wire::control::Member claimed = claimed_by(impostor, 5, request);
    EXPECT_EQ(asks_as(claimed), Goodbye::Reason::another);
    EXPECT_FALSE(came) << "nobody has certified it";
    EXPECT_EQ(asks_as(liar.certify(claimed)), Goodbye::Reason::another);
    EXPECT_EQ(sought.get_future().wait_for(kPatience), std::future_status::ready) << "this node meets it";
}

// A member names many others at one address, where nobody answers.
TEST(Membership, OneMeetingAtATimeHealsAtOneAddress) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    NodeOptions impatient = options(unix_address());
    impatient.connect_timeout = 3s;  // for how long the silent one holds it up
    Node first(impatient);
    Liar liar;
    ASSERT_NO_FATAL_FAILURE(liar.joins(first.address()));
    std::promise<void> came;
    std::atomic<int> guests = 0;
    {
        FakeNode silent([&](const Raw& guest) {
            if (++guests == 1) came.set_value();
            (void)guest.receive();
            (void)guest.is_ended();
        });
        std::vector<wire::control::Member> many;
        for (NodeId id = 3; id < 60; ++id) many.push_back(liar.certify({id, 1, silent.address(), KeyPair().key(), {}}));
        // All are in this process: those that the node has opened, and one that the silent one has accepted.
        const auto descriptors = [] {
            return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                 std::filesystem::directory_iterator());
        };
        const auto before = descriptors();
        auto arrived = came.get_future();
        liar.tells(many);
        ASSERT_EQ(arrived.wait_for(kPatience), std::future_status::ready);
        const auto end = std::chrono::steady_clock::now() + 500ms;
        while (std::chrono::steady_clock::now() < end) {
            EXPECT_LE(descriptors(), before + 10);
            std::this_thread::sleep_for(20ms);
        }
    }
    EXPECT_EQ(first.node_count(), 2U) << "nothing was proven";
}

// What a member shows to one that it meets, to prove its key, is passed on to a third, in the same meeting.
TEST(Membership, AProofThatWasShownToOneMemberIsOfNoUseAtAnother) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    Node first(options(unix_address()));
    std::promise<ByteBuffer> answered;
    std::atomic<bool> passed_on = false;
    FakeNode between([&](const Raw& guest) {
        const auto hello = decode<Hello>(guest.receive());
        if (!hello || hello->role != Role::member || passed_on.exchange(true)) return;
        const Raw socket(first.address());
        socket.send(encode(*hello));
        const ByteBuffer challenge = socket.receive();
        if (const auto said = decode<Challenge>(challenge)) guest.send(encode(*said));
        (void)guest.receive();  // the proof of the cookie
        auto request = decode<Request>(guest.receive());
        if (!request) return answered.set_value({});
        request->offer = {};
        request->replace = true;  // what is there already
        socket.send(encode(ProofGiven{}));
        socket.send(encode(*request));
        answered.set_value(socket.receive());
    });
    Liar liar(between.address());
    ASSERT_NO_FATAL_FAILURE(liar.joins(first.address()));
    NodeOptions impatient = options(unix_address(), first.address());
    impatient.connect_timeout = 3s;  // for how long the one between holds it up
    Node second(impatient);
    ASSERT_EQ(second.id(), 2U);
    auto answer = answered.get_future();
    ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready) << "nobody came";
    const auto goodbye = decode<Goodbye>(answer.get());
    ASSERT_TRUE(goodbye) << "it was let in in the other's name";
    EXPECT_EQ(goodbye->code, ErrorCode::refused) << goodbye->text;
    EXPECT_NE(goodbye->text.find("showed it to another"), std::string::npos) << goodbye->text;
}

// Each at an address of its own: no more than kHealingMax meetings are under way at once.
TEST(Membership, ABoundedNumberOfMeetingsHealsAtOnce) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    NodeOptions impatient = options(unix_address());
    impatient.connect_timeout = 2s;  // for how long each silent one holds it up
    Node first(impatient);
    Liar liar;
    ASSERT_NO_FATAL_FAILURE(liar.joins(first.address()));
    std::atomic<std::size_t> there = 0, most = 0, all = 0;
    std::vector<std::unique_ptr<FakeNode>> silent;
    std::vector<wire::control::Member> many;
    for (NodeId id = 3; id < 60; ++id) {
        silent.push_back(std::make_unique<FakeNode>([&](const Raw& guest) {
            ++all;
            const std::size_t now = ++there;
            for (std::size_t seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
            }
            (void)guest.is_ended();
            --there;
        }));
        many.push_back(liar.certify({id, 1, silent.back()->address(), KeyPair().key(), {}}));
    }
    liar.tells(many);
    EXPECT_TRUE(soon([&] { return all >= many.size(); })) << "each gets its turn";
    // Some have gone that their threads, which may be late, still count; without the bound all are there at once.
    EXPECT_LT(most, many.size());
    EXPECT_GE(most, control::kHealingMax / 2);
}

// More members are stopped than are met at once: who joins waits for one connect_timeout, not for one after the other.
TEST(Membership, WhoJoinsWaitsForManyThatAreStoppedAsForOne) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    constexpr auto kTimeout = 3s;
    const Node first(options(unix_address()));
    std::vector<std::unique_ptr<FakeNode>> stopped;
    std::vector<std::unique_ptr<Liar>> members;
    for (std::size_t i = 0; i < 2 * control::kHealingMax + 1; ++i) {
        stopped.push_back(std::make_unique<FakeNode>([](const Raw& guest) { (void)guest.is_ended(); }));
        members.push_back(std::make_unique<Liar>(stopped.back()->address()));
        ASSERT_NO_FATAL_FAILURE(members.back()->joins(first.address()));
    }
    NodeOptions joins = options(unix_address(), first.address());
    joins.connect_timeout = kTimeout;
    const auto began = std::chrono::steady_clock::now();
    const Node last(joins);
    EXPECT_EQ(last.id(), members.size() + 1);
    EXPECT_LT(std::chrono::steady_clock::now() - began, 2 * kTimeout) << "one after the other takes three times that";
}

// A member that this node was only told of is given up after some tries. Takes 20 s: the pauses grow.
TEST(Membership, WhoIsOnlyToldOfIsGivenUp) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    Node first(options(unix_address()));
    Liar liar;
    ASSERT_NO_FATAL_FAILURE(liar.joins(first.address()));
    std::atomic<unsigned> tries = 0;
    FakeNode refuses([&](const Raw& guest) {
        (void)guest.receive();
        ++tries;
        guest.send(encode(Goodbye{.reason = Goodbye::Reason::refused, .text = "not now"}));
    });
    liar.tells({liar.certify({3, 1, refuses.address(), KeyPair().key(), {}})});
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (tries < control::kToldTriesMax && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(50ms);
    std::this_thread::sleep_for(control::kHealPauseMax * 5 / 4 + 500ms);  // when the next one would come
    EXPECT_EQ(tries, control::kToldTriesMax);
}

// A member whom a node knows already says any generation: its certificate is checked nevertheless.
TEST(Membership, AGenerationThatNobodyGaveIsRefused) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    Node first(options(unix_address()));
    Liar liar;
    ASSERT_NO_FATAL_FAILURE(liar.joins(first.address()));
    auto certificate = liar.certificate();
    certificate.generation = ~0U;
    liar.says(certificate);
    const std::string said = liar.asks(first.address(), Role::member, true);
    EXPECT_NE(said.find("no certificate of this cluster"), std::string::npos) << said;
}

// Whoever calls on an address gets the process that answers there, whichever member says that it is at that place.
TEST(Membership, AnAddressIsWhoseWhoAnswersThere) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    Node first(options(unix_address()));
    Node other(options(unix_address()));  // of another cluster
    Liar liar(other.address());
    liar.joins(first.address());
    EXPECT_TRUE(soon([&] { return first.node_count() == 2; }));
    const Peer peer = first.connect(other.address());
    EXPECT_EQ(peer.node(), 0U);
    EXPECT_NO_THROW((void)peer.ping());
}

// Nor may a member move to the place of another one.
TEST(Membership, AKnownMemberIsAtTheAddressThatItHas) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    Node first(options(unix_address()));
    Liar liar;
    liar.joins(first.address());
    Node second(options(unix_address(), first.address()));
    liar.says_that_it_is_at(second.address());
    EXPECT_NE(liar.asks(first.address(), Role::member, true), "");
    EXPECT_EQ(first.connect(second.address()).node(), second.id());
}

}  // namespace
}  // namespace rove::test
