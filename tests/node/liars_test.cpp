// Members that lie: whose word about ids is believed, and what healing may cost.
#include "control/healing.hpp"
#include "liar.hpp"

namespace rove::test {
namespace {

TEST(Membership, OnlyWhoGivesIdsIsBelieved) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    Node first(options(unix_address()));
    Liar liar;
    ASSERT_NO_FATAL_FAILURE(liar.joins(first.address()));
    EXPECT_TRUE(soon([&] { return first.node_count() == 2; }));
    const Impostor impostor;
    Request request{.triple = {}, .address = unix_address(), .offer = {}};
    const auto vouched = [&](NodeId id) {
        request.certificate = liar.certificate();
        request.certificate.id = id;
        request.certificate.issuer = liar.certificate().id;
        request.certificate.signature =
            liar.keys().sign(statement(request.certificate, request.address, impostor.keys.key()));
        const auto answer = impostor.meets(first.address(), Role::member, request);
        return answer ? answer->code : ErrorCode::ok;
    };
    for (const NodeId id : {2U, 65U, 30000U}) EXPECT_EQ(vouched(id), ErrorCode::refused) << id;
    liar.tells({{2, 1, request.address, impostor.keys.key()}});
    ASSERT_TRUE(liar.leaves());
    for (const NodeId id : {2U, 30000U}) EXPECT_EQ(vouched(id), ErrorCode::refused) << id << ", by who has left";
    EXPECT_EQ(first.node_count(), 2U);
    Node next(options(unix_address(), first.address()));
    EXPECT_EQ(next.id(), 2U);
}

// Certificates by a member that gives ids: for another cluster, and by the hand of one that it has only told of.
TEST(Membership, CertificatesAreForThisClusterAndByTheProven) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    auto first = std::make_unique<Node>(options(unix_address()));
    Liar liar;
    ASSERT_NO_FATAL_FAILURE(liar.joins(first->address()));
    NodeOptions impatient = options(unix_address(), first->address());
    impatient.connect_timeout = 3s;  // for how long the silent one holds it up
    Node second(impatient);
    ASSERT_NO_FATAL_FAILURE(liar.meets(second.address(), Role::member));
    first.reset();  // from here on the liar has the lowest id
    const Impostor impostor;
    Request request{.triple = {}, .address = unix_address(), .offer = {}};
    const auto vouched = [&](NodeId issuer, const KeyPair& by, const auto& cluster) {
        request.certificate = {.id = 3, .generation = 1, .issuer = issuer, .cluster = cluster, .signature = {}};
        request.certificate.signature = by.sign(statement(request.certificate, request.address, impostor.keys.key()));
        const ByteBuffer answer = impostor.answer(second.address(), Role::member, request);
        if (decode<Welcome>(answer)) return std::string("welcome");
        const auto goodbye = decode<Goodbye>(answer);
        return goodbye ? goodbye->text : "it said nothing";
    };
    const auto refused = [](const std::string& said) {
        return said.find("no member that gives ids says so") != std::string::npos;
    };
    std::string said;
    EXPECT_TRUE(soon([&] { return (said = vouched(1, liar.keys(), liar.cluster())) == "welcome"; })) << said;
    auto other = liar.cluster();
    reinterpret_cast<std::byte&>(other) ^= std::byte{1};
    said = vouched(1, liar.keys(), other);
    EXPECT_TRUE(refused(said)) << "for another cluster: " << said;
    // The second node had its id from the first. Who is told to be the first now, has proven nothing.
    std::atomic<bool> sought = false;
    FakeNode silent([&](const Raw& guest) {
        sought = true;
        (void)guest.is_ended();
    });
    const KeyPair told;
    ASSERT_TRUE(soon([&] {
        liar.tells({{0, 0xF000'0000U, silent.address(), told.key()}});
        return sought.load();
    }));
    said = vouched(0, told, liar.cluster());
    EXPECT_TRUE(refused(said)) << "by one who was only told of: " << said;
    EXPECT_EQ(vouched(1, liar.keys(), liar.cluster()), "welcome");
}

// The one that gives ids lies, too: of many members at one address, where nobody answers.
TEST(Membership, OneMeetingAtATimeHealsAtOneAddress) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    auto first = std::make_unique<Node>(options(unix_address()));
    Liar liar;
    ASSERT_NO_FATAL_FAILURE(liar.joins(first->address()));
    NodeOptions impatient = options(unix_address(), first->address());
    impatient.connect_timeout = 3s;  // for how long the silent one holds it up
    Node second(impatient);
    ASSERT_EQ(second.id(), 2U);
    ASSERT_NO_FATAL_FAILURE(liar.meets(second.address(), Role::member));
    first.reset();
    std::promise<void> came;
    std::atomic<int> guests = 0;
    {
        FakeNode silent([&](const Raw& guest) {
            if (++guests == 1) came.set_value();
            (void)guest.receive();
            (void)guest.is_ended();
        });
        std::vector<wire::control::Member> many;
        for (NodeId id = 3; id < 60; ++id) many.push_back({id, 1, silent.address(), KeyPair().key()});
        // All are in this process: those that the node has opened, and one that the silent one has accepted.
        const auto descriptors = [] {
            return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                 std::filesystem::directory_iterator());
        };
        const auto before = descriptors();
        auto arrived = came.get_future();
        const auto until = std::chrono::steady_clock::now() + kPatience;
        while (arrived.wait_for(100ms) != std::future_status::ready && std::chrono::steady_clock::now() < until)
            liar.tells(many);  // until the first one's end is known there
        ASSERT_EQ(arrived.wait_for(0s), std::future_status::ready);
        const auto end = std::chrono::steady_clock::now() + 500ms;
        while (std::chrono::steady_clock::now() < end) {
            EXPECT_LE(descriptors(), before + 10);
            std::this_thread::sleep_for(20ms);
        }
    }
    EXPECT_EQ(second.node_count(), 3U) << "nothing was proven";
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
    auto first = std::make_unique<Node>(options(unix_address()));
    Liar liar;
    ASSERT_NO_FATAL_FAILURE(liar.joins(first->address()));
    NodeOptions impatient = options(unix_address(), first->address());
    impatient.connect_timeout = 2s;  // for how long each silent one holds it up
    Node second(impatient);
    ASSERT_NO_FATAL_FAILURE(liar.meets(second.address(), Role::member));
    first.reset();
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
        many.push_back({id, 1, silent.back()->address(), KeyPair().key()});
    }
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (all < many.size() && std::chrono::steady_clock::now() < until) {
        liar.tells(many);  // until the first one's end is known there
        std::this_thread::sleep_for(100ms);
    }
    EXPECT_GE(all, many.size()) << "each gets its turn";
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
    auto first = std::make_unique<Node>(options(unix_address()));
    Liar liar;
    ASSERT_NO_FATAL_FAILURE(liar.joins(first->address()));
    Node second(options(unix_address(), first->address()));
    ASSERT_NO_FATAL_FAILURE(liar.meets(second.address(), Role::member));
    first.reset();
    std::atomic<unsigned> tries = 0;
    FakeNode refuses([&](const Raw& guest) {
        (void)guest.receive();
        ++tries;
        guest.send(encode(Goodbye{.reason = Goodbye::Reason::refused, .text = "not now"}));
    });
    const std::vector<wire::control::Member> told{{3, 1, refuses.address(), KeyPair().key()}};
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (tries == 0 && std::chrono::steady_clock::now() < until) {
        liar.tells(told);  // until the first one's end is known there
        std::this_thread::sleep_for(50ms);
    }
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (tries < control::kToldTriesMax && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(50ms);
    std::this_thread::sleep_for(control::kHealPauseMax * 5 / 4 + 500ms);  // when the next one would come
    EXPECT_EQ(tries, control::kToldTriesMax);
}

// A member whom a node knows already says any generation, in a certificate that nobody has signed: whoever has its id next is let in.
TEST(Membership, AGenerationThatNobodyGaveKeepsNobodyOut) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    Node first(options(unix_address()));
    Node second(options(unix_address(), first.address()));
    const std::string at = unix_address();
    Liar liar(at);
    liar.joins(first.address());
    auto certificate = liar.certificate();
    certificate.generation = ~0U;
    certificate.signature = {};
    liar.says(certificate);
    EXPECT_TRUE(soon([&] { return liar.asks(second.address(), Role::member).empty(); }));  // once that one knows of it
    liar.leaves_all();
    const auto core_of_second = detail::Edge::core(second.connect(first.address()));
    const auto peer_of_second = [&] { return core_of_second->engine().peers().on_the_way_to(2); };
    EXPECT_TRUE(soon([&] { return peer_of_second() == nullptr; }));
    Node next(options(at, first.address()));
    EXPECT_EQ(next.id(), 2U);
    EXPECT_TRUE(soon([&] { return peer_of_second() != nullptr && peer_of_second()->linked(); }));
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
