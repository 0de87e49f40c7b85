// Members: their ids, what they believe of one another, and what happens when a link is cut. MembersMeet runs on every fabric. MemberList has
// no links; the hand-made processes of Membership stop before they have a lane; and where nodes are stopped, killed, or read from outside,
// they are processes of their own.
#include "raw_meeting.hpp"

namespace rove::test {
namespace {

wire::control::Member member(NodeId id, std::uint32_t generation = 1) {
    wire::control::Member member{.id = id, .generation = generation, .address = fmt::format("127.0.0.1:{}", id + 1)};
    member.key.bytes.fill(static_cast<std::uint8_t>(id + 16 * generation));
    return member;
}

TEST(MemberList, GivesIdsDenselyAndTheOldOneToWhoComesBack) {
    control::Members members;
    members.set(member(0), MemberEntry::State::living);
    const NodeId one = members.give("a", {}, 0);
    EXPECT_EQ(one, 1U);
    members.take_back(one);
    EXPECT_EQ(members.give("b", {}, 0), 1U) << "the join was not finished";
    members.set({1, 2, "b", {}}, MemberEntry::State::living);
    EXPECT_EQ(members.give("c", {}, 0), 2U);
    members.find(1)->state = MemberEntry::State::gone;
    const std::uint32_t before = members.find(1)->generation;
    EXPECT_EQ(members.give("b", {}, 0), 1U);
    EXPECT_GT(members.find(1)->generation, before);
    members.take_back(1);
    EXPECT_EQ(members.find(1)->state, MemberEntry::State::gone);
    EXPECT_EQ(members.give("d", {}, 0), 3U) << "the id stays that of the address";
}

// A member that gives ids since a moment ago knows only who is there, not which ids had been given to whom.
TEST(MemberList, WhoGivesIdsAnewGivesNoOlderGeneration) {
    control::Members old, fresh;
    for (control::Members* each : {&old, &fresh}) each->set(member(0), MemberEntry::State::living);
    ASSERT_EQ(old.give("a", {}, 0), 1U);
    const std::uint32_t before = old.find(1)->generation;
    std::this_thread::sleep_for(std::chrono::milliseconds(260));  // the clock's step
    ASSERT_EQ(fresh.give("b", {}, 0), 1U);
    EXPECT_GT(fresh.find(1)->generation, before);
}

TEST(MemberList, TakesNobodysWordAgainstWhoIsThere) {
    control::Members members;
    members.set(member(0), MemberEntry::State::living);
    members.set(member(1), MemberEntry::State::lost);
    EXPECT_FALSE(members.is_news(member(1, 9)));
    ASSERT_TRUE(members.is_news(member(2)));
    members.learn(member(2));
    EXPECT_FALSE(members.is_news(member(2)));
    EXPECT_EQ(members.count(), 2U) << "nothing is proven";
    EXPECT_FALSE(members.is_news(member(2 + control::kIdsAheadMax)));
    members.find(1)->state = MemberEntry::State::gone;
    EXPECT_FALSE(members.is_news(member(1))) << "old news";
    EXPECT_TRUE(members.is_news(member(1, 2)));
}

TEST(MemberList, NeverForgetsAnEntry) {
    control::Members members;
    members.set(member(0), MemberEntry::State::living);
    members.learn(member(1));
    MemberEntry* const entry = members.find(1);
    ASSERT_NE(entry, nullptr);
    entry->state = MemberEntry::State::gone;
    EXPECT_EQ(members.give(member(1).address, {}, 0), 1U);
    members.take_back(1);
    EXPECT_EQ(members.find(1), entry) << "somebody may be meeting it";
    for (NodeId id = 2; id < 500; ++id) members.set(member(id), MemberEntry::State::living);
    EXPECT_EQ(members.find(1), entry);
    EXPECT_EQ(members.give("anywhere", {}, 0), 500U) << "that one had it";
    EXPECT_EQ(members.find(500)->trust, MemberEntry::Trust::none);
}

TEST(MemberList, HasIdsGivenByTheProvenOnly) {
    control::Members members;
    members.learn(member(0));
    EXPECT_EQ(members.lowest(), kNoNode);
    members.set(member(2), MemberEntry::State::living);
    members.set(member(1), MemberEntry::State::lost, MemberEntry::Trust::told);
    EXPECT_EQ(members.lowest(), 2U);
    EXPECT_EQ(members.list(2), (std::vector{member(0), member(1)})) << "all that have certificates are named to others";
    members.find(0)->state = MemberEntry::State::gone;
    EXPECT_EQ(members.list(2), std::vector{member(1)});
    members.learn(member(0, 99));
    EXPECT_EQ(members.lowest(), 2U);
}

TEST(Membership, CertificatesAreWhatTheClusterSigned) {
    Node first(options(unix_address()));
    Node second(options(unix_address(), first.address()));
    const Impostor impostor;
    Request request{.triple = {}, .address = unix_address(), .offer = {}};
    request.certificate = {.id = 2, .generation = 1, .signature = {}};
    request.whom = impostor.key_of(first.address());
    Request signed_by_itself = request;
    wire::control::Member claimed = member_of(request);
    claimed.key = impostor.keys.key();
    signed_by_itself.certificate.signature = impostor.keys.sign(statement(claimed));
    for (const Request& wrong : {request, signed_by_itself}) {
        const auto answer = impostor.meets(first.address(), Role::member, wrong);
        ASSERT_TRUE(answer);
        EXPECT_NE(answer->text.find("no certificate of this cluster"), std::string::npos) << answer->text;
    }
    EXPECT_EQ(first.node_count(), 2U);
    // Another's key, which is known, without being able to sign with it.
    const KeyPair others;
    const Raw socket(first.address());
    Hello hello{.role = Role::join};
    randombytes_buf(hello.nonce.bytes.data(), hello.nonce.bytes.size());
    socket.send(encode(hello));
    const auto challenge = decode<Challenge>(socket.receive());
    ASSERT_TRUE(challenge);
    Request stolen{.triple = "x86_64-linux-gnu", .address = unix_address(), .offer = {}};
    stolen.key = others.key();
    stolen.signature = impostor.keys.sign(statement("peer", challenge->nonce, hello.nonce, socket.bound_there()));
    socket.send(encode(ProofGiven{}));
    socket.send(encode(stolen));
    const auto answer = socket.goodbye();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->code, ErrorCode::refused) << answer->text;
    EXPECT_NE(answer->text.find("key"), std::string::npos) << answer->text;
}

TEST(Membership, NobodySpeaksForAnother) {
    Node first(options(unix_address()));
    Node second(options(unix_address(), first.address()));
    ASSERT_EQ(second.id(), 1U);
    const Impostor impostor;
    const auto key = impostor.key_of(first.address());
    for (const NodeId claimed : {0U, 1U, 2U, 32766U}) {
        SCOPED_TRACE(claimed);
        Request request{.triple = {}, .address = unix_address(), .offer = {}};
        request.certificate = {.id = claimed, .generation = 7, .signature = {}};
        request.whom = key;
        wire::control::Member member = member_of(request);
        member.key = impostor.keys.key();
        request.certificate.signature = impostor.keys.sign(statement(member));
        const auto answer = impostor.meets(first.address(), Role::member, request);
        ASSERT_TRUE(answer);
        EXPECT_EQ(answer->code, ErrorCode::refused) << answer->text;
    }
    for (const std::string& taken : {first.address(), second.address()}) {
        const auto answer = impostor.meets(first.address(), Role::join, {.triple = {}, .address = taken, .offer = {}});
        ASSERT_TRUE(answer) << taken;
        EXPECT_NE(answer->code, ErrorCode::ok);
    }
    for (const std::string& wrong : {std::string(), std::string("8.8.8.8:1"), std::string("some.host:1")})
        EXPECT_TRUE(impostor.meets(first.address(), Role::join, {.triple = {}, .address = wrong, .offer = {}}))
            << wrong;
    EXPECT_EQ(first.node_count(), 2U);
    Node third(options(unix_address(), second.address()));
    EXPECT_EQ(third.id(), 2U);
    EXPECT_EQ(third.node_count(), 3U);
}

std::shared_ptr<PeerState> state_of(Node& node, const Node& of) {
    return detail::Inside::state(node.connect(of.address()));
}

class MembersMeet : public testing::TestWithParam<TestFabric> {
protected:
    // A node over the fabric that the test runs on; of its own address unless one is given.
    static Node begins(const std::string& join = {}, const std::string& listen = unix_address()) {
        return started(options(listen, join));
    }
    static Node started(NodeOptions options) {
        options.fabric = GetParam();
        return GetParam().start(std::move(options));
    }
};
ROVE_ON_FABRICS(MembersMeet);

TEST_P(MembersMeet, AMemberThatCameBackHasItsId) {
    Node first(begins());
    const std::string address = unix_address();
    for (int round = 0; round < 5; ++round) {
        Node second(begins(first.address(), address));
        EXPECT_EQ(second.id(), 1U);
        EXPECT_TRUE(soon([&] { return first.node_count() == 2; }));
    }
}

TEST(Membership, AMemberThatLeavesIsLoggedOnce) {
    const NodeProcess first({"--log", "info"});
    NodeProcess second({"--join", first.address()});
    const std::string gone = "node 1 at " + second.address() + " is gone";
    second.signal(SIGTERM);
    EXPECT_EQ(second.wait(), 0);
    EXPECT_TRUE(soon([&] { return first.log().find(gone) != std::string::npos; })) << first.log();
    // A second line would be there by the time that the next one has come and gone.
    NodeProcess third({"--join", first.address()});
    const std::string next = "at " + third.address() + " is gone";
    third.signal(SIGTERM);
    EXPECT_EQ(third.wait(), 0);
    EXPECT_TRUE(soon([&] { return first.log().find(next) != std::string::npos; })) << first.log();
    const std::string log = first.log();
    EXPECT_EQ(log.find(gone, log.find(gone) + 1), std::string::npos) << log;
}

TEST_P(MembersMeet, ManyThatJoinAtOnceAllMeet) {
    Node first(begins());
    std::vector<std::unique_ptr<Node>> others(4);
    std::vector<std::thread> threads;
    for (auto& other : others) threads.emplace_back([&] { other = std::make_unique<Node>(begins(first.address())); });
    for (std::thread& thread : threads) thread.join();
    std::set<NodeId> ids{first.id()};
    for (const auto& other : others) ids.insert(other->id());
    EXPECT_EQ(ids, (std::set<NodeId>{0, 1, 2, 3, 4}));
    for (const auto& one : others)
        for (const auto& other : others)
            if (one != other) EXPECT_TRUE(soon([&] { return state_of(*one, *other)->is_member(); }));
}

// How often a test does what the environment may ask for more of.
unsigned times(const char* variable, unsigned otherwise) {
    const char* text = std::getenv(variable);
    return text != nullptr ? static_cast<unsigned>(std::stoul(text)) : otherwise;
}

// ROVE_RESTARTS=1500 for as many as there may be ids of which something is remembered.
TEST_P(MembersMeet, OneThatRestartsAgainAndAgainCostsNothing) {
    Node first(begins());
    const std::string address = unix_address();
    for (unsigned round = times("ROVE_RESTARTS", 60); round > 0; --round) {
        NodeOptions frugal = options(address, first.address());
        frugal.threads = 1;
        Node second(started(frugal));
        ASSERT_EQ(second.id(), 1U);
        const Peer back = second.connect(first.address());
        ASSERT_EQ(first.node_count(), 2U);
        ASSERT_LE(detail::Inside::core(first.connect(address))->first_engine().peers().count(), 4U);
    }
    Node third(begins(first.address()));
    EXPECT_LE(third.id(), 2U);
}

// It does not answer, which is no proof that it is dead: its id and its address stay its own.
TEST(Membership, NobodyTakesTheAddressOfAMemberThatIsStopped) {
    NodeOptions impatient = options(unix_address());
    impatient.connect_timeout = 1s;
    Node first(impatient);
    const NodeProcess second({"--join", first.address()}, unix_address());
    const Peer peer = first.connect(second.address());
    second.stop();
    const Impostor impostor;
    const auto answer =
        impostor.meets(first.address(), Role::join, {.triple = {}, .address = second.address(), .offer = {}});
    second.signal(SIGCONT);
    if (answer) EXPECT_NE(answer->code, ErrorCode::ok) << answer->text;  // or its time was over
    EXPECT_EQ(first.node_count(), 2U);
    EXPECT_EQ(detail::Inside::state(peer)->id(), 1U);
}

// Some are other processes by the time that a member goes on which was stopped.
class WhileOneIsStopped : public testing::Test {
protected:
    static std::unique_ptr<NodeProcess> begins(const NodeProcess* joined, const std::string& listen = unix_address()) {
        std::vector<std::string> options = {"--log", "info"};
        if (joined != nullptr) options.insert(options.end(), {"--join", joined->address()});
        return std::make_unique<NodeProcess>(options, listen);
    }
    static std::string ends(std::unique_ptr<NodeProcess> node) {
        node->signal(SIGTERM);
        EXPECT_EQ(node->wait(), 0);
        return node->address();
    }
    static void expect_met(const NodeProcess& node, NodeId id, const NodeProcess& other) {
        const std::string met = fmt::format("met node {} at {}", id, other.address());
        EXPECT_TRUE(soon([&] { return node.log().find(met) != std::string::npos; })) << node.log() << other.log();
    }
};

// Once: the first and the second have let each other in, and neither has met the third. Twice: nobody that lives has met the third, and it
// knows none of those that live.
class WhileOneIsStoppedForRounds : public WhileOneIsStopped, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Rounds, WhileOneIsStoppedForRounds, testing::Values(1, 2),
                         [](const auto& info) { return info.param == 1 ? "Once" : "Twice"; });

