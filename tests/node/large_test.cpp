// Large arguments and results: of every size around the places where they travel differently, as every type that is sent in its place,
// both ways and on every fabric.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "../api/error_of.hpp"
#include "../api/nodes.hpp"
#include "api/access.hpp"
#include "engine/here.hpp"
#include "engine/pieces.hpp"
#include "engine_view.hpp"
#include "known_values.hpp"
#include "node/core.hpp"
#include "one_engine.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;

std::size_t take_text(const std::string& text) {
    return first_wrong(text);
}
std::size_t take_odd(const std::vector<Odd>& values) {
    return first_wrong(values);
}
std::size_t take_view(std::span<const double> values) {
    return first_wrong(std::vector<double>(values.begin(), values.end()));
}
std::size_t take_text_view(std::string_view text) {
    return first_wrong(std::string(text));
}
std::string give_text(std::size_t count) {
    return made<std::string>(count);
}
std::vector<Odd> give_odd(std::size_t count) {
    return made<std::vector<Odd>>(count);
}
std::string echo(std::string text) {
    return text;
}
std::string onward(Here& here, const std::string& text) {
    return here.peer(here.node()).sync(fn<echo>, text);
}
std::string by_the_caller(Here& here, const std::string& text) {
    return here.caller().sync(fn<echo>, text);
}
std::size_t take_many(const std::string& a, int b, std::string_view c, const std::vector<double>& d,
                      const std::string& e, const std::vector<Odd>& f, char g, const std::string& h,
                      const std::string& i, const std::string& j, const std::string& k, const std::string& l,
                      const std::string& m) {
    std::size_t right = 0;
    for (const std::string& each : {a, e, h, i, j, k, l, m}) right += first_wrong(each) == each.size() ? 1 : 0;
    right += first_wrong(std::string(c)) == c.size() ? 1 : 0;
    right += first_wrong(d) == d.size() ? 1 : 0;
    right += first_wrong(f) == f.size() ? 1 : 0;
    return right + static_cast<std::size_t>(b) + static_cast<std::size_t>(g);
}
std::vector<std::string> give_many(std::size_t count, std::size_t bytes) {
    return std::vector<std::string>(count, made<std::string>(bytes));
}

class Large : public OnFabrics {
protected:
    // Where frames, parts and what is copied begin and end, and the limit.
    static std::vector<std::size_t> sizes() {
        std::vector<std::size_t> all{0, 1, 1000};
        for (const std::size_t at : {wire::kPartBytesMax, wire::kPayloadBytesMax, wire::kFrameBytesMax,
                                     3 * wire::kPartBytesMax, 16 * wire::kPartBytesMax, std::size_t{4'000'000}})
            for (const std::size_t near :
                 {std::size_t{24}, std::size_t{9}, std::size_t{8}, std::size_t{7}, std::size_t{1}, std::size_t{0}}) {
                all.push_back(at - near);
                all.push_back(at + near);
            }
        return all;
    }
    static constexpr std::size_t kMost = wire::kMessageBytesMax - sizeof(std::uint64_t);
};

TEST_P(Large, TextsOfEverySize) {
    for (const std::size_t size : sizes()) {
        ASSERT_EQ(peer().sync(fn<take_text>, made<std::string>(size)), size);
        ASSERT_EQ(peer().sync(fn<take_text_view>, made<std::string>(size)), size);
        const std::string back = peer().sync(fn<give_text>, size);
        ASSERT_EQ(back.size(), size);
        ASSERT_EQ(first_wrong(back), size);
    }
}

TEST_P(Large, ValuesOfEverySize) {
    for (const std::size_t size : sizes()) {
        const std::size_t odd = size / sizeof(Odd), doubles = size / sizeof(double);
        ASSERT_EQ(peer().sync(fn<take_odd>, made<std::vector<Odd>>(odd)), odd);
        ASSERT_EQ(peer().sync(fn<take_view>, made<std::vector<double>>(doubles)), doubles);
        const std::vector<Odd> back = peer().sync(fn<give_odd>, odd);
        ASSERT_EQ(back.size(), odd);
        ASSERT_EQ(first_wrong(back), odd);
    }
}

