// The checks that the opener of a meeting makes of the process that answers: that it is the one which this node wants to meet, and that it
// knows this node correctly.
#include <dlfcn.h>
#include <netdb.h>

#include <atomic>
#include <cerrno>
#include <future>

#include "../sent_descriptor.hpp"
#include "liar.hpp"

// In the C library's place: a name server that takes its time.
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
    static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
    if (std::string_view(host) == "slow.example" && (hints->ai_flags & AI_NUMERICHOST) == 0)
        std::this_thread::sleep_for(std::chrono::seconds(3));
    return real(host, service, hints, found);
}

namespace rove::test {
namespace {

// Answers as a node does, up to the welcome; `change` makes that wrong. Whoever opens the meeting says why it is not taken.
class AnswersByHand {
public:
    using Change = std::function<void(Welcome&, Bytes statement)>;
    AnswersByHand(const KeyPair& keys, Change change)
        : keys_(keys), change_(std::move(change)), fake_([this](const Raw& guest) { serve(guest); }) {}
    [[nodiscard]] const std::string& address() const { return fake_.address(); }
    [[nodiscard]] std::string said() {
        auto said = said_.get_future();
        return said.wait_for(kPatience) == std::future_status::ready ? said.get() : "nobody came";
    }
    // What it answers from here on, but for the key and its signature.
    void answers(const std::function<void(Welcome&)>& fill) {
        const std::lock_guard lock(mutex_);
        fill(welcome_);
    }

private:
    void serve(const Raw& guest) {
        const auto hello = decode<Hello>(guest.receive());
        if (!hello) return;
        Challenge challenge;
        randombytes_buf(challenge.nonce.bytes.data(), challenge.nonce.bytes.size());
        guest.send(encode(challenge));
        (void)guest.receive();  // the proof …
        (void)guest.receive();  // … and the request
        const auto shown = statement("node", challenge.nonce, hello->nonce, guest.bound_here());
        Welcome answer;
        answers([&answer](const Welcome& filled) { answer = filled; });
        answer.key = keys_.key();
        answer.signature = keys_.sign(shown);
        change_(answer, shown);
        guest.send(encode(answer));
        const auto goodbye = guest.goodbye();
        if (!std::exchange(answered_, true)) said_.set_value(goodbye ? goodbye->text : "it took the welcome");
    }
    std::mutex mutex_;
    Welcome welcome_{.triple = "x86_64-linux-gnu", .resident = {}, .offer = {}};
    const KeyPair& keys_;
    const Change change_;
    std::promise<std::string> said_;
    bool answered_ = false;
    FakeNode fake_;  // last: its thread uses the others
};

// A member dies, and another process is at its address: what the node says there, which looks for its member.
std::string said_to_a_member(const AnswersByHand::Change& change) {
    Node first(options(unix_address()));
    const auto keys = std::make_shared<const KeyPair>();
    AnswersByHand there(*keys, change);
    Liar member(there.address(), keys);
    member.joins(first.address());
    if (testing::Test::HasFatalFailure()) return "it did not join";
    there.answers([&](Welcome& welcome) {
        welcome.id = member.certificate().id;
        welcome.you = first.id();
        welcome.count = 2;
    });
    member.dies();
    return there.said();
}

void as_it_should_be(Welcome&, Bytes) {}

TEST(Opening, AMemberIsWhoHasItsKeyAndItsId) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    const KeyPair others;
    const std::vector<std::pair<const char*, AnswersByHand::Change>> wrong{
        {"id", [](Welcome& welcome, Bytes) { ++welcome.id; }},
        {"key",
         [&](Welcome& welcome, Bytes shown) {
             welcome.key = others.key();
             welcome.signature = others.sign(shown);
         }},
    };
    for (const auto& [what, change] : wrong) {
        const std::string said = said_to_a_member(change);
        EXPECT_NE(said.find("node 1 is not there any more: another process is at "), std::string::npos)
            << "another " << what << ": " << said;
    }
    const std::string said = said_to_a_member(as_it_should_be);
    EXPECT_NE(said.find("there is no lane to it"), std::string::npos) << "nothing else is wrong: " << said;
}

TEST(Opening, AMemberTakesThisNodeForWhatItIs) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    const std::string said = said_to_a_member([](Welcome& welcome, Bytes) { welcome.you = 5; });
    EXPECT_NE(said.find("it takes this node for another one"), std::string::npos) << said;
}