TEST_P(WhileOneIsStoppedForRounds, AllOthersBecomeOtherProcesses) {
    auto first = begins(nullptr), second = begins(first.get());
    const auto third = begins(first.get());
    third->stop();
    for (int round = 0; round < GetParam(); ++round) {
        second = begins(first.get(), ends(std::move(second)));
        first = begins(second.get(), ends(std::move(first)));
    }
    third->signal(SIGCONT);
    expect_met(*second, 2, *third);
    expect_met(*first, 2, *third);
}

// As twice, and the third does not know that they have ended: it looks for them, and finds others at their addresses.
TEST_F(WhileOneIsStopped, AllOthersAreKilledTwice) {
    auto first = begins(nullptr), second = begins(first.get());
    const auto third = begins(first.get());
    const auto begins_again = [](std::unique_ptr<NodeProcess>& node, const NodeProcess& joined) {
        const std::string address = node->address();
        node->signal(SIGKILL);
        (void)node->wait();
        node = begins(&joined, address);
    };
    third->stop();
    for (int round = 0; round < 2; ++round) {
        begins_again(second, *first);
        begins_again(first, *second);
    }
    third->signal(SIGCONT);
    expect_met(*second, 2, *third);
    expect_met(*first, 2, *third);
}

// The third has heard of none of the others before it goes on: neither of the fourth nor of the process that took the first's place.
TEST_F(WhileOneIsStopped, OneJoinsAndTheOneThatLetItInBecomesAnotherProcess) {
    auto first = begins(nullptr);
    const auto second = begins(first.get()), third = begins(first.get());
    third->stop();
    const auto fourth = begins(first.get());
    first = begins(second.get(), ends(std::move(first)));
    third->signal(SIGCONT);
    expect_met(*first, 2, *third);
    expect_met(*third, 3, *fourth);
}

