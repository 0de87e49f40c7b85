#include "fabrics.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <chrono>

#include "base/descriptor.hpp"
#include "fabric/local.hpp"
#include "fabric/loopback/chaos.hpp"
#include "fabric/loopback/loopback.hpp"
#include "fabric/ucx/ucx_fabric.hpp"

namespace rove::fabric {
namespace {

template <typename Open>
TestFabric two(std::string name, Open open) {
    return {std::move(name), [open] {
                auto exchange = std::make_shared<Exchange>();
                auto a = open(exchange);
                auto b = open(exchange);
                if (!a || !b) throw std::runtime_error(a ? b.error().message() : a.error().message());
                return std::pair(std::move(*a), std::move(*b));
            }};
}

TestFabric chaos(std::string name, std::uint64_t salt, ChaosOptions options) {
    options.seed = test::seed() + salt;
    return two(std::move(name), [options](const auto& exchange) { return open_chaos_fabric(exchange, options); });
}

TestFabric ucx(std::string name, UcxOptions options) {
    return two(std::move(name), [options](const auto&) { return open_ucx_fabric(options); });
}

TestFabric stream(std::string name, std::function<std::array<int, 2>()> connect) {
    TestFabric fabric = two(std::move(name), [](const auto&) { return open_local_fabric({.direct = false}); });
    fabric.connect = std::move(connect);
    fabric.tells_of_the_end = true;
    fabric.gives_memory_back = true;
    return fabric;
}

TestFabric direct() {
    TestFabric fabric = two("direct", [](const auto&) { return open_local_fabric({}); });
    fabric.gives_memory_back = true;
    return fabric;
}

constexpr std::uint64_t mixed(std::uint64_t number, std::size_t word) {
    std::uint64_t x = number * 0x9E3779B97F4A7C15U + word;
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    return x ^ (x >> 27U);
}

// Even words look like a signal of one of the next frames: number, one line, a call.
constexpr std::uint64_t word_of(std::uint64_t number, std::size_t word) {
    if (word % 2 != 0) return mixed(number, word);
    return ((number + 1 + mixed(number, word) % 4096) & 0xFFFF'FFFFU) | (std::uint64_t{1} << 32U) |
           (std::uint64_t{2} << 48U);
}

}  // namespace

const std::vector<TestFabric>& test_fabrics() {
    static const std::vector<TestFabric> fabrics = {
        two("loopback", [](const auto& exchange) { return LoopbackFabric::open(exchange); }),
        chaos("chaos", 0, {}),
        chaos("chaos_slow", 1, {.piece_bytes_max = 512, .pieces_per_turn_max = 16, .credit_turns_max = 100}),
        chaos("chaos_pieces", 2, {.piece_bytes_max = 65536, .pieces_per_turn_max = 4}),
        direct(),
        stream("stream_unix", &socket_pair),
        stream("stream_tcp", &tcp_pair),
        ucx("ucx_shm", {.shm = true, .tcp = false}),
        ucx("ucx_tcp", {.shm = false, .tcp = true}),
    };
    return fabrics;
}

std::vector<TestFabric> fabrics_with_cold_links() {
    std::vector<TestFabric> fabrics = test_fabrics();
    std::erase_if(fabrics, [](const TestFabric& each) { return each.name.starts_with("ucx"); });
    return fabrics;
}

void fill(std::span<std::byte> payload, std::uint64_t number) {
    for (std::size_t at = 0; at < payload.size(); at += 8) {
        const std::uint64_t word = word_of(number, at / 8);
        std::memcpy(payload.data() + at, &word, std::min<std::size_t>(8, payload.size() - at));
    }
}

bool is_filled(Bytes payload, std::uint64_t number) {
    for (std::size_t at = 0; at < payload.size(); at += 8) {
        const std::uint64_t word = word_of(number, at / 8);
        if (std::memcmp(payload.data() + at, &word, std::min<std::size_t>(8, payload.size() - at)) != 0) return false;
    }
    return true;
}

void TwoFabrics::SetUp() {
    std::tie(fabric_a, fabric_b) = GetParam().open();
}

std::array<int, 2> socket_pair() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0)
        throw std::runtime_error("no socket pair");
    return ends;
}

std::array<int, 2> tcp_pair() {
    const Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    Descriptor caller(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener.number(), any, size) != 0 || listen(listener.number(), 1) != 0 ||
        getsockname(listener.number(), any, &size) != 0 || connect(caller.number(), any, size) != 0)
        throw std::runtime_error("no TCP connection");
    const int accepted = accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    fcntl(caller.number(), F_SETFL, O_NONBLOCK);
    const int calling = fcntl(caller.number(), F_DUPFD_CLOEXEC, 0);
    return {calling, accepted};
}

Joined TwoFabrics::join() {
    if (GetParam().connect) {
        const auto [first, second] = GetParam().connect();
        auto a = fabric_a->open_stream(first, kTestKeys);
        auto b = fabric_b->open_stream(second, kOtherTestKeys);
        if (!a || !b) throw std::runtime_error("no stream");
        return {std::move(*a), std::move(*b)};
    }
    auto a = fabric_a->open_link();
    auto b = fabric_b->open_link();
    if (!a || !b) throw std::runtime_error("no link");
    for (const Status& status : {(*a)->connect((*b)->offer()), (*b)->connect((*a)->offer())})
        if (!status) throw std::runtime_error(status.error().message());
    return {std::move(*a), std::move(*b)};
}

bool TwoFabrics::until(const std::function<bool()>& done) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
        if (std::chrono::steady_clock::now() > limit) return false;
        progress();
    }
    return true;
}

bool send(Link& link, Traffic traffic, std::uint64_t number, std::size_t payload_bytes) {
    std::byte* frame = link.reserve(traffic, wire::kHeaderBytes + payload_bytes);
    if (frame == nullptr) return false;
    EXPECT_EQ(0U, reinterpret_cast<std::uintptr_t>(frame) % wire::kLineBytes);
    fill({frame + wire::kHeaderBytes, payload_bytes}, number);
    wire::FrameHeader header;
    header.kind = traffic == Traffic::calls ? wire::Kind::call : wire::Kind::reply;
    header.flags = static_cast<std::uint8_t>(number % 8);
    header.body_bytes = static_cast<std::uint32_t>(payload_bytes);
    header.handle = static_cast<std::uint32_t>(number);
    link.publish(traffic, header);
    return true;
}

bool take(Link& link, Traffic traffic, std::uint64_t number) {
    wire::Frame frame;
    if (!link.next(traffic, frame)) return false;
    EXPECT_EQ(static_cast<std::uint32_t>(number), frame.header.handle);
    EXPECT_EQ(number % 8, frame.header.flags);
    EXPECT_EQ(traffic == Traffic::calls ? wire::Kind::call : wire::Kind::reply, frame.header.kind);
    EXPECT_TRUE(is_filled(frame.payload, number)) << number << ", " << frame.payload.size() << " bytes";
    link.release(traffic);
    return true;
}

}  // namespace rove::fabric