TEST(Opening, AMemberHasTheKeyThatItSays) {
    if (!has_streams()) GTEST_SKIP() << "the test opens a stream";
    const KeyPair others;
    const std::string said =
        said_to_a_member([&](Welcome& welcome, Bytes shown) { welcome.signature = others.sign(shown); });
    EXPECT_NE(said.find("it does not have the key that it says it has"), std::string::npos) << said;
}

// Who joins has nothing to compare the key with, but the node must have it: others are told of it by that key.
TEST(Opening, WhoeverIsJoinedHasTheKeyThatItSays) {
    const KeyPair keys, others;
    std::string there_at;
    const auto joining = [&](const AnswersByHand::Change& change) {
        AnswersByHand there(keys, change);
        there_at = there.address();
        there.answers([](Welcome& welcome) {
            welcome.id = 0;
            welcome.you = 1;
            welcome.count = 2;
        });
        return error_of([&] { Node joins(options(unix_address(), there.address())); });
    };
    const Error another = joining([&](Welcome& welcome, Bytes shown) { welcome.signature = others.sign(shown); });
    EXPECT_EQ(another.code(), ErrorCode::refused);
    EXPECT_NE(another.message().find("it does not have the key that it says it has"), std::string::npos)
        << another.message();
    const Error earlier = joining([&](Welcome& welcome, Bytes) {
        welcome.signature = keys.sign(statement("node", Nonce{}, Nonce{}, there_at));  // of a meeting that was
    });
    EXPECT_NE(earlier.message().find("it does not have the key that it says it has"), std::string::npos)
        << earlier.message();
    for (const NodeId given : {0U, client_id(0, 1)}) {
        const Error id = joining([&](Welcome& welcome, Bytes) { welcome.you = given; });
        EXPECT_NE(id.message().find("it gave an id that is not a member's"), std::string::npos) << id.message();
    }
    const Error lane = joining(as_it_should_be);
    EXPECT_NE(lane.message().find("there is no lane to it"), std::string::npos) << lane.message();
}

// Each sends who joins on to the other.
TEST(Opening, WhoeverIsSentOnAgainAndAgainGivesUp) {
    std::atomic<int> guests = 0;
    std::vector<std::string> addresses(2);
    const auto sends_on_to = [&](std::size_t other) {
        return [&, other](const Raw& guest) {
            ++guests;
            const auto hello = decode<Hello>(guest.receive());
            if (!hello) return;
            guest.send(encode(Challenge{}));
            (void)guest.receive();
            (void)guest.receive();
            guest.send(encode(Redirect{.address = addresses[other]}));
            (void)guest.is_ended();
        };
    };
    FakeNode first(sends_on_to(1)), second(sends_on_to(0));
    addresses = {first.address(), second.address()};
    const Error error = error_of([&] { Node joins(options(unix_address(), first.address())); });
    EXPECT_EQ(error.code(), ErrorCode::invalid) << error.message();
    EXPECT_NE(error.message().find("send on from one to the other"), std::string::npos) << error.message();
    EXPECT_EQ(guests, 9);
}

TEST(Opening, AClientsIdIsOneOfTheNodeThatGaveIt) {
    const KeyPair keys;
    const auto meeting = [&](NodeId given) {
        AnswersByHand there(keys, as_it_should_be);
        there.answers([given](Welcome& welcome) {
            welcome.id = 2;
            welcome.you = given;
        });
        Node client(options());
        return error_of([&] { (void)client.connect(there.address()); }).message();
    };
    for (const NodeId given : {0U, 2U, 3U, client_id(0, 1), client_id(3, 1)})
        EXPECT_NE(meeting(given).find("it gave an id that is not a client's of its own"), std::string::npos) << given;
    EXPECT_NE(meeting(client_id(2, 1)).find("there is no lane to it"), std::string::npos);
}