TEST_P(Large, UpToTheLimitAndNoFurther) {
    EXPECT_EQ(peer().sync(fn<take_text>, made<std::string>(kMost)), kMost);
    EXPECT_EQ(first_wrong(peer().sync(fn<give_text>, kMost)), kMost);
    EXPECT_EQ(error_of([&] { (void)peer().sync(fn<take_text>, std::string(kMost + 1, 'a')); }).code(),
              ErrorCode::invalid);
    EXPECT_EQ(error_of([&] { (void)peer().sync(fn<give_text>, kMost + 1); }).code(), ErrorCode::invalid);
    EXPECT_EQ(peer().sync(fn<take_text>, made<std::string>(10)), 10U);
}

// Results that are asked for later, or not at all: they wait for whoever takes them.
TEST_P(Large, ResultsThatNobodyWaitsForYet) {
    auto first = peer().async(fn<give_text>, std::size_t{5'000'000});
    auto second = peer().async(fn<give_odd>, std::size_t{300'000});
    (void)peer().async(fn<give_text>, std::size_t{5'000'000});
    while (!first.done() || !second.done()) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(first_wrong(second.get()), 300'000U);
    EXPECT_EQ(first_wrong(first.get()), 5'000'000U);
    auto half = peer().async(fn<give_text>, wire::kMessageBytesMax / 2);
    (void)half.wait_for(1us);  // some of its parts may have come
    EXPECT_EQ(first_wrong(half.get()), wire::kMessageBytesMax / 2);
}

TEST_P(Large, SeveralInOneCall) {
    const auto text = [](std::size_t size) { return made<std::string>(size); };
    EXPECT_EQ(peer().sync(fn<take_many>, text(300'000), 10, text(299'999), made<std::vector<double>>(50'000), text(3),
                          made<std::vector<Odd>>(33'333), char{20}, text(262'144), text(262'143), text(262'145),
                          text(1'000'000), text(400'000), text(500'000)),
              11U + 10U + 20U);
    // More than are left in their place.
    const std::vector<std::string> many = peer().sync(fn<give_many>, std::size_t{12}, std::size_t{300'000});
    ASSERT_EQ(many.size(), 12U);
    for (const std::string& each : many) EXPECT_EQ(first_wrong(each), 300'000U);
}

TEST_P(Large, FromWithinFunctions) {
    const auto text = made<std::string>(3'000'000);
    EXPECT_EQ(peer().sync(fn<by_the_caller>, text), text);
    EXPECT_EQ(peer().sync(fn<onward>, text), text) << "to the node that it runs on";
}

TEST_P(Large, ManyAtOnce) {
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (std::size_t i = 0; i < 6; ++i) {
                const std::size_t size = 300'000 * (t + 1) + i * 100'001;
                const bool there = peer().sync(fn<take_text>, made<std::string>(size)) == size;
                const bool back = first_wrong(peer().sync(fn<give_odd>, size / sizeof(Odd))) == size / sizeof(Odd);
                right += there && back ? 1 : 0;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, 24);
}

TEST_P(Large, PutAndGet) {
    for (const std::size_t count : {1UL, 60'000UL, 2'000'003UL}) {
        const auto values = made<std::vector<Odd>>(count);
        std::vector<Odd> back(count);
        const auto buffer = peer().allocate<Odd>(count).get();
        peer().put(values, buffer).get();
        peer().get(buffer, back).get();
        EXPECT_EQ(first_wrong(back), count);
    }
}

// A client that goes in the middle of a large call takes nobody along, and gives back the room that its payload took.
NodeCore* core_of_server = nullptr;
void core_here(Here& here) {
    core_of_server = &here.raw()->node();
}
// They look at the node's engine, or count its places.
class LargeOfOneEngine : public Large {};
ROVE_ON_THESE_FABRICS(LargeOfOneEngine, kFabricsWithOneEngine);

TEST_P(LargeOfOneEngine, ClientsThatGoInTheMiddle) {
    peer().sync(fn<core_here>);
    const auto text = made<std::string>(20'000'000);
    int in_the_middle = 0;
    for (int i = 0; i < 10; ++i) {
        Node guest(started(options()));
        const Peer to = guest.connect(server_->address());
        std::atomic<bool> ended{false};
        std::thread sending([&] {
            try {
                (void)to.sync(fn<echo>, text);
            } catch (const Error&) {  // cut off, or cancelled
            }
            ended = true;
        });
        while (!ended && EngineView::staged_bytes(core_of_server->first_engine()) == 0) std::this_thread::yield();
        in_the_middle += ended ? 0 : 1;
        {
            const Node gone = std::move(guest);
        }
        sending.join();
        ASSERT_TRUE(soon([] { return EngineView::staged_bytes(core_of_server->first_engine()) == 0; }))
            << "its room stays taken";
    }
    EXPECT_GT(in_the_middle, 0);
    EXPECT_EQ(peer().sync(fn<echo>, text), text);
}

ROVE_ON_FABRICS(Large);
// Its parts are as large as its own frames.
INSTANTIATE_TEST_SUITE_P(Trusted, Large, testing::Values(kUcx), fabric_name);

// ---- a container that is filled as its bytes come

template <typename C>
bool gathers(const C& values, std::size_t part_bytes, std::size_t total_off = 0) {
    std::vector<std::byte> bytes;
    detail::travel::Output out(bytes);
    detail::travel::write(out, values);
    detail::travel::Gathering<C> gathering;
    for (std::size_t at = 0; at < bytes.size(); at += part_bytes) {
        const std::size_t size = std::min(part_bytes, bytes.size() - at);
        if (detail::travel::Gathering<C>::take(&gathering, bytes.data() + at, size, bytes.size() + total_off) == 0)
            return false;
    }
    return gathering.value() == values;
}

TEST(Gathering, InPartsOfEverySize) {
    for (std::size_t part = 1; part < 40; ++part) {
        EXPECT_TRUE(gathers(made<std::string>(1000), part)) << part;
        EXPECT_TRUE(gathers(made<std::vector<Odd>>(100), part)) << part;
        EXPECT_TRUE(gathers(std::vector<double>(), part)) << part;
    }
}

TEST(Gathering, RefusesWhatIsNoSuchContainer) {
    EXPECT_FALSE(gathers(made<std::vector<Odd>>(10), 64, 1)) << "more bytes than its values have";
    EXPECT_FALSE(gathers(made<std::vector<Odd>>(10), 64, sizeof(Odd)));
    detail::travel::Gathering<std::string> cut;
    const std::uint64_t count = 1000;
    EXPECT_EQ(detail::travel::Gathering<std::string>::take(&cut, &count, sizeof count, 1008), 1);
    EXPECT_EQ(error_of([&] { (void)cut.value(); }).code(), ErrorCode::invalid) << "its bytes did not come";
    detail::travel::Gathering<std::string> beyond;
    const std::uint64_t all = ~std::uint64_t{0};
    EXPECT_EQ(detail::travel::Gathering<std::string>::take(&beyond, &all, sizeof all, 1008), 0);
    std::vector<char> more(1001);
    detail::travel::Gathering<std::string> longer;
    EXPECT_EQ(detail::travel::Gathering<std::string>::take(&longer, &count, sizeof count, 1008), 1);
    EXPECT_EQ(detail::travel::Gathering<std::string>::take(&longer, more.data(), more.size(), 1008), 0);
}

// ---- what is left in its place

TEST(Output, NamesWhatIsLargeAndLastsAtItsPlace) {
    const auto large = made<std::string>(detail::travel::kInPlaceBytesMin);
    std::vector<std::byte> bytes;
    detail::travel::Output out(bytes);
    out.write("ab", 2);
    for (std::size_t i = 0; i < detail::travel::kInPlaceMax + 2; ++i) {
        out.write_lasting(large.data(), large.size());
        out.write_lasting("c", 1);
        out.align(8);
    }
    const detail::travel::Output::Whole whole = out.whole();
    EXPECT_LT(bytes.size(), 3 * large.size()) << "they were copied";
    ByteBuffer room;
    const Bytes joined = Pieces(whole.all()).joined(room);
    ASSERT_EQ(joined.size(), out.size());
    std::string expected = "ab";
    for (std::size_t i = 0; i < detail::travel::kInPlaceMax + 2; ++i) {
        expected += large + "c";
        expected.resize((expected.size() + 7) / 8 * 8);
    }
    EXPECT_TRUE(as_text(joined) == expected);
    std::string parts;
    EXPECT_TRUE(Pieces(whole.all()).each_part(1000, [&](std::size_t offset, Bytes part) {
        EXPECT_EQ(offset, parts.size());
        EXPECT_LE(part.size(), 1000U);
        EXPECT_FALSE(part.empty());
        parts += as_text(part);
        return true;
    }));
    EXPECT_TRUE(parts == expected);
}

}  // namespace
}  // namespace rove::test