// In a process of its own, which has no descriptors left for a while.
void connect_without_descriptors(const std::string& address) {
    Node client(options());
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const rlim_t enough = limit.rlim_cur;
    limit.rlim_cur = 0;  // those that are open stay
    setrlimit(RLIMIT_NOFILE, &limit);
    ErrorCode code = ErrorCode::ok;
    try {
        (void)client.connect(address);
    } catch (const Error& error) {
        code = error.code();
    }
    limit.rlim_cur = enough;
    setrlimit(RLIMIT_NOFILE, &limit);
    const bool met = client.connect(address).node() == 0;
    std::filesystem::remove_all(scratch());  // of this process, which runs no destructors
    std::_Exit(code == ErrorCode::overloaded && met ? 0 : 1);
}
TEST(Meeting, WithoutDescriptorsIsAnErrorAndWorksLater) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const NodeProcess node({}, unix_address());
    EXPECT_EXIT(connect_without_descriptors(node.address()), testing::ExitedWithCode(0), "");
}

long entries(const std::string& folder) {
    return std::distance(std::filesystem::directory_iterator(folder), {});
}
long lines(const std::string& path) {
    std::ifstream file(path);
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}
// ROVE_CLIENTS=10000 for many more.
TEST(Meeting, ClientsThatComeAndGoLeaveNothingBehind) {
    const NodeProcess node({}, unix_address());
    const std::string process = "/proc/" + std::to_string(node.pid());
    const auto come_and_go = [&](unsigned count) {
        for (; count > 0; --count) {
            NodeOptions frugal = options();
            frugal.threads = 1;
            Node client(frugal);
            ASSERT_EQ(client.connect(node.address()).node(), 0U);
        }
    };
    come_and_go(20);  // caches of the allocator fill
    const long mappings = lines(process + "/maps"), descriptors = entries(process + "/fd"),
               threads = entries(process + "/task");
    come_and_go(times("ROVE_CLIENTS", 300));
    EXPECT_TRUE(soon([&] { return entries(process + "/fd") <= descriptors + 4; })) << entries(process + "/fd");
    EXPECT_TRUE(soon([&] { return lines(process + "/maps") <= mappings + 24; })) << lines(process + "/maps");
    EXPECT_LE(entries(process + "/task"), threads);
}