TEST(Opening, AnAddressThatIsNoneSaysWhatToWrite) {
    const auto said = [](std::string_view text) {
        const auto address = control::parse_address(text);
        return address ? std::string("nothing") : address.error().message();
    };
    EXPECT_NE(said("tcp://127.0.0.1:5").find("leave out 'tcp://'"), std::string::npos) << said("tcp://127.0.0.1:5");
    EXPECT_NE(said("::1:5").find("in brackets, as [::1]:PORT"), std::string::npos) << said("::1:5");
    EXPECT_NE(said("unix:").find("names no socket"), std::string::npos) << said("unix:");
    EXPECT_NE(said("here:70000").find("'70000' is not a port"), std::string::npos) << said("here:70000");
    using namespace std::string_view_literals;
    for (const std::string_view zero : {"127.0.0.1\0:5"sv, "127.0.0.1:5\0"sv, "unix:/tmp/a\0b"sv})
        EXPECT_NE(said(zero).find("contains a zero byte"), std::string::npos) << said(zero);
    for (const char* right : {"127.0.0.1:5", "[::1]:5", "unix:/tmp/a:b", "here:0"}) EXPECT_EQ(said(right), "nothing");
}

// A process that accepts nobody, as one that is stopped, and as many waiting for it as may.
class AcceptsNobody {
public:
    explicit AcceptsNobody(bool tcp) : listener_(::socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
        socklen_t size = sizeof address;
        sockaddr_un path{.sun_family = AF_UNIX, .sun_path = {}};
        if (tcp) {
            EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
            EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
            address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
        } else {
            address_ = unix_address();
            address_.copy(path.sun_path, sizeof path.sun_path - 1, 5);
            EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&path), sizeof path), 0);
        }
        EXPECT_EQ(::listen(listener_, 0), 0);
        const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
        EXPECT_EQ(setsockopt(listener_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
        for (int i = 0; i < 3; ++i) {
            waiting_.push_back(::socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
            (void)::connect(waiting_.back(),
                            tcp ? reinterpret_cast<sockaddr*>(&address) : reinterpret_cast<sockaddr*>(&path),
                            tcp ? sizeof address : sizeof path);
        }
    }
    ~AcceptsNobody() {
        for (const int socket : waiting_) ::close(socket);
        ::close(listener_);
    }
    [[nodiscard]] const std::string& address() const { return address_; }
    [[nodiscard]] int accept() const { return ::accept(listener_, nullptr, nullptr); }  // negative: nobody came

private:
    const int listener_;
    std::string address_;
    std::vector<int> waiting_;
};

TEST(Opening, AnAddressWhereNobodyAcceptsIsGivenUp) {
    for (const bool tcp : {true, false}) {
        const AcceptsNobody there(tcp);
        NodeOptions impatient = options();
        impatient.connect_timeout = 500ms;
        Node client(impatient);
        const auto begin = std::chrono::steady_clock::now();
        const Error error = error_of([&] { (void)client.connect(there.address()); });
        EXPECT_LT(std::chrono::steady_clock::now() - begin, kPatience);
        EXPECT_EQ(error.code(), ErrorCode::timed_out) << error.message();
        EXPECT_NE(error.message().find("the node at " + there.address() + " did not answer within 500 ms"),
                  std::string::npos)
            << error.message();
    }
}

// For connect(), for a join and for a node's own address.
TEST(Opening, ANameThatIsNotResolvedIsGivenUp) {
    const std::string slow = "slow.example:7400";
    NodeOptions impatient = options();
    impatient.connect_timeout = 200ms;
    Node client(impatient);
    NodeOptions joins = impatient;
    joins.listen = "unix:" + (scratch() / "joins_slowly.sock").string();
    joins.join = slow;
    NodeOptions listens = impatient;
    listens.listen = slow;
    const std::function<void()> ways[] = {[&] { (void)client.connect(slow); }, [&] { const Node node(joins); },
                                          [&] { const Node node(listens); }};
    for (const auto& way : ways) {
        const auto begin = std::chrono::steady_clock::now();
        const Error error = error_of(way);
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
        EXPECT_EQ(error.code(), ErrorCode::timed_out) << error.message();
        EXPECT_NE(error.message().find("'slow.example' was not resolved"), std::string::npos) << error.message();
    }
}

// Each look-up that nobody waits for any more has a thread until the resolver answers.
TEST(Opening, LookUpsThatTakeLongAreBounded) {
    NodeOptions impatient = options();
    impatient.connect_timeout = 50ms;
    Node client(impatient);
    const auto ends = [&client] { return error_of([&client] { (void)client.connect("slow.example:7400"); }).code(); };
    int timed_out = 0;
    while (timed_out < 100 && ends() == ErrorCode::timed_out) ++timed_out;
    EXPECT_LE(timed_out, 16);
    EXPECT_EQ(ends(), ErrorCode::overloaded);
    EXPECT_TRUE(soon([&ends] { return ends() == ErrorCode::timed_out; }, 20s)) << "they are done by now";
}

// A node that drops connections is tried again, in the time that was given for all.
TEST(Opening, TriesShareTheTimeForAMeeting) {
    std::atomic<int> guests = 0;
    FakeNode drops([&](const Raw& guest) {
        (void)guest.receive();
        if (++guests == 1)
            std::this_thread::sleep_for(4500ms);
        else
            (void)guest.is_ended();
    });
    NodeOptions patient = options();
    patient.connect_timeout = 5s;
    Node client(patient);
    const auto begin = std::chrono::steady_clock::now();
    const Error error = error_of([&] { (void)client.connect(drops.address()); });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 8500ms) << "each has as much for itself: 9.5 s";
    EXPECT_EQ(error.code(), ErrorCode::timed_out) << error.message();
    EXPECT_EQ(guests, 2);
}

