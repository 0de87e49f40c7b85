// Functions that read their large payloads out of the mailbox while these arrive: that they do where they may and nowhere else, that what they
// get is right, and what becomes of them where the sender does not go on as it should.
#include "engine/gathering.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "engine/here.hpp"
#include "hand_made.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;
using fabric::Traffic;
using wire::Kind;

struct Odd {  // a part holds no whole number of them
    std::uint32_t a, b, c;
    bool operator==(const Odd&) const = default;
};
template <typename T>
T value_at(std::size_t i) {
    if constexpr (std::is_same_v<T, Odd>)
        return {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i * 7), static_cast<std::uint32_t>(~i)};
    else {
        const std::size_t value = i * 31 + i / 251;
        return static_cast<T>(value);
    }
}
template <typename C>
C made(std::size_t count) {
    C values(count, typename C::value_type{});
    for (std::size_t i = 0; i < count; ++i) values[i] = value_at<typename C::value_type>(i);
    return values;
}
template <typename C>
bool is_right(const C& values) {
    for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i] != value_at<typename C::value_type>(i)) return false;
    return true;
}

std::atomic<NodeCore*> core_of_server{nullptr};
void note_server(Here& here) {
    core_of_server = &here.raw()->node();
}

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

// What ran, in its order.
std::mutex noted_mutex;
std::vector<int> noted;
void note(int what) {
    const std::lock_guard lock(noted_mutex);
    noted.push_back(what);
}
void forget_noted() {
    const std::lock_guard lock(noted_mutex);
    noted.clear();
}
std::vector<int> all_noted() {
    const std::lock_guard lock(noted_mutex);
    return noted;
}
std::atomic<bool> began_as_long{false}, got_wrong{false}, text_waits{false}, told{false};
// Not at once, so that what overtakes it is seen; and before the look at all of it, which may take as long as a leader may be in a
// function.
void note_text(Here& here, const std::string& text) {
    began_as_long = here.raw()->function->pace.is_long();
    for (const auto until = Clock::now() + 200us; Clock::now() < until;) continue;
    note(static_cast<int>(text.size()));
    while (text_waits && !told) std::this_thread::sleep_for(1ms);
    if (!is_right(text)) got_wrong = true;
}
std::atomic<int> held{0};
void hold() {
    ++held;
    while (!told) std::this_thread::sleep_for(1ms);
}
std::atomic<int> nap_ms{50};
void nap() {
    std::this_thread::sleep_for(std::chrono::milliseconds(nap_ms));
    note(-1);
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

// Where nobody could serve the others meanwhile, or what arrives is not in memory that the sender writes.
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

// ---- a sender that writes its parts by hand

class GathersFrom : public BesideAnEnemy {
protected:
    void SetUp() override {
        BesideAnEnemy::SetUp();
        peer().sync(fn<note_server>);
        core_ = core_of_server;
        meet();
        text_waits = told = false;
        held = 0;
    }
    void TearDown() override {
        told = true;
        others_.clear();
        BesideAnEnemy::TearDown();
        EXPECT_FALSE(got_wrong.exchange(false));
    }
    // After the enemy was cut off: it has no handles any more.
    void meet() {
        text_ = handle_after([&] { link_->sync(fn<note_text>, std::string()); }, text_id_);
        note_ = handle_after([&] { link_->sync(fn<note>, 0); }, note_id_);
        forget_noted();
    }
    // The server's handle for the function that is called there, whose id is found by the first call.
    template <typename Call>
    std::uint32_t handle_after(const Call& call, std::optional<FunctionId>& id) {
        Bindings& bindings = detail::Inside::state(*link_)->code.bindings;
        const std::vector<Bindings::Bound> known = bindings.all();
        call();
        for (const Bindings::Bound& each : bindings.all())
            if (!id && std::ranges::find(known, each.function, &Bindings::Bound::function) == known.end())
                id = each.function;
        return bindings.handle_of(*id).value();
    }
    [[nodiscard]] Bytes piece(std::size_t offset, std::size_t bytes) const {
        return Bytes(payload_).subspan(offset, bytes);
    }
    void write_part(std::uint64_t number, std::size_t offset, std::size_t bytes) {
        send(number, offset, payload_.size(), piece(offset, bytes));
    }
    void send(std::uint64_t number, std::size_t offset, std::size_t total, Bytes bytes) {
        const wire::Part part{.number = number,
                              .offset = static_cast<std::uint32_t>(offset),
                              .total_bytes = static_cast<std::uint32_t>(total)};
        write_frame(*link_, Traffic::calls, {.kind = Kind::part, .handle = offset == 0 && total > 0 ? text_ + 1 : 0},
                    raw(part), bytes);
    }
    void write_call(std::uint64_t number, std::uint32_t handle) {
        const wire::Staged which{.number = number, .total_bytes = payload_.size()};
        write_frame(*link_, Traffic::calls,
                    {.kind = Kind::call, .flags = wire::kParts | wire::kNoReply, .handle = handle}, {}, raw(which));
    }
    void write_note(int what) {
        write_frame(*link_, Traffic::calls, {.kind = Kind::call, .flags = wire::kNoReply, .handle = note_}, {},
                    raw(what));
    }
    // The first part, and waits until a function reads it.
    void begin(std::uint64_t number, std::size_t bytes = 50'000, unsigned running = 1) {
        ASSERT_TRUE(soon([&] {
            write_part(number, 0, bytes);
            if (soon([&] { return core_->first_engine().gatherings().running() == running; }, 2s)) return true;
            send(number, 0, 0, {});  // no thread was there for it
            return false;
        }));
    }
    [[nodiscard]] bool has_ended() {
        return soon([&] { return core_->first_engine().gatherings().running() == 0; });
    }

    // All but the first part, and the call.
    void finish(std::uint64_t number) {
        for (std::size_t at = 50'000; at < payload_.size(); at += 50'000)
            write_part(number, at, std::min<std::size_t>(50'000, payload_.size() - at));
        write_call(number, text_);
    }
    // One byte of a payload of the largest kind, which is put together.
    void begin_largest(std::uint64_t number) {
        const wire::Part part{.number = number, .total_bytes = wire::kMessageBytesMax};
        write_frame(*link_, Traffic::calls, {.kind = Kind::part}, raw(part), ByteBuffer(1));
    }
    // Another enemy writes from here on.
    void switch_to_another() {
        NodeOptions own = options();
        own.own_thread = false;
        auto node = std::make_unique<Node>(own);
        auto link = std::make_unique<Peer>(node->connect(server_->address()));
        EXPECT_EQ(link->sync(fn<add>, 1, 2), 3);
        std::swap(link_, link);
        std::swap(enemy_, node);
        others_.emplace_back(std::move(node), std::move(link));
    }

    NodeCore* core_ = nullptr;
    std::vector<std::pair<std::unique_ptr<Node>, std::unique_ptr<Peer>>> others_;
    std::optional<FunctionId> text_id_, note_id_;
    std::uint32_t text_ = 0, note_ = 0;
    std::string text_sent_ = made<std::string>(500'000);
    ByteBuffer payload_ = [this] {
        ByteBuffer bytes;
        detail::travel::Output out(bytes);
        detail::travel::write(out, text_sent_);
        return bytes;
    }();
};

TEST_P(GathersFrom, OneThatTakesItsTimeOthersAreServed) {
    begin(100);
    EXPECT_EQ(peer().sync(fn<add>, 2, 3), 5);
    // As many long functions as may run beside it, and others.
    std::atomic<int> slept{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; ++i)
        threads.emplace_back([&] {
            peer().sync(fn<nothing>);
            peer().sync([] { std::this_thread::sleep_for(20ms); });
            ++slept;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(slept, 6);
    for (std::size_t at = 50'000; at < payload_.size(); at += 50'000)
        write_part(100, at, std::min<std::size_t>(50'000, payload_.size() - at));
    EXPECT_EQ(core_->first_engine().gatherings().running(), 1U) << "the call has not come";
    EXPECT_TRUE(all_noted().empty());
    write_call(100, text_);
    EXPECT_TRUE(soon([&] { return all_noted() == std::vector{500'000}; }));
    EXPECT_FALSE(began_as_long) << "that its payload took long makes no long function of it";
    EXPECT_TRUE(has_ended());
}

TEST_P(GathersFrom, CallsBetweenThePartsKeepTheirOrder) {
    // On a busy machine a function may be in its beginning for so long that others are served beside it, as any that runs long: not always.
    bool in_order = false;
    for (std::uint64_t number = 100; number < 120 && !in_order; ++number) {
        begin(number);
        write_note(1);
        EXPECT_TRUE(soon([&] { return all_noted() == std::vector{1}; })) << "it does not wait for the rest";
        write_note(2);
        write_part(number, 50'000, 50'000);
        write_note(3);
        write_part(number, 100'000, 50'000);
        for (std::size_t at = 150'000; at < payload_.size(); at += 50'000)
            write_part(number, at, std::min<std::size_t>(50'000, payload_.size() - at));
        write_note(4);
        write_call(number, text_);
        write_note(5);
        EXPECT_TRUE(soon([&] { return all_noted().size() == 6; }));
        std::vector<int> got = all_noted();
        in_order = got.back() == 5;
        if (!in_order) std::swap(got[4], got[5]);
        EXPECT_EQ(got, (std::vector{1, 2, 3, 4, 500'000, 5}));
        EXPECT_TRUE(has_ended());
        meet();
    }
    EXPECT_TRUE(in_order) << "never did what follows the call wait for it";
}

// Another thread's payload, which is put together while the first one is read.
TEST_P(GathersFrom, PayloadsBetweenTheParts) {
    begin(100);
    write_part(101, 0, 65'536);
    write_part(100, 50'000, 50'000);
    for (std::size_t at = 65'536; at < payload_.size(); at += 65'536)
        write_part(101, at, std::min<std::size_t>(65'536, payload_.size() - at));
    write_call(101, text_);
    EXPECT_TRUE(soon([&] { return all_noted().size() == 1; }));
    for (std::size_t at = 100'000; at < payload_.size(); at += 50'000)
        write_part(100, at, std::min<std::size_t>(50'000, payload_.size() - at));
    write_call(100, text_);
    EXPECT_TRUE(soon([&] { return all_noted().size() == 2; }));
    EXPECT_EQ(all_noted(), (std::vector{500'000, 500'000}));
}

TEST_P(GathersFrom, OneThatGivesUp) {
    begin(100);
    write_part(100, 50'000, 50'000);
    send(100, 0, 0, {});
    EXPECT_TRUE(has_ended());
    write_note(7);
    EXPECT_TRUE(soon([&] { return all_noted() == std::vector{7}; }));
    EXPECT_TRUE(link_->node() != kNoNode);
}

TEST_P(GathersFrom, OneThatBreaksTheRules) {
    std::uint64_t number = 100;
    const auto is_cut_off_with = [&](const std::string& what, const auto& goes_on) {
        begin(++number);
        is_cut_off(what, goes_on);
        EXPECT_TRUE(has_ended());
        EXPECT_TRUE(all_noted().empty()) << what;
        meet();
    };
    is_cut_off_with("a part that is not the next one", [&] { write_part(number, 60'000, 10'000); });
    is_cut_off_with("the first part again", [&] { write_part(number, 0, 50'000); });
    is_cut_off_with("another total", [&] { send(number, 50'000, payload_.size() + 1, piece(50'000, 50'000)); });
    is_cut_off_with("more than the whole", [&] {
        for (std::size_t at = 50'000; at < 500'000; at += 50'000) write_part(number, at, 50'000);
        send(number, 500'000, payload_.size(), piece(0, 50'000));
    });
    is_cut_off_with("a part without bytes", [&] { write_part(number, 50'000, 0); });
    is_cut_off_with("a part of what has not begun", [&] { write_part(number + 1000, 50'000, 10'000); });
    is_cut_off_with("its call too early", [&] { write_call(number, text_); });
    const auto all = [&] {
        for (std::size_t at = 50'000; at < payload_.size(); at += 50'000)
            write_part(number, at, std::min<std::size_t>(50'000, payload_.size() - at));
    };
    is_cut_off_with("a call of another function", [&] {
        all();
        write_call(number, note_);
    });
    is_cut_off_with("a call of another size", [&] {
        all();
        const wire::Staged which{.number = number, .total_bytes = payload_.size() - 1};
        write_frame(*link_, Traffic::calls,
                    {.kind = Kind::call, .flags = wire::kParts | wire::kNoReply, .handle = text_}, {}, raw(which));
    });
    is_cut_off_with("another caller's call", [&] {
        all();
        const wire::Staged which{.number = number, .total_bytes = payload_.size()};
        write_frame(*link_, Traffic::calls,
                    {.kind = Kind::call, .flags = wire::kParts | wire::kNoReply, .handle = text_, .node = 77}, {},
                    raw(which));
    });
}

// A function that has not said that it can, or none: the payload is put together as ever.
TEST_P(GathersFrom, OneThatNamesNoSuchFunction) {
    for (const std::uint32_t named : {note_, std::uint32_t{4'000'000}, ~std::uint32_t{0} - 1}) {
        const std::uint32_t text = std::exchange(text_, named);
        write_part(100, 0, 65'536);
        text_ = text;
        for (std::size_t at = 65'536; at < payload_.size(); at += 65'536)
            write_part(100, at, std::min<std::size_t>(65'536, payload_.size() - at));
        write_call(100, text_);
        EXPECT_TRUE(soon([&] { return all_noted() == std::vector{500'000}; }));
        EXPECT_EQ(core_->first_engine().gatherings().done(), 0U);
        forget_noted();
    }
}

TEST_P(GathersFrom, OneThatIsGone) {
    begin(100);
    link_.reset();
    enemy_.reset();
    EXPECT_TRUE(has_ended());
    EXPECT_TRUE(all_noted().empty());
    EXPECT_EQ(peer().sync(fn<add>, 2, 3), 5);
}

// All of it had arrived when its sender went.
TEST_P(GathersFrom, OneThatIsGoneAfterwards) {
    begin(100);
    finish(100);
    write_note(8);
    link_.reset();
    enemy_.reset();
    EXPECT_TRUE(soon([&] { return all_noted().size() == 2; })) << all_noted().size();
    EXPECT_TRUE(std::ranges::count(all_noted(), 500'000) == 1) << "in either order: see above";
}

// And by its sender's rate, as Staging measures it for all that have begun.
TEST_P(GathersFrom, OneCountsAmongWhatItsSenderMayBegin) {
    begin(100);
    is_cut_off("more than may arrive at once from one peer", [&] {
        for (std::uint64_t i = 0; i < kStagedBytesMax / wire::kMessageBytesMax; ++i) begin_largest(200 + i);
    });
    EXPECT_TRUE(has_ended());
}

TEST_P(GathersFrom, OneCountsAmongWhatAllMayBegin) {
    begin(100);
    for (std::size_t peers = 0; peers < kAllStagedBytesMax / kStagedBytesMax; ++peers) {
        switch_to_another();
        for (std::uint64_t i = 0; i < kStagedBytesMax / wire::kMessageBytesMax; ++i) begin_largest(200 + i);
    }
    EXPECT_EQ(error_of([&] { (void)link_->sync(within(500ms), fn<add>, 1, 2); }).code(), ErrorCode::timed_out)
        << "there was room for the last one";
    std::swap(link_, others_.front().second);
    finish(100);
    EXPECT_TRUE(has_ended());
    std::swap(link_, others_.front().second);
    EXPECT_EQ(link_->sync(within(20s), fn<add>, 1, 2), 3);
}

// The others' payloads are put together.
TEST_P(GathersFrom, AsManyAsHalfOfTheThreads) {
    begin(100);
    switch_to_another();
    begin(100, 50'000, 2);
    switch_to_another();
    for (std::uint64_t number = 100; number < 110; ++number) {
        write_part(number, 0, 50'000);
        EXPECT_EQ(link_->sync(within(20s), fn<add>, 1, 2), 3);  // the part before it has been looked at
        EXPECT_EQ(core_->first_engine().gatherings().running(), 2U);
        finish(number);
        EXPECT_TRUE(soon([&] { return all_noted().size() == number - 99; }));
    }
    EXPECT_EQ(all_noted(), std::vector(10, 500'000));
}

// Another call of its sender's lies before its next part, and may have to wait for a place among the functions that run long.
TEST_P(GathersFrom, OneThatReadsTakesNoPlaceAmongThoseThatRunLong) {
    std::optional<FunctionId> nap_id;
    const std::uint32_t nap_handle = handle_after([&] { link_->sync(fn<nap>); }, nap_id);
    for (int i = 0; i < 3; ++i) link_->sync(fn<nap>);  // it is known as long
    forget_noted();
    nap_ms = 5;
    begin(100);
    for (int i = 0; i < 3; ++i) peer().post(fn<hold>);
    ASSERT_TRUE(soon([&] { return held == 3; }));
    write_frame(*link_, Traffic::calls, {.kind = Kind::call, .flags = wire::kNoReply, .handle = nap_handle}, {});
    finish(100);
    EXPECT_TRUE(soon([&] { return all_noted().size() == 2; })) << all_noted().size();
    EXPECT_TRUE(has_ended());
}

TEST_P(GathersFrom, OneThatRunsLongKeepsNobodyWaiting) {
    text_waits = true;
    begin(100);
    finish(100);
    write_note(5);
    EXPECT_TRUE(soon([&] { return all_noted() == std::vector{500'000, 5}; })) << all_noted().size();
    told = true;
    EXPECT_TRUE(has_ended());
}

// It waits for its functions for longer than anybody would wait here.
TEST_P(GathersFrom, AnEndingNodeDoesNotWaitForOne) {
    NodeOptions patient = options(true);
    patient.grace = 100s;
    peer_.reset();
    link_.reset();
    server_ = std::make_unique<Node>(patient);
    link_ = std::make_unique<Peer>(enemy_->connect(server_->address()));
    link_->sync(fn<note_server>);
    core_ = core_of_server;
    meet();
    begin(100);
    const auto begun = std::chrono::steady_clock::now();
    server_.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 40s);
    EXPECT_TRUE(all_noted().empty());
}

// In three of its tests a node of this process meets one that the enemy has made over shared memory.
INSTANTIATE_TEST_SUITE_P(Fabrics, GathersFrom, testing::Values(kShm), fabric_name);

}  // namespace
}  // namespace rove::test