std::atomic<int> waiting = 0;
std::atomic<bool> go_on = false;
void wait_for_word() {
    ++waiting;
    while (!go_on) std::this_thread::sleep_for(1ms);
}

// One side cuts the link. Its reason is what the caller on the other side gets; then the two meet again by themselves.
TEST_P(MembersMeet, ALinkThatWasCutIsMadeAgainAndTheReasonSaid) {
    Node first(begins());
    Node second(begins(first.address()));
    Node third(begins(second.address()));
    for (auto [from, to] : {std::pair{&first, &second}, std::pair{&second, &first}}) {
        waiting = 0;
        go_on = false;
        const Peer peer = from->connect(to->address());
        ASSERT_TRUE(detail::Inside::state(peer)->is_member());
        const std::uint64_t before = state_of(*to, *from)->meeting();
        Call<void> call = peer.async(fn<wait_for_word>);
        ASSERT_TRUE(soon([] { return waiting == 1; }));
        {
            const auto cut = state_of(*to, *from);
            const Hold hold(cut->engine->lock());
            cut->hang_up(Error(ErrorCode::invalid, "the test said so"));
        }
        const Error error = error_of([&] { call.get(); });
        EXPECT_EQ(error.code(), ErrorCode::disconnected);
        EXPECT_NE(error.message().find("it cut the link: the test said so"), std::string::npos) << error.message();
        go_on = true;
        // No call reaches for it.
        const std::shared_ptr<PeerState> back = detail::Inside::state(peer);
        const auto& core = detail::Inside::core(peer);
        EXPECT_TRUE(soon([&] { return core->first_engine().peers().linked(*back); }));
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): does not see what the bindings of a loop refer to in a lambda
        EXPECT_TRUE(soon([&] { return state_of(*to, *from)->meeting() > before; }));
    }
    Node fourth(begins(first.address()));
    EXPECT_EQ(fourth.node_count(), 4U);
}

