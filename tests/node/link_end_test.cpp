// The error of a call whose link ends: it names the address, and the reason of the other side. A stream ends before its goodbye arrives,
// which is sent over another connection.
#include "hand_made.hpp"
#include "raw_meeting.hpp"

namespace rove::test {
namespace {

int one_more(int x) {
    return x + 1;
}
std::atomic<int> begun = 0;
std::atomic<int> ended = 0;
std::atomic<bool> may_end = false;
void wait_until_told() {
    ++begun;
    while (!may_end) std::this_thread::sleep_for(1ms);
    ++ended;
}

class LinkEnd : public OnFabrics {
protected:
    void SetUp() override {
        begun = 0;
        may_end = false;
        OnFabrics::SetUp();
    }
    void TearDown() override {
        may_end = true;
        OnFabrics::TearDown();
    }
};
ROVE_ON_FABRICS(LinkEnd);

class LinkEndOfProcesses : public OnFabrics {};
ROVE_ON_FABRICS_OF_PROCESSES(LinkEndOfProcesses);

bool has(const Error& error, const std::string& text) {
    return error.message().find(text) != std::string::npos;
}

TEST_P(LinkEnd, SaysThatTheOtherSideLeft) {
    for (int round = 0; round < 5; ++round) {
        begun = 0;
        may_end = false;
        NodeOptions hasty = options(true);
        hasty.grace = 100ms;  // the function does not end within it
        auto leaving = std::make_unique<Node>(started(hasty));
        const std::string address = leaving->address();
        const Peer peer = node_->connect(address);
        Call<void> call = peer.async(fn<wait_until_told>);
        ASSERT_TRUE(soon([] { return begun == 1; }));
        std::thread ends([&] { leaving.reset(); });
        const Error error = error_of([&] { call.get(); });
        may_end = true;
        ends.join();
        EXPECT_EQ(error.code(), ErrorCode::disconnected);
        EXPECT_TRUE(has(error, "it left")) << error.message();
        EXPECT_TRUE(has(error, address)) << error.message();
    }
}

// The node finds a frame that no honest peer sends: what is said there is what the other side's calls end with.
TEST_P(LinkEnd, SaysWhyTheOtherSideCutIt) {
    for (int round = 0; round < 5; ++round) {
        begun = ended = 0;
        may_end = false;
        NodeOptions own = options();
        own.own_thread = false;
        Node enemy(started(own));
        const Peer link = enemy.connect(server_->address());
        Call<void> call = link.async(fn<wait_until_told>);
        ASSERT_TRUE(soon([&] {
            (void)enemy.poll();
            return begun == 1;
        }));
        write_frame(link, fabric::Traffic::calls, {.kind = wire::Kind::call, .flags = wire::kError}, {});
        const Error error = error_of([&] { call.get(); });
        may_end = true;
        EXPECT_EQ(error.code(), ErrorCode::disconnected);
        EXPECT_TRUE(has(error, "it cut the link: client ")) << error.message();
        EXPECT_TRUE(has(error, "marks that are not its own")) << error.message();
        EXPECT_TRUE(has(error, server_->address())) << error.message();
        EXPECT_EQ(peer().sync(fn<one_more>, 1), 2) << "the others go on";
        ASSERT_TRUE(soon([] { return ended == 1; }));  // before it is told to wait again
    }
}

// What has arrived counts where the link has gone before anybody looks; it is checked as what arrives at any other time.
TEST(LastReplies, AreCheckedAsOthersAre) {
    for (const std::uint8_t marks : {std::uint8_t{0}, std::uint8_t{wire::kMeant}}) {
        NodeOptions own = options("127.0.0.1:0");
        own.fabric = FabricChoice::shm;
        own.own_thread = false;
        Node enemy(own);
        own.join = enemy.address();
        Node caller(own);
        const Peer back = enemy.connect(caller.address()), peer = caller.connect(enemy.address());
        Call<int> call = peer.async(fn<one_more>, 6);
        wire::Frame frame;
        ASSERT_TRUE(soon([&] { return detail::Inside::state(back)->link()->next(fabric::Traffic::calls, frame); }));
        const int result = 7;
        write_frame(back, fabric::Traffic::prompt,
                    {.kind = wire::Kind::reply,
                     .flags = marks,
                     .generation = frame.header.generation,
                     .node = caller.id(),
                     .call = frame.header.call},
                    {}, std::as_bytes(std::span(&result, 1)));
        const auto state = detail::Inside::state(peer);
        detail::Inside::core(peer)->first_engine().peers().lose(state, state->meeting(),
                                                                Error(ErrorCode::disconnected, "the test cut it"));
        const Call<int> next = peer.async(fn<one_more>, 1);  // meets it again before anybody looks
        if (marks == 0)
            EXPECT_EQ(call.get(), result);
        else
            EXPECT_EQ(error_of([&] { (void)call.get(); }).code(), ErrorCode::disconnected) << "it was believed";
    }
}

TEST_P(LinkEndOfProcesses, OfAClientThatLeavesIsNoWarning) {
    const std::string basics = package("basics.c");
    NodeProcess node({"--fabric", GetParam().name});
    for (int round = 0; round < 20; ++round) {
        Node client(started(options()));
        const Peer peer = client.connect(node.address());
        EXPECT_EQ(peer.call(Package::open(basics).entry("echo"), as_bytes(std::string_view("hello"))).get().size(), 5U);
    }
    node.signal(SIGTERM);
    EXPECT_EQ(node.wait(), 0);
    EXPECT_EQ(node.log().find("warn"), std::string::npos) << node.log();
}

// A node made by hand that lets one client in, over a stream.
class HandMadeNode {
public:
    HandMadeNode() {
        address_ = unix_address();
        listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        address_.copy(address.sun_path, sizeof address.sun_path - 1, 5);
        EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(listener_, 16), 0);
        const timeval time{15, 0};
        setsockopt(listener_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    }
    ~HandMadeNode() { ::close(listener_); }
    HandMadeNode(const HandMadeNode&) = delete;

