// Functions that read their large payloads out of the mailbox while these arrive: that they do where they may and nowhere else, and that what
// they get is right.
#include "engine/gathering.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <thread>

#include "gathered.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;

std::size_t take_text(const std::string& text) {
    return is_right(text) ? text.size() : SIZE_MAX;
}
std::size_t take_wide(const std::u16string& text) {
    return is_right(text) ? text.size() : SIZE_MAX;
}
std::size_t take_doubles(const std::vector<double>& values) {
    return is_right(values) ? values.size() : SIZE_MAX;
}
std::size_t take_three(int number, const std::string& text, bool flag, const std::vector<Odd>& values) {
    return is_right(text) && is_right(values) && flag ? text.size() + values.size() + static_cast<std::size_t>(number)
                                                      : SIZE_MAX;
}
std::size_t take_in_worker(Here& here, const std::string& text) {
    return here.node() == 0 && is_right(text) ? text.size() : SIZE_MAX;
}

class Gathers : public OnFabrics {
protected:
    void SetUp() override {
        OnFabrics::SetUp();
        peer().sync(fn<note_server>);
        core_ = core_of_server;
    }
    [[nodiscard]] std::uint64_t gathered() const { return core_->first_engine().gatherings().done(); }
    // Calls until one of them was read as it arrived: a thread of the node's may be on its way for some time.
    template <typename F, typename... Args>
    void reads(std::size_t result, const F& function, const Args&... args) {
        const std::uint64_t before = gathered();
        EXPECT_TRUE(soon([&] {
            EXPECT_EQ(peer().sync(function, args...), result);
            return gathered() > before;
        }));
    }
    NodeCore* core_ = nullptr;
};

TEST_P(Gathers, WhatTheyGetIsRight) {
    for (const std::size_t near : {wire::kPayloadBytesMax, wire::kFrameBytesMax, 5 * wire::kPartBytesMax})
        for (const std::size_t more : {1, 7, 8, 9, 63, 1000, 65'536}) {
            const std::size_t size = near + more;
            reads(size, fn<take_text>, made<std::string>(size));
            reads(size / 2, fn<take_wide>, made<std::u16string>(size / 2));
            reads(size / 8 + 8, fn<take_doubles>, made<std::vector<double>>(size / 8 + 8));
            for (const std::size_t first : {std::size_t{0}, std::size_t{5}, size})
                reads(first + size / 12 + 3, fn<take_three>, 3, made<std::string>(first), true,
                      made<std::vector<Odd>>(size / 12));
        }
    reads(3'000'000, on_worker(fn<take_in_worker>), made<std::string>(3'000'000));
    reads(3'000'000, no_nesting(fn<take_text>), made<std::string>(3'000'000));
    reads(
        3'000'000 + 2, [n = std::size_t{2}](const std::string& text) { return text.size() + n; },
        made<std::string>(3'000'000));
    EXPECT_EQ(core_->first_engine().gatherings().running(), 0U);
}

// Not the first call, which names the function, and nothing that fits a frame.
TEST_P(Gathers, OnlyWhatIsLargeAndOfAFunctionThatHasSaidSo) {
    EXPECT_EQ(peer().sync(fn<take_text>, made<std::string>(1'000'000)), 1'000'000U);
    EXPECT_EQ(peer().sync(fn<take_text>, made<std::string>(100'000)), 100'000U);
    EXPECT_EQ(peer().sync([](std::string_view text) { return text.size(); }, std::string(1'000'000, 'a')), 1'000'000U);
    EXPECT_EQ(gathered(), 0U);
}

// What fails while it is read fails its call, and nothing else.
std::atomic<bool> has_no_memory{false}, ends_thread{false};
template <typename T>
struct Scarce : std::allocator<T> {
    Scarce() = default;
    template <typename U>
    explicit Scarce(const Scarce<U>& /*other*/) {}
    template <typename U>
    struct rebind {
        using other = Scarce<U>;
    };
    T* allocate(std::size_t count) {
        if (has_no_memory) throw std::bad_alloc();
        if (ends_thread) pthread_exit(nullptr);
        return std::allocator<T>::allocate(count);
    }
};
using ScarceText = std::vector<char, Scarce<char>>;
std::size_t take_scarce(const std::string& /*before*/, const ScarceText& text) {
    return is_right(text) ? text.size() : SIZE_MAX;
}

TEST_P(Gathers, WithoutMemoryTheCallFails) {
    const auto text = made<ScarceText>(2'000'000);
    const auto before = made<std::string>(200'000);
    reads(2'000'000, fn<take_scarce>, before, text);
    const std::uint64_t so_far = gathered();
    has_no_memory = true;
    EXPECT_TRUE(soon([&] {
        EXPECT_EQ(error_of([&] { (void)peer().sync(fn<take_scarce>, before, text); }).code(), ErrorCode::failed);
        return gathered() > so_far;
    }));
    has_no_memory = false;
    reads(2'000'000, fn<take_scarce>, before, text);
}

TEST_P(Gathers, OneThatEndsItsThreadFails) {
    const auto text = made<ScarceText>(2'000'000);
    const auto before = made<std::string>(200'000);
    reads(2'000'000, fn<take_scarce>, before, text);
    const std::uint64_t so_far = gathered();
    ends_thread = true;
    EXPECT_TRUE(soon([&] {
        const Error error = error_of([&] { (void)peer().sync(within(30s), fn<take_scarce>, before, text); });
        EXPECT_NE(error.message().find("wanted to end its thread"), std::string::npos) << error.message();
        return gathered() > so_far;
    }));
    ends_thread = false;
    reads(2'000'000, fn<take_scarce>, before, text);
    EXPECT_EQ(peer().sync(within(30s), fn<add>, 2, 3), 5);
}

TEST_P(Gathers, FromSeveralThreadsAndPeers) {
    reads(1'000'000, fn<take_text>, made<std::string>(1'000'000));
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    std::vector<std::unique_ptr<Node>> nodes;
    for (int i = 0; i < 3; ++i) nodes.push_back(std::make_unique<Node>(started(options())));
    for (std::size_t t = 0; t < 6; ++t)
        threads.emplace_back([&, t] {
            const Peer to = nodes[t % 3]->connect(server_->address());
            for (std::size_t i = 0; i < 12; ++i) {
                const std::size_t size = 300'000 * (t + 1) + i * 100'001;
                right += to.sync(fn<take_text>, made<std::string>(size)) == size ? 1 : 0;
                right += to.sync(fn<add>, static_cast<int>(i), 1) == static_cast<int>(i) + 1 ? 1 : 0;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, 6 * 12 * 2);
    EXPECT_EQ(core_->first_engine().gatherings().running(), 0U);
}

// Elsewhere nothing is read as it arrives (GathersNot).
ROVE_ON_DIRECT_FABRICS(Gathers);

// Where nobody could serve the others at that time, or what arrives is not in memory that the sender writes.
class GathersNot : public OnFabrics {
protected:
    void SetUp() override {}
};
ROVE_ON_FABRICS(GathersNot);

TEST_P(GathersNot, WithOneThreadOrInMessages) {
    NodeOptions serving = options(true);
    serving.threads = GetParam().lane == "direct" ? 1 : 4;
    NodeOptions alone = options();
    alone.threads = serving.threads;
    Node server(started(serving)), node(started(alone));
    const Peer to = node.connect(server.address());
    to.sync(fn<note_server>);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(to.sync(fn<take_text>, made<std::string>(1'000'000)), 1'000'000U);
    EXPECT_EQ(core_of_server.load()->first_engine().gatherings().done(), 0U);
}

}  // namespace
}  // namespace rove::test
