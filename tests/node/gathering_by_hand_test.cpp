// A sender that writes the parts of a large payload by hand: what becomes of functions that read it, and of others, where it does not go on as
// it should.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/gathering.hpp"
#include "gathered.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;
using fabric::Traffic;
using wire::Kind;

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
std::atomic<const code::Function*> text_function{nullptr};
std::atomic<bool> began_as_long{false}, got_wrong{false}, text_waits{false}, told{false};
// Not at once, so that what overtakes it is seen; and before the look at all of it, which may take as long as a leader may be in a
// function.
void note_text(Here& here, const std::string& text) {
    text_function = here.raw()->function;
    began_as_long = text_function.load()->pace.is_long();
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
    // A run that the machine interrupts counts as long, until one has ended that was not.
    ASSERT_TRUE(soon([&] {
        link_->sync(fn<note_text>, std::string());
        return !text_function.load()->pace.is_long();
    }));
    forget_noted();
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