// Whose queue was full when it was called on.
TEST(Opening, WhoeverAcceptsLateIsMet) {
    for (const bool tcp : {true, false}) {
        const AcceptsNobody there(tcp);
        std::thread accepts([&] {
            std::this_thread::sleep_for(300ms);
            // Those that waited say nothing; the one that says hello is hung up on.
            for (bool said = false; !said;) {
                const Raw guest(there.accept());
                if (!guest.open()) return;
                pollfd ready{.fd = guest.descriptor(), .events = POLLIN, .revents = 0};
                char byte = 0;
                said = ::poll(&ready, 1, 200) == 1 && ::recv(guest.descriptor(), &byte, 1, MSG_PEEK) == 1;
                if (said)
                    guest.send(encode(
                        Goodbye{.reason = Goodbye::Reason::refused, .code = ErrorCode::refused, .text = "it came"}));
                if (said) (void)guest.is_ended();
            }
        });
        Node client(options());
        const Error error = error_of([&] { (void)client.connect(there.address()); });
        accepts.join();
        EXPECT_NE(error.message().find("it came"), std::string::npos) << error.message();
    }
}

// As a node does that is met (ListenerTest.DescriptorsAreRefused).
TEST(Opening, RefusesDescriptorsOfWhomItMeets) {
    std::promise<int> error;
    std::atomic<bool> has_come = false;
    FakeNode fake([&](const Raw& guest) {
        if (has_come.exchange(true)) return;
        error.set_value(
            kernel_refuses_descriptors(guest.descriptor()) ? error_of_sending(guest.descriptor(), STDERR_FILENO) : -1);
    });
    Node client(options());
    EXPECT_NE(error_of([&] { (void)client.connect(fake.address()); }).code(), ErrorCode::ok);
    const int found = error.get_future().get();
    if (found == -1) GTEST_SKIP() << "this kernel cannot refuse descriptors: it is older than Linux 6.16";
    EXPECT_EQ(found, EPERM);
}

}  // namespace
}  // namespace rove::test
