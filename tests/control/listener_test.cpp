// Where a node can be called on: which addresses it takes, who waits until it accepts, and what is left when it stops.
#include "control/listener.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <new>
#include <vector>

#include "../node/soon.hpp"
#include "../sent_descriptor.hpp"
#include "control/socket_file.hpp"

namespace rove::test {
namespace {

using control::Address;
using control::Listener;
using namespace std::chrono_literals;

class ListenerTest : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_NE(mkdtemp(folder_.data()), nullptr);
        thread_.start([this] { listener_.go_on(); });
    }
    void TearDown() override {
        for (const int each : sockets_) ::close(each);
        listener_.stop();
        thread_.stop([this] { taken_.clear(); });
        listener_.drop();
        thread_.drop();
        std::filesystem::remove_all(folder_);
    }
    Result<Address> open(const std::string& text) { return listener_.open(text, Clock::now() + 20s); }
    // Whether the kernel took the connection: the node need not have accepted it.
    bool connects(const Address& address) {
        const auto endpoint = control::resolve(address)->front();
        const int socket = ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockets_.push_back(socket);
        return ::connect(socket, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0;
    }
    std::string path(const char* name) const { return folder_ + "/" + name; }
    // Of an error that names the address.
    static ErrorCode refused(const Result<Address>& opened, const std::string& text, const std::string& why) {
        if (opened) return ErrorCode::ok;
        EXPECT_NE(opened.error().message().find(text), std::string::npos) << opened.error().message();
        EXPECT_NE(opened.error().message().find(why), std::string::npos) << opened.error().message();
        return opened.error().code();
    }

    std::string folder_ = (std::filesystem::temp_directory_path() / "rove-listener-XXXXXX").string();
    std::vector<int> sockets_;
    std::atomic<int> came_{0}, without_memory_{0};
    std::vector<control::Socket> taken_;  // the control thread's
    control::ControlThread thread_{[] { return std::string("node 0"); }};
    Listener listener_{thread_, [] { return std::string("node 0"); },
                       [this](control::Socket socket) {
                           ++came_;
                           if (without_memory_-- > 0) throw std::bad_alloc();
                           taken_.push_back(std::move(socket));
                       }};
};

// What sends one may have the kernel wait when it is closed. From Linux 6.16 on.
TEST_F(ListenerTest, DescriptorsAreRefused) {
    const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockets_.push_back(probe);
    if (!kernel_refuses_descriptors(probe))
        GTEST_SKIP() << "this kernel cannot refuse descriptors: it is older than Linux 6.16";
    const auto address = open("unix:" + path("node"));
    ASSERT_TRUE(address) << address.error().message();
    listener_.accept();
    ASSERT_TRUE(connects(*address));
    ASSERT_TRUE(soon([this] { return came_ == 1; }));
    EXPECT_EQ(error_of_sending(sockets_.back(), STDERR_FILENO), EPERM);
    EXPECT_EQ(error_of_sending(sockets_.back(), -1), 0) << "bytes alone are taken";
}

TEST_F(ListenerTest, WhoeverConnectsWaitsUntilItAccepts) {
    const auto address = open("127.0.0.1:0");
    ASSERT_TRUE(address) << address.error().message();
    EXPECT_NE(address->port, 0) << "the real one";
    EXPECT_TRUE(connects(*address));
    EXPECT_TRUE(connects(*address));
    EXPECT_EQ(came_, 0);
    listener_.accept();
    EXPECT_TRUE(soon([this] { return came_ == 2; }));
}

TEST_F(ListenerTest, AnAddressIsOnlyOnes) {
    const auto address = open("127.0.0.1:0");
    ASSERT_TRUE(address);
    Listener second(thread_, [] { return std::string("node 1"); }, [](control::Socket) {});
    const std::string taken = address->to_string();
    EXPECT_EQ(refused(second.open(taken, Clock::now() + 20s), taken, "choose another port"), ErrorCode::invalid);
    const std::string unix_path = "unix:" + path("socket");
    Listener third(thread_, [] { return std::string("node 2"); }, [](control::Socket) {});
    Listener fourth(thread_, [] { return std::string("node 3"); }, [](control::Socket) {});
    ASSERT_TRUE(third.open(unix_path, Clock::now() + 20s));
    EXPECT_EQ(refused(fourth.open(unix_path, Clock::now() + 20s), unix_path, "choose another path"),
              ErrorCode::invalid);
    EXPECT_TRUE(std::filesystem::exists(path("socket"))) << "it is the other one's";
    for (Listener* each : {&second, &third, &fourth}) each->drop();
}

// Somebody has removed the first one's file before the second one made its own at the same path.
TEST_F(ListenerTest, EachOfTwoAtOnePathRemovesItsOwnFile) {
    const auto bind_at = [this](const std::string& at) {
        return [this, at] {
            sockets_.push_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
            const auto endpoint = control::resolve(*control::parse_address("unix:" + at))->front();
            return ::bind(sockets_.back(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0;
        };
    };
    const std::string at = path("shared");
    for (const bool first_ends_first : {true, false}) {
        control::SocketFile first, second;
        first.make(at, bind_at(at));
        ASSERT_TRUE(std::filesystem::remove(at));
        second.make(at, bind_at(at));
        if (first_ends_first) first.remove();
        EXPECT_TRUE(std::filesystem::exists(at));
        second.remove();
        EXPECT_FALSE(std::filesystem::exists(at));
    }
}

TEST_F(ListenerTest, WhatIsNoSocketIsLeftAsItIs) {
    std::ofstream(path("file")) << "precious";
    EXPECT_EQ(refused(open("unix:" + path("file")), path("file"), "is no socket"), ErrorCode::invalid);
    EXPECT_EQ(std::filesystem::file_size(path("file")), 8U);
    EXPECT_FALSE(open("nonsense"));
    EXPECT_EQ(open("8.8.8.8:1").error().code(), ErrorCode::refused) << "not this machine's loopback";
}

TEST_F(ListenerTest, ASocketThatAProcessHasLeftIsReplacedAndIsItsUsersAlone) {
    const int left = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto endpoint = control::resolve(*control::parse_address("unix:" + path("left")))->front();
    ASSERT_EQ(::bind(left, endpoint.data(), static_cast<socklen_t>(endpoint.size())), 0);
    ::close(left);
    ASSERT_TRUE(std::filesystem::exists(path("left")));
    const auto address = open("unix:" + path("left"));
    ASSERT_TRUE(address) << address.error().message();
    listener_.accept();
    EXPECT_TRUE(connects(*address));
    EXPECT_TRUE(soon([this] { return came_ == 1; }));
    struct stat of_file{};
    ASSERT_EQ(::stat(path("left").c_str(), &of_file), 0);
    EXPECT_EQ(of_file.st_mode & 0777U, 0600U);
}

TEST_F(ListenerTest, NobodyIsAcceptedOnceItStopsAndTheFileIsRemoved) {
    const auto address = open("unix:" + path("socket"));
    ASSERT_TRUE(address);
    listener_.accept();
    EXPECT_TRUE(connects(*address));
    EXPECT_TRUE(soon([this] { return came_ == 1; }));
    listener_.stop();
    EXPECT_FALSE(std::filesystem::exists(path("socket")));
    EXPECT_TRUE(soon([&] { return !connects(*address); }));
    listener_.stop();  // again: nothing
    EXPECT_EQ(came_, 1);
}

TEST_F(ListenerTest, OneWithoutMemoryIsClosedAndTheNextIsTaken) {
    const auto address = open("127.0.0.1:0");
    ASSERT_TRUE(address);
    without_memory_ = 1;
    listener_.accept();
    EXPECT_TRUE(connects(*address));
    EXPECT_TRUE(soon([this] { return came_ == 1; }));
    char byte = 0;
    EXPECT_LE(::recv(sockets_.back(), &byte, 1, 0), 0) << "it is closed";
    EXPECT_TRUE(connects(*address));
    EXPECT_TRUE(soon([this] { return came_ == 2; }));
    EXPECT_EQ(::recv(sockets_.back(), &byte, 1, MSG_DONTWAIT), -1);
    EXPECT_EQ(errno, EAGAIN) << "it is open";
}

}  // namespace
}  // namespace rove::test