    [[nodiscard]] Peer lets_in(Node& client) {
        auto met = std::async(std::launch::async, [&] { return client.connect(address_); });
        control_.emplace(::accept(listener_, nullptr, nullptr));
        (void)control_->receive();
        control_->send(encode(Challenge{}));
        (void)control_->receive();  // the proof …
        (void)control_->receive();  // … and the request
        Welcome welcome{.triple = "x86_64-linux-gnu", .resident = {}, .offer = {}};
        welcome.has_ticket = welcome.has_residents = true;
        welcome.id = 0;
        welcome.you = client_id(0, 1);
        welcome.count = 1;
        control_->send(encode(welcome));
        lane_.emplace(::accept(listener_, nullptr, nullptr));
        (void)lane_->receive();
        EXPECT_TRUE(decode<Connected>(control_->receive()));
        control_->send(encode(Settled{}));
        return met.get();
    }
    void ends_the_lane() { lane_.reset(); }
    void says(const std::string& reason) const {
        control_->send(encode(Goodbye{.reason = Goodbye::Reason::cut, .text = reason}));
    }
    void sends(Bytes bytes) const { control_->send(bytes); }
    [[nodiscard]] std::optional<Goodbye> goodbye() const { return control_->goodbye(); }
    [[nodiscard]] const std::string& address() const { return address_; }

private:
    int listener_ = -1;
    std::string address_;
    std::optional<Raw> control_, lane_;
};

bool has_streams() {
    return options().fabric == FabricChoice::best || options().fabric == FabricChoice::tcp;
}

TEST(StreamEnd, IsExplainedByTheGoodbyeThatComesAfterIt) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    unsigned told = 0;
    for (int round = 0; round < 10; ++round) {
        HandMadeNode node;
        Node client(options());
        const Peer peer = node.lets_in(client);
        Call<int> call = peer.async(fn<one_more>, 1);
        node.ends_the_lane();
        std::this_thread::sleep_for(2ms);  // it sees that end first
        node.says("the test said so");
        const Error error = error_of([&] { (void)call.get(); });
        EXPECT_EQ(error.code(), ErrorCode::disconnected);
        EXPECT_TRUE(has(error, node.address())) << error.message();
        told += has(error, "it cut the link: the test said so") ? 1 : 0;
    }
    EXPECT_GE(told, 5U) << "a machine that is busy may take too long for some";
}

// Nor does whoever calls again meet the node again before that.
TEST(StreamEnd, IsExplainedAlsoWhereACallMeetsAgain) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    unsigned told = 0;
    for (int round = 0; round < 10; ++round) {
        HandMadeNode node;
        NodeOptions own = options();
        own.own_thread = false;
        Node client(own);
        const Peer peer = node.lets_in(client);
        Call<int> call = peer.async(fn<one_more>, 1);
        node.ends_the_lane();
        std::thread explains([&] {
            std::this_thread::sleep_for(2ms);
            node.says("the test said so");
        });
        for (int i = 0; i < 3; ++i) (void)client.poll();  // it has seen that end
        EXPECT_NE(error_of([&] { (void)peer.sync(within(20ms), fn<one_more>, 2); }).code(), ErrorCode::ok);
        explains.join();
        told += has(error_of([&] { (void)call.get(); }), "it cut the link: the test said so") ? 1 : 0;
    }
    EXPECT_GE(told, 5U) << "a machine that is busy may take too long for some";
}