// The link is cut again and again, and called over from both sides until then: one link each time, and it works at the end.
TEST_P(MembersMeet, TwoThatMeetEachOtherAtOnceHaveOneLink) {
    Node first(begins());
    Node second(begins(first.address()));
    const Peer there = first.connect(second.address()), back = second.connect(first.address());
    go_on = true;
    std::atomic<bool> stop = false;
    std::vector<std::thread> callers;
    for (const Peer* peer : {&there, &back})
        callers.emplace_back([&stop, peer] {
            while (!stop) try {
                    peer->sync(fn<wait_for_word>);
                } catch (const Error& error) {
                    EXPECT_EQ(error.code(), ErrorCode::disconnected) << error.message();
                }
        });
    for (int round = 0; round < 20; ++round) {
        std::this_thread::sleep_for(10ms);
        const auto core = detail::Inside::core(there);
        if (core->first_engine().peers().linked(*detail::Inside::state(there)))
            core->first_engine().peers().lose(detail::Inside::state(there), detail::Inside::state(there)->meeting(),
                                              Error(ErrorCode::disconnected, "the test lost it"));
    }
    stop = true;
    for (std::thread& caller : callers) caller.join();
    const auto both = [&] {
        return detail::Inside::core(there)->first_engine().peers().linked(*detail::Inside::state(there)) &&
               detail::Inside::core(back)->first_engine().peers().linked(*detail::Inside::state(back));
    };
    EXPECT_TRUE(soon(both));
    there.sync(fn<wait_for_word>);
    back.sync(fn<wait_for_word>);
}

}  // namespace
}  // namespace rove::test
