// Which processes may meet a node, and the bounds of connections before the proof.
#include <sys/resource.h>

#include "engine_view.hpp"
#include "raw_meeting.hpp"

namespace rove::test {
namespace {

TEST(Strangers, CannotEndANodeOrHoldItsPlaces) {
    Node node(options(unix_address()));
    const std::vector<std::string> bad{
        length(256 * 1024) + std::string(256 * 1024, '\x81'),          // arrays within arrays
        length(13) + "\x9b\xff\xff\xff\xff\xff\xff\xff\xf0" + "????",  // an array of 2^64 elements
        length(0xFFFF'FFFF) + "too long",
        length(0),
        length(5) + "hello",
    };
    for (int round = 0; round < 100; ++round)
        for (const std::string& each : bad) {
            const Raw stranger(node.address());
            ASSERT_TRUE(stranger.open());
            stranger.send(raw(each));
            EXPECT_TRUE(stranger.is_ended());
        }
    Node client(options());
    EXPECT_EQ(client.connect(node.address()).node(), 0U);
}

TEST(Strangers, WhoSayNothingKeepNobodyOut) {
    Node node(options(unix_address()));
    std::vector<Raw> idle;
    for (int i = 0; i < 400; ++i) {
        idle.emplace_back(node.address());
        if (i % 40 != 0) continue;
        Node client(options());
        EXPECT_EQ(client.connect(node.address()).node(), 0U) << "beside " << i;
    }
    EXPECT_TRUE(idle.front().is_ended()) << "the oldest makes room";
    EXPECT_TRUE(idle.back().is_ended()) << "a hello has to come soon";
}

TEST(Strangers, WhoSayNothingMakeRoomBeforeWhoWasChallenged) {
    Node node(options("127.0.0.1:0"));
    const Raw honest(node.address());
    honest.send(encode(Hello{}));
    ASSERT_TRUE(decode<Challenge>(honest.receive()));
    std::vector<Raw> idle;
    for (int i = 0; i < 70; ++i) idle.emplace_back(node.address());
    EXPECT_TRUE(idle.front().is_ended());
    honest.send(encode(ProofGiven{}));
    const auto answer = decode<Goodbye>(honest.receive());  // to the wrong proof: the node still listens to it
    ASSERT_TRUE(answer);
    EXPECT_NE(answer->text.find("cookie"), std::string::npos) << answer->text;
}

// A node that drops the connection to make room, at each step before its welcome.
TEST(Strangers, AMeetingThatWasDroppedIsOpenedAgain) {
    std::atomic<int> came = 0;
    FakeNode fake([&](const Raw& guest) {
        (void)guest.receive();
        if (++came == 1) return;
        guest.send(encode(Challenge{}));
        (void)guest.receive();
        (void)guest.receive();
        if (came == 3) guest.send(encode(Goodbye{.reason = Goodbye::Reason::refused, .text = "the third time"}));
    });
    Node client(options());
    const Error error = error_of([&] { (void)client.connect(fake.address()); });
    EXPECT_NE(error.message().find("the third time"), std::string::npos) << error.message();
    EXPECT_EQ(came, 3);
}

TEST(Strangers, GetNothingWithoutTheProof) {
    Node node(options("127.0.0.1:0"));
    const Raw stranger(node.address());
    stranger.send(encode(Hello{}));
    ASSERT_TRUE(decode<Challenge>(stranger.receive()));
    stranger.send(encode(ProofGiven{}));
    stranger.send(encode(Request{.triple = "x86_64-linux-gnu"}));
    const ByteBuffer answer = stranger.receive();
    const auto goodbye = decode<Goodbye>(answer);
    ASSERT_TRUE(goodbye) << "no welcome";
    EXPECT_EQ(goodbye->code, ErrorCode::refused);
    EXPECT_NE(goodbye->text.find("cookie"), std::string::npos) << goodbye->text;
}

TEST(Strangers, ThatPlayTheNodeGetNoOffer) {
    std::promise<bool> asked;
    FakeNode fake(
        [&](const Raw& guest) {
            (void)guest.receive();
            Challenge challenge;
            randombytes_buf(challenge.proof.bytes.data(), challenge.proof.bytes.size());
            guest.send(encode(challenge));
            bool request = false;
            for (ByteBuffer body = guest.receive(); !body.empty(); body = guest.receive())
                request = request || kind_of(body) != Kind::goodbye;
            asked.set_value(request);
        },
        true);
    Node client(options());
    EXPECT_EQ(error_of([&] { (void)client.connect(fake.address()); }).code(), ErrorCode::refused);
    EXPECT_FALSE(asked.get_future().get());
}

TEST(Strangers, NoTicketIsGuessed) {
    Node node(options(unix_address()));
    const Raw stranger(node.address());
    stranger.send(encode(LaneHello{}));
    const auto goodbye = stranger.goodbye();
    ASSERT_TRUE(goodbye);
    EXPECT_EQ(goodbye->code, ErrorCode::refused);
}

// The same the other way round: whoever answers, the client gets an error, in time.
TEST(HostileNodes, AreErrorsToThoseWhoMeetThem) {
    struct Way {
        const char* says;  // the error
        std::function<void(const Raw&)> serve;
    };
    // Each reads the hello first: who closes a socket with bytes unread may take back what it has said.
    const std::vector<Way> ways{
        {"its control message has 200000 bytes, where 1 to",
         [](const Raw& guest) {
             (void)guest.receive();
             guest.send(raw(length(200'000) + std::string(200'000, '\x81')));
         }},
        {"its control message has 4294967280 bytes, where 1 to",
         [](const Raw& guest) {
             (void)guest.receive();
             guest.send(raw(length(0xFFFF'FFF0)));
         }},
        {"its control message is no challenge",
         [](const Raw& guest) {
             (void)guest.receive();
             guest.send(encode(Connected{}));
         }},
        {"the control connection ended",
         [](const Raw& guest) {
             (void)guest.receive();
             guest.send(Bytes(encode(Challenge{})).first(20));
         }},
        {"it gave an id that is not a client's of its own",
         [](const Raw& guest) {
             (void)guest.receive();
             guest.send(encode(Challenge{}));
             (void)guest.receive();
             (void)guest.receive();
             guest.send(encode(Welcome{.id = 0, .you = 3, .triple = "x", .resident = {}, .offer = {}}));
         }},
        {"there is no lane to it: no transport reaches the peer: its offer is of another kind",
         [](const Raw& guest) {
             (void)guest.receive();
             guest.send(encode(Challenge{}));
             (void)guest.receive();
             (void)guest.receive();
             guest.send(encode(Welcome{.id = 0,
                                       .you = client_id(0, 1),
                                       .triple = "x",
                                       .resident = {},
                                       .offer = ByteBuffer(60, std::byte{0xa5})}));
         }},
    };
    Node client(options());
    for (const auto& [says, serve] : ways) {
        FakeNode fake(serve);
        const Error error = error_of([&] { (void)client.connect(fake.address()); });
        EXPECT_NE(error.message().find(says), std::string::npos) << error.message();
        EXPECT_NE(error.code(), ErrorCode::internal) << error.message();
    }
    // To join: sent on in a circle.
    std::string next;
    FakeNode circle([&](const Raw& guest) {
        (void)guest.receive();
        guest.send(encode(Challenge{}));
        (void)guest.receive();
        (void)guest.receive();
        guest.send(encode(Redirect{.address = next}));
    });
    next = circle.address();
    EXPECT_EQ(error_of([&] { Node joins(options(unix_address(), circle.address())); }).code(), ErrorCode::invalid);
}

// ---- proofs and ids

TEST(Meeting, ProofsDifferByEndpointSideAndNonces) {
    control::Cookie cookie{};
    Nonce a, b;
    b.bytes[0] = 1;
    const Proof one = control::prove(cookie, "node", a, b, "127.0.0.1:1");
    EXPECT_TRUE(control::same(one, control::prove(cookie, "node", a, b, "127.0.0.1:1")));
    EXPECT_FALSE(control::same(one, control::prove(cookie, "peer", a, b, "127.0.0.1:1")));
    EXPECT_FALSE(control::same(one, control::prove(cookie, "node", a, b, "127.0.0.1:2")));
    EXPECT_FALSE(control::same(one, control::prove(cookie, "node", b, b, "127.0.0.1:1")));
    EXPECT_FALSE(control::same(one, control::prove(cookie, "node", a, a, "127.0.0.1:1")));
    cookie[31] = std::byte{1};
    EXPECT_FALSE(control::same(one, control::prove(cookie, "node", a, b, "127.0.0.1:1")));
}

TEST(Meeting, ACookieThatCannotBeOpenedForLackOfDescriptorsIsNoRefusal) {
    const std::filesystem::path path = scratch() / "cookie-without-descriptors";
    value_or_throw(control::read_or_make_cookie(path));
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};  // those that are open stay
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    const auto read = control::read_or_make_cookie(path);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), ErrorCode::overloaded);
    EXPECT_NE(std::string(read.error().what()).find("ulimit -n"), std::string::npos) << read.error().what();
    EXPECT_EQ(value_or_throw(control::read_or_make_cookie(path)).size(), control::kCookieBytes);
}

TEST(Meeting, OnlyTheFolderOfTheDefaultCookieIsMade) {
    const std::filesystem::path config = scratch() / "config";
    const auto refused = control::read_or_make_cookie(config / "rove" / "cookie");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::refused);
    EXPECT_NE(refused.error().message().find("cookie: No such file or directory"), std::string::npos)
        << refused.error().message();
    EXPECT_FALSE(std::filesystem::exists(config)) << "its name was misspelt, most likely";
    ASSERT_EQ(setenv("XDG_CONFIG_HOME", config.c_str(), 1), 0);
    const auto made = control::read_or_make_cookie(config / "rove" / "cookie");
    ASSERT_EQ(unsetenv("XDG_CONFIG_HOME"), 0);
    EXPECT_TRUE(made) << made.error().message();
}

TEST(Meeting, ClientsHaveIdsOfTheirOwnAlsoAfterOthersLeft) {
    Node node(options(unix_address()));
    const auto id = [&](Node& client) { return detail::Inside::state(client.connect(node.address()))->my_id(); };
    auto first = std::make_unique<Node>(options());
    (void)id(*first);
    first.reset();
    Node second(options()), third(options());
    EXPECT_NE(id(second), id(third));
}

TEST(Meeting, ThreadsThatWantOneNodeGetOneLink) {
    Node node(options("127.0.0.1:0"));
    const std::string port = node.address().substr(node.address().rfind(':'));
    for (int round = 0; round < 5; ++round) {
        Node client(options());
        std::vector<std::thread> threads;
        std::vector<PeerState*> peers(8);
        for (std::size_t i = 0; i < peers.size(); ++i)
            threads.emplace_back([&, i] {
                peers[i] =
                    detail::Inside::state(client.connect(i % 2 == 0 ? node.address() : "localhost" + port)).get();
            });
        for (std::thread& thread : threads) thread.join();
        for (PeerState* const peer : peers) EXPECT_EQ(peer, peers.front());
        EXPECT_EQ(peers.front()->meeting(), 1U);
    }
}

// Without an offer the opener gets a ticket for a stream. It is good once.
TEST(Meeting, AStreamIsMatchedByItsTicket) {
    Node node(options(unix_address()));
    const Raw opener(node.address());
    opener.send(encode(Hello{}));
    ASSERT_TRUE(decode<Challenge>(opener.receive()));
    opener.send(encode(ProofGiven{}));
    opener.send(encode(Request{.triple = "x86_64-linux-gnu", .address = {}, .offer = {}}));
    const auto welcome = decode<Welcome>(opener.receive());
    ASSERT_TRUE(welcome);
    ASSERT_TRUE(welcome->has_ticket);
    EXPECT_TRUE(welcome->offer.empty());
    const Raw wrong(node.address());
    wrong.send(encode(LaneHello{.ticket = {}}));
    EXPECT_TRUE(wrong.goodbye());
    const Raw stream(node.address());
    stream.send(encode(LaneHello{.ticket = welcome->ticket}));
    const Raw late(node.address());
    late.send(encode(LaneHello{.ticket = welcome->ticket}));
    EXPECT_TRUE(late.goodbye()) << "the ticket is used";
    opener.send(encode(Connected{.by = ConnectedBy::ticket}));
    const ByteBuffer answer = opener.receive();
    if (const auto goodbye = decode<Goodbye>(answer))
        EXPECT_EQ(goodbye->code, ErrorCode::unsupported) << goodbye->text;  // of a fabric without streams
    else
        EXPECT_TRUE(decode<Settled>(answer));
}

// What a newer build can do more is of no meaning to this one.
TEST(Meeting, TwoNodesUseTheFeaturesThatBothHave) {
    const auto core = NodeCore::create(options(unix_address()));
    ASSERT_TRUE(core);
    const Raw opener((*core)->address());
    opener.send(encode(Hello{}));
    ASSERT_TRUE(decode<Challenge>(opener.receive()));
    opener.send(encode(ProofGiven{}));
    opener.send(encode(Request{.features = ~0U, .triple = "x86_64-linux-gnu", .address = {}, .offer = {}}));
    const auto welcome = decode<Welcome>(opener.receive());
    ASSERT_TRUE(welcome);
    EXPECT_EQ(welcome->features, wire::kFeatures);
    const Raw stream((*core)->address());
    stream.send(encode(LaneHello{.ticket = welcome->ticket}));
    opener.send(encode(Connected{.by = ConnectedBy::ticket}));
    ASSERT_TRUE(decode<Settled>(opener.receive()));
    std::shared_ptr<PeerState> peer;
    ASSERT_TRUE(soon([&] {
        peer = EngineView::on_the_way_to((*core)->first_engine(), welcome->you);
        return peer != nullptr;
    }));
    EXPECT_EQ(peer->identity().features, wire::kFeatures);
    (*core)->shut_down();
}

TEST(Meeting, EndsWithTheNodeThatWaitsForIt) {
    std::promise<void> met;
    FakeNode silent([&](const Raw& guest) {
        met.set_value();
        (void)guest.is_ended();
    });
    const auto core = NodeCore::create(options());
    ASSERT_TRUE(core);
    std::promise<ErrorCode> code;
    std::thread waits([&] { code.set_value((*core)->connect(silent.address()).error().code()); });
    met.get_future().wait();
    (*core)->shut_down();
    waits.join();
    EXPECT_EQ(code.get_future().get(), ErrorCode::cancelled);
    EXPECT_EQ((*core)->connect(silent.address()).error().code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace rove::test