TEST(StreamEnd, IsNotWaitedForWithoutEndAndKeepsNobodyElse) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    HandMadeNode node;
    Node other(options(unix_address()));
    Node client(options());
    const Peer peer = node.lets_in(client), honest = client.connect(other.address());
    Call<int> call = peer.async(fn<one_more>, 1);
    node.ends_the_lane();  // and says nothing
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(error_of([&] { (void)peer.sync(within(10ms), fn<one_more>, 2); }).code(), ErrorCode::timed_out);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s) << "meeting it takes 15 s";
    for (int i = 0; i < 100; ++i) EXPECT_EQ(honest.sync(fn<one_more>, i), i + 1);
    const Error error = error_of([&] { (void)call.get(); });
    EXPECT_EQ(error.code(), ErrorCode::disconnected);
    EXPECT_TRUE(has(error, "the stream to the peer ended")) << error.message();
    EXPECT_TRUE(has(error, node.address())) << error.message();
}

// A message on the control connection that is not due there ends that peer alone, and both sides learn why.
TEST(ControlConnection, ABadMessageAfterTheMeetingEndsThatPeerAlone) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    Node other(options(unix_address()));
    const std::vector<std::pair<ByteBuffer, const char*>> bad{
        {encode(Challenge{}), "not due"},
        {encode(wire::control::Members{}), "not due"},  // a client says nothing of members
        {ByteBuffer(4, std::byte{0xff}), "bytes, where 1 to"},
    };
    for (const auto& [message, why] : bad) {
        SCOPED_TRACE(why);
        HandMadeNode node;
        Node client(options());
        const Peer peer = node.lets_in(client), honest = client.connect(other.address());
        Call<int> call = peer.async(fn<one_more>, 1);
        node.sends(message);
        const auto goodbye = node.goodbye();
        ASSERT_TRUE(goodbye);
        EXPECT_EQ(goodbye->reason, Goodbye::Reason::cut);
        EXPECT_NE(goodbye->text.find(why), std::string::npos) << goodbye->text;
        const Error error = error_of([&] { (void)call.get(); });
        EXPECT_EQ(error.code(), ErrorCode::disconnected);
        EXPECT_TRUE(has(error, why)) << error.message();
        EXPECT_TRUE(has(error, node.address())) << error.message();
        EXPECT_EQ(honest.sync(fn<one_more>, 1), 2);
    }
}

}  // namespace
}  // namespace rove::test
