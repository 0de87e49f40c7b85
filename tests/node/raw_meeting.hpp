// Hand-made ends of a control connection, for tests of meetings and of membership.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <thread>

#include "../api/nodes.hpp"
#include "api/access.hpp"
#include "control/address.hpp"
#include "control/cookie.hpp"
#include "control/identity.hpp"
#include "control/members.hpp"
#include "node/core.hpp"
#include "soon.hpp"

namespace rove::test {

inline std::atomic<int> unix_addresses = 0;  // one count for all files of a program: no address is used twice

using std::chrono_literals::operator""s, std::chrono_literals::operator""ms;
using control::KeyPair;
using control::MemberEntry;
using wire::control::Challenge;
using wire::control::Connected;
using wire::control::ConnectedBy;
using wire::control::decode;
using wire::control::encode;
using wire::control::Goodbye;
using wire::control::Hello;
using wire::control::Kind;
using wire::control::kind_of;
using wire::control::LaneHello;
using wire::control::Nonce;
using wire::control::Proof;
using wire::control::ProofGiven;
using wire::control::Redirect;
using wire::control::Request;
using wire::control::Role;
using wire::control::Settled;
using wire::control::statement;
using wire::control::Welcome;

inline constexpr auto kPatience = 20s;

inline NodeOptions options(const std::string& listen = {}, const std::string& join = {}) {
    (void)scratch();
    NodeOptions options;
    options.listen = listen;
    options.join = join;
    options.log = "error";
    options.connect_timeout = 15s;
    return options;
}
inline std::string unix_address() {
    return "unix:" + (scratch() / ("meeting" + std::to_string(unix_addresses++))).string();
}

// A socket that speaks, or does not speak, as a test says.
class Raw {
public:
    explicit Raw(int descriptor) : descriptor_(descriptor) { limit(); }
    explicit Raw(const std::string& address) {
        const auto endpoint = control::resolve(*control::parse_address(address))->front();
        descriptor_ = ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (::connect(descriptor_, endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0) {
            ::close(descriptor_);
            descriptor_ = -1;
        }
        limit();
    }
    Raw(Raw&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    ~Raw() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    [[nodiscard]] int descriptor() const { return descriptor_; }
    [[nodiscard]] bool open() const { return descriptor_ >= 0; }
    void send(Bytes bytes) const { (void)::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
    // The next message's body; empty at the end.
    [[nodiscard]] ByteBuffer receive() const {
        std::uint32_t size = 0;
        if (::recv(descriptor_, &size, sizeof size, MSG_WAITALL) != sizeof size || size > 1'000'000) return {};
        ByteBuffer body(size);
        if (::recv(descriptor_, body.data(), size, MSG_WAITALL) != static_cast<ssize_t>(size)) return {};
        return body;
    }
    // Where the node listens that was called on, as it has bound it: this end of the connection, or the other one.
    [[nodiscard]] std::string bound_here() const { return bound(::getsockname); }
    [[nodiscard]] std::string bound_there() const { return bound(::getpeername); }
    // Reads to the end; whether it came, and what the node said last.
    [[nodiscard]] std::optional<Goodbye> goodbye() const {
        std::optional<Goodbye> last;
        for (ByteBuffer body = receive(); !body.empty(); body = receive())
            if (const auto said = decode<Goodbye>(body)) last = *said;
        return last;
    }
    [[nodiscard]] bool is_ended() const {
        char byte = 0;
        ssize_t count = 0;
        while ((count = ::recv(descriptor_, &byte, 1, 0)) > 0) {
        }
        return count == 0 || errno == ECONNRESET;
    }

private:
    [[nodiscard]] std::string bound(int (*ask)(int, sockaddr*, socklen_t*)) const {
        sockaddr_storage at{};
        socklen_t size = sizeof at;
        EXPECT_EQ(ask(descriptor_, reinterpret_cast<sockaddr*>(&at), &size), 0);
        return control::bound_text({&at, size});
    }
    void limit() const {
        const timeval time{15, 0};
        setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    }
    int descriptor_ = -1;
};

// Listens, and does with each that comes what the test says, in a thread.
class FakeNode {
public:
    explicit FakeNode(std::function<void(const Raw&)> serve, bool tcp = false) {
        if (tcp) {
            listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            sockaddr_in address{
                .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
            socklen_t size = sizeof address;
            EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
            EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
            address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
        } else {
            address_ = unix_address();
            listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
            sockaddr_un address{};
            address.sun_family = AF_UNIX;
            address_.copy(address.sun_path, sizeof address.sun_path - 1, 5);
            EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        }
        EXPECT_EQ(::listen(listener_, 16), 0);
        thread_ = std::thread([this, serve = std::move(serve)] {
            for (int one = 0; (one = ::accept(listener_, nullptr, nullptr)) >= 0;) {
                const Raw guest(one);
                if (!ended_) serve(guest);
            }
        });
    }
    ~FakeNode() {
        ended_ = true;
        ::shutdown(listener_, SHUT_RDWR);
        thread_.join();
        ::close(listener_);
    }
    [[nodiscard]] const std::string& address() const { return address_; }

private:
    int listener_ = -1;
    std::string address_;
    std::atomic<bool> ended_ = false;
    std::thread thread_;
};

inline Bytes raw(const std::string& text) {
    return as_bytes(text);
}
inline std::string length(std::uint32_t size) {
    return {reinterpret_cast<const char*>(&size), sizeof size};
}

// Somebody who has the cookie, and says what it likes.
struct Impostor {
    KeyPair keys;
    std::optional<Goodbye> meets(const std::string& address, Role role, Request request) const {
        const Raw socket(address);
        return asks(socket, role, std::move(request)) ? socket.goodbye() : std::nullopt;
    }
    // The node's first answer: a welcome, or why not.
    [[nodiscard]] ByteBuffer answer(const std::string& address, Role role, Request request) const {
        const Raw socket(address);
        return asks(socket, role, std::move(request)) ? socket.receive() : ByteBuffer();
    }

    // Of the node there, which gives ids: it proves its key to whoever wants to join.
    [[nodiscard]] wire::control::PublicKey key_of(const std::string& address) const {
        const auto welcome =
            decode<Welcome>(answer(address, Role::join, {.triple = {}, .address = unix_address(), .offer = {}}));
        EXPECT_TRUE(welcome);
        return welcome ? welcome->key : wire::control::PublicKey{};
    }

private:
    bool asks(const Raw& socket, Role role, Request request) const {
        Hello hello{.role = role};
        randombytes_buf(hello.nonce.bytes.data(), hello.nonce.bytes.size());
        socket.send(encode(hello));
        const auto challenge = decode<Challenge>(socket.receive());
        if (!challenge) return false;
        request.triple = "x86_64-linux-gnu";
        request.key = keys.key();
        request.signature = keys.sign(statement("peer", challenge->nonce, hello.nonce, socket.bound_there()));
        socket.send(encode(ProofGiven{}));
        socket.send(encode(request));
        return true;
    }
};

}  // namespace rove::test
