// Memory on other nodes.
#include <filesystem>
#include <numeric>

#include "nodes.hpp"

namespace rove::test {

double inner_product(std::span<const double> a, std::span<const double> b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}
void fill(std::span<double> a, double value) {
    std::fill(a.begin(), a.end(), value);
}

class Buffers : public OnFabrics {};
ROVE_ON_FABRICS(Buffers);

TEST_P(Buffers, OfEverySize) {
    for (const std::size_t n : {0UL, 1UL, 7UL, 1000UL, 2048UL, 100'000UL, 3'000'000UL}) {
        const Buffer<double> buffer = peer().allocate<double>(n).get();
        EXPECT_EQ(buffer.size(), n);
        EXPECT_EQ(buffer.node(), server_->id());
        std::vector<double> host(n), back(n, -1.0);
        peer().get(buffer, back).get();
        EXPECT_EQ(std::count(back.begin(), back.end(), 0.0), static_cast<std::ptrdiff_t>(n));  // zeroed
        std::iota(host.begin(), host.end(), 1.0);
        peer().put(host, buffer).get();
        peer().get(buffer, back).get();
        EXPECT_EQ(host, back) << n;
    }
}

TEST_P(Buffers, AreSpansThere) {
    const auto a = peer().allocate<double>(50'000).get(), b = peer().allocate<double>(50'000).get();
    peer().sync(fn<fill>, a, 2.0);
    const std::vector<double> host(50'000, 3.0);
    peer().put(host, b).get();
    EXPECT_EQ(peer().sync(fn<inner_product>, a, b), 300'000.0);
    EXPECT_EQ(peer().sync(fn<inner_product>, host, b), 450'000.0);  // one here, one there
    EXPECT_EQ(peer().sync(fn<inner_product>, a + 49'999, b + 49'999), 6.0);
    EXPECT_EQ(peer().sync(fn<inner_product>, a.subspan(10, 5), b.subspan(0, 5)), 30.0);
    EXPECT_EQ(peer().sync([](auto x) { return x.size(); }, a), 50'000U);
}

TEST_P(Buffers, PartsArePutAndRead) {
    const auto buffer = peer().allocate<int>(10'000).get();
    const std::vector<int> part{1, 2, 3};
    peer().put(part, buffer.subspan(5'000, 3)).get();
    std::vector<int> back(5);
    peer().get(buffer.subspan(4'999, 5), back).get();
    EXPECT_EQ(back, (std::vector<int>{0, 1, 2, 3, 0}));
    std::array<int, 3> array{7, 8, 9};
    when_all(peer().put(array, buffer), peer().put(std::span<const int>(part), buffer + 3)).get();
    std::vector<int> six(6);
    peer().get(buffer.subspan(0, 6), std::span(six)).get();
    EXPECT_EQ(six, (std::vector<int>{7, 8, 9, 1, 2, 3}));
}

TEST_P(Buffers, WrongUsesAreErrors) {
    const auto buffer = peer().allocate<int>(10).get();
    const std::vector<int> eleven(11);
    EXPECT_EQ(error_of([&] { peer().put(eleven, buffer).get(); }).code(), ErrorCode::invalid);
    std::vector<int> nine(9);
    EXPECT_EQ(error_of([&] { peer().get(buffer, nine).get(); }).code(), ErrorCode::invalid);
    EXPECT_EQ(error_of([&] { (void)(buffer + 11); }).code(), ErrorCode::invalid);
    EXPECT_EQ(error_of([&] { (void)buffer.subspan(5, 6); }).code(), ErrorCode::invalid);
    EXPECT_EQ(error_of([&] { (void)Buffer<int>().node(); }).code(), ErrorCode::invalid);
    EXPECT_EQ((buffer + 10).size(), 0U);

    // On another node than the one that owns it.
    Node other(started(options(true)));
    const Peer elsewhere = node_->connect(other.address());
    const Error error =
        error_of([&] { (void)elsewhere.sync([](std::span<const int> s) { return s.size(); }, buffer); });
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_NE(error.message().find("another node"), std::string::npos) << error.message();
}

TEST_P(Buffers, AreFreedByTheLastWhoHasThem) {
    NodeOptions small = options(true);
    small.buffer_bytes_max = 1'000'000;
    Node server(started(small));
    const Peer peer = node_->connect(server.address());
    {
        const auto whole = peer.allocate<char>(600'000).get();
        const auto part = whole + 599'999;
        EXPECT_EQ(error_of([&] { (void)peer.allocate<char>(600'000).get(); }).code(), ErrorCode::overloaded);
    }
    const auto again = peer.allocate<char>(600'000).get();
    EXPECT_EQ(again.size(), 600'000U);
    EXPECT_EQ(error_of([&] { (void)peer.allocate<double>(std::size_t{1} << 62U); }).code(), ErrorCode::invalid);
}

TEST_P(Buffers, GoWithTheProcessThatAllocatedThem) {
    NodeOptions small = options(true);
    small.buffer_bytes_max = 1'000'000;
    Node server(started(small));
    {
        Node other(started(options()));
        auto* forgotten = new Buffer<char>(other.connect(server.address()).allocate<char>(900'000).get());
        static_cast<void>(forgotten);  // as by a process that ends without a word
        (void)other.connect(server.address()).sync([] { return 1; });
        std::unique_ptr<Buffer<char>> kept(forgotten);
    }
    const Peer peer = node_->connect(server.address());
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
        try {
            (void)peer.allocate<char>(900'000).get();
            break;
        } catch (const Error&) {
            ASSERT_LT(std::chrono::steady_clock::now(), limit);
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }
}

TEST_P(Buffers, AreCopiedBetweenNodes) {
    NodeOptions joining = options(true);
    joining.join = server_->address();
    Node second(started(joining));          // a member: copies go straight
    Node stranger(started(options(true)));  // none: copies go through here
    const Peer to = node_->connect(second.address()), far = node_->connect(stranger.address());
    for (const std::size_t n : {1UL, 1000UL, 5'000'000UL}) {
        std::vector<int> host(n), back(n);
        std::iota(host.begin(), host.end(), 5);
        const auto a = peer().allocate<int>(n).get(), b = to.allocate<int>(n).get(), c = far.allocate<int>(n).get(),
                   d = peer().allocate<int>(n).get();
        peer().put(host, a).get();
        copy(a, b).get();
        copy(b, c).get();
        copy(c, d).get();
        copy(d, d).get();
        peer().get(d, back).get();
        EXPECT_EQ(back, host) << n;
        std::fill(back.begin(), back.end(), 0);
        to.get(b, back).get();
        EXPECT_EQ(back, host) << n;
    }
    const auto small = peer().allocate<int>(2).get(), large = to.allocate<int>(3).get();
    EXPECT_EQ(error_of([&] { copy(large, small).get(); }).code(), ErrorCode::invalid);
}

// What a caller who is not Rove's own template could ask for: the node checks it, too.
TEST_P(Buffers, BytesBeyondABufferAreInvalid) {
    const auto buffer = peer().allocate<char>(100'000).get(), other = peer().allocate<char>(100'000).get();
    std::vector<std::byte> bytes(1);
    constexpr std::uint64_t kEnd = 100'000, kFarAway = ~std::uint64_t{0} - 7;
    for (const std::uint64_t offset : {kEnd, kEnd + 1, kFarAway}) {
        EXPECT_EQ(error_of([&] { detail::Access::memory(buffer).put(offset, bytes).get(); }).code(), ErrorCode::invalid)
            << offset;
        EXPECT_EQ(error_of([&] { detail::Access::memory(buffer).get(offset, bytes).get(); }).code(), ErrorCode::invalid)
            << offset;
        EXPECT_EQ(
            error_of([&] {
                detail::Memory::copy(detail::Access::memory(buffer), offset, detail::Access::memory(other), 0, 1).get();
            }).code(),
            ErrorCode::invalid)
            << offset;
        EXPECT_EQ(
            error_of([&] {
                detail::Memory::copy(detail::Access::memory(buffer), 0, detail::Access::memory(other), offset, 1).get();
            }).code(),
            ErrorCode::invalid)
            << offset;
    }
    // Of no bytes, but from beyond the end.
    EXPECT_EQ(
        error_of([&] {
            detail::Memory::copy(detail::Access::memory(buffer), kEnd + 1, detail::Access::memory(other), 0, 0).get();
        }).code(),
        ErrorCode::invalid);
    detail::Memory::copy(detail::Access::memory(buffer), kEnd, detail::Access::memory(other), kEnd, 0).get();
}

TEST_P(Buffers, UseNoDescriptorEach) {
    const auto descriptors = [] {
        return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                             std::filesystem::directory_iterator());
    };
    const auto before = descriptors();
    // Not mapped yet: nobody has taken the results.
    std::vector<Call<Buffer<int>>> calls;
    for (int i = 0; i < 1500; ++i) calls.push_back(peer().allocate<int>(5000));
    (void)peer().sync([] { return 1; });
    EXPECT_LE(descriptors(), before + 300);
    std::vector<Buffer<int>> buffers;
    for (auto& call : calls) buffers.push_back(call.get());
    for (int i = 0; i < 1500; ++i) peer().put(std::array{i}, buffers[static_cast<std::size_t>(i)]).get();
    for (int i = 0; i < 1500; ++i) {
        std::array<int, 1> back{-1};
        peer().get(buffers[static_cast<std::size_t>(i)].subspan(0, 1), back).get();
        ASSERT_EQ(back[0], i);
    }
    (void)peer().sync([] { return 1; });
    EXPECT_LE(descriptors(), before + 20);
}

// However its Call ends without it: dropped before or after the answer has come, cancelled, or late.
TEST_P(Buffers, MemoryThatNobodyTakesIsFreed) {
    using namespace std::chrono_literals;
    NodeOptions little = options(true);
    little.buffer_bytes_max = 64UL << 20U;
    Node server(started(little));
    const Peer to = node_->connect(server.address());
    constexpr std::size_t kBytes = 1 << 20;
    for (int i = 0; i < 200; ++i) {
        Call<Buffer<char>> call = to.allocate<char>(kBytes);
        if (i % 4 == 1) ASSERT_TRUE(call.wait_for(20s));
        if (i % 4 == 2) call.cancel();
        if (i % 4 == 3) try {
                (void)to.allocate<char>(within(20us), kBytes).get();
            } catch (const Error&) {
            }
        if (i % 16 == 15) (void)to.ping().get();
    }
    (void)to.ping().get();
    EXPECT_EQ(to.allocate<char>(within(20s), 60 * kBytes).get().size(), 60 * kBytes);
}

TEST_P(Buffers, TransfersTakeATime) {
    using namespace std::chrono_literals;
    const auto a = peer().allocate<int>(within(10s), 1000).get(), b = peer().allocate<int>(within(10s), 1000).get();
    const std::vector<int> host(1000, 7);
    std::vector<int> back(1000);
    peer().put(within(10s), host, a).get();
    copy(within(10s), a, b).get();
    peer().get(within(10s), b, back).get();
    EXPECT_EQ(back, host);
    EXPECT_EQ(error_of([&] { peer().put(within(0ms), host, a).get(); }).code(), ErrorCode::timed_out);
    EXPECT_EQ(error_of([&] { peer().get(within(0ms), a, back).get(); }).code(), ErrorCode::timed_out);
}

TEST_P(Buffers, GoWithTheLinkAndSaySo) {
    auto second = std::make_unique<Node>(started(options(true)));
    const std::string address = second->address();
    const Peer to = node_->connect(address);
    const auto small = to.allocate<int>(10).get(), large = to.allocate<int>(100'000).get();
    second.reset();
    const std::vector<int> host(10);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (bool gone = false; !gone;) {
        ASSERT_LT(std::chrono::steady_clock::now(), limit);
        try {
            to.put(host, large).get();
        } catch (const Error& error) {
            gone = true;
            EXPECT_EQ(error.code(), ErrorCode::disconnected) << error.message();
        }
    }
    NodeOptions again = options(true);
    again.listen = address;
    Node third(started(again));
    EXPECT_EQ(to.sync([] { return 5; }), 5);  // met again
    for (const auto& buffer : {small, large}) {
        const Error put = error_of([&] { to.put(host, buffer).get(); });
        EXPECT_EQ(put.code(), ErrorCode::disconnected);
        EXPECT_NE(put.message().find("met again since"), std::string::npos) << put.message();
        const Error passed = error_of([&] { (void)to.sync([](std::span<const int> s) { return s.size(); }, buffer); });
        EXPECT_EQ(passed.code(), ErrorCode::disconnected);
    }
}

TEST_P(Buffers, CanBeAwaited) {
    const auto task = [](Peer peer) -> Task<double> {
        const Buffer<double> a = co_await peer.allocate<double>(1000);
        co_await peer.put(std::vector<double>(1000, 0.5), a);
        co_return co_await peer.async(fn<inner_product>, a, a);
    };
    EXPECT_EQ(sync_wait(task(peer())), 250.0);
}

}  // namespace rove::test
