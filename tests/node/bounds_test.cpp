// Bounds of what all peers together may take of a node: memory for arriving payloads, for frames that wait for room, for buffers. And
// payloads that are given up, and buffers that are freed or whose peers have ended, make room again.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <list>
#include <optional>
#include <thread>

#include "../api/nodes.hpp"
#include "engine/here.hpp"
#include "engine_view.hpp"
#include "hand_made.hpp"
#include "node/built_ins.hpp"
#include "one_engine.hpp"
#include "package/digest.hpp"
#include "program/residents.hpp"
#include "services/memory.hpp"
#include "soon.hpp"
#include "wire/manifest.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;
using fabric::Traffic;
using wire::Kind;

constexpr std::size_t kResultBytes = 200'000;  // in one frame
std::atomic<int> begun{0}, made{0};
std::atomic<bool> go_on{false};
std::atomic<NodeCore*> core{nullptr};  // the server's

int add(int a, int b) {
    return a + b;
}
std::size_t take(const std::vector<char>& bytes) {
    return bytes.size();
}
void wait_until_told() {
    ++begun;
    while (!go_on) std::this_thread::sleep_for(1ms);
}
void look_until_told(std::string_view /*in its mailbox*/) {
    wait_until_told();
}
std::vector<char> make() {
    ++made;
    return std::vector<char>(kResultBytes);
}
std::atomic<int> marked{0};
void mark() {
    ++marked;
}
std::vector<char> make_on_node_1(Here& here) {
    if (here.node() == 1) return make();
    (void)rove_forward(here.raw(), 1, nullptr, 0);
    return {};  // nobody hears this
}
void tell_core(Here& here) {
    core = &here.raw()->node();
}

// A server, an honest client of it, and as many others as a test likes, which write whatever they want.
class Bounds : public testing::TestWithParam<TestFabric> {
protected:
    struct Guest {
        Guest(const NodeOptions& options, const std::string& address)
            : node(GetParam().start(options)), link(node.connect(address)) {}
        Node node;
        Peer link;
    };
    void SetUp() override {
        begun = made = 0;
        go_on = false;
        (void)scratch();  // the tests' own cookie
        NodeOptions listening = options();
        listening.listen = "127.0.0.1:0";
        server_ = std::make_unique<Node>(GetParam().start(listening));
        honest_ = std::make_unique<Guest>(options(), server_->address());
        honest().sync(fn<tell_core>);
    }
    void TearDown() override {
        go_on = true;
        guests_.clear();
        honest_.reset();
        server_.reset();
    }
    static NodeOptions options() {
        NodeOptions options;
        options.fabric = GetParam();
        options.log = "off";
        return options;
    }
    [[nodiscard]] const Peer& honest() const { return honest_->link; }
    Guest& come() {
        NodeOptions own = options();
        own.own_thread = false;
        return guests_.emplace_back(own, server_->address());
    }
    [[nodiscard]] static std::uint64_t meeting(const Peer& peer) { return detail::Inside::state(peer)->meeting(); }

    std::unique_ptr<Node> server_;
    std::unique_ptr<Guest> honest_;
    std::list<Guest> guests_;
};

ROVE_ON_FABRICS(Bounds);
// These count what has arrived, and a guest sends messages only when it is polled.
class BoundsOfMailboxes : public Bounds {};
ROVE_ON_DIRECT_FABRICS(BoundsOfMailboxes);

// ---- payloads that come in parts

class Staging : public Bounds {
protected:
    static void begin_payload(const Peer& link, std::uint64_t number) {
        const wire::Part part{.number = number + (1UL << 40U), .total_bytes = wire::kMessageBytesMax};
        write_frame(link, Traffic::calls, {.kind = Kind::part}, raw(part), ByteBuffer(1));
    }
    static void take_back(const Peer& link, std::uint64_t number) {
        const wire::Part part{.number = number + (1UL << 40U)};
        write_frame(link, Traffic::calls, {.kind = Kind::part}, raw(part));
    }
    void is_served() {
        EXPECT_EQ(honest().sync(within(40s), fn<take>, std::vector<char>(300'000)), 300'000U);
        EXPECT_EQ(meeting(honest()), met_) << "the honest one was cut off";
    }
    void SetUp() override {
        Bounds::SetUp();
        met_ = meeting(honest());
    }
    std::uint64_t met_ = 0;
};

// Three of these wait for ten seconds, and those of Outboxes take some.
INSTANTIATE_TEST_SUITE_P(Fabrics, Staging, testing::Values(kShm, kTcp), fabric_name);

TEST_P(Staging, IsBoundedOverAllPeersAndWhoDoesNotGoOnIsCutOff) {
    constexpr std::size_t kEach = kStagedBytesMax / wire::kMessageBytesMax;
    for (int i = 0; i < 3; ++i) is_served();  // a function reads what arrives now, and still waits for room
    // One that could go on if this node gave it room: a function runs on a frame of its mailbox.
    Guest& kept = come();
    kept.link.post(fn<look_until_told>, std::string_view("frame"));
    EngineView::carry(detail::Inside::core(kept.link)->first_engine());
    ASSERT_TRUE(soon([] { return begun == 1; }));
    const ByteBuffer bytes(60'000);
    begin_payload(kept.link, 0);
    for (wire::Part part{.number = 1UL << 40U, .offset = 1, .total_bytes = wire::kMessageBytesMax};
         try_write_frame(kept.link, Traffic::calls, {.kind = Kind::part}, raw(part), bytes);)
        part.offset += static_cast<std::uint32_t>(bytes.size());
    const std::uint64_t kept_met = meeting(kept.link);
    for (std::size_t payloads = 1; payloads < kAllStagedBytesMax / wire::kMessageBytesMax;) {
        Guest& guest = come();
        for (std::uint64_t number = payloads % kEach; number < kEach; ++number, ++payloads)
            begin_payload(guest.link, number);
        ASSERT_EQ(guest.link.sync(within(20s), fn<add>, 1, 2), 3);  // they are there
    }
    EXPECT_EQ(error_of([&] { (void)honest().sync(within(500ms), fn<take>, std::vector<char>(300'000)); }).code(),
              ErrorCode::timed_out)
        << "there was room beyond the bound";
    is_served();
    // As many as there need be: the others have the time that they have where nobody waits.
    EXPECT_TRUE(soon([] {
        return core.load()->first_engine().peers().count() <= kAllStagedBytesMax / kStagedBytesMax + 1;
    })) << "all who hold the room are still there";
    (void)kept.node.poll(0ms);
    EXPECT_EQ(meeting(kept.link), kept_met);
    EXPECT_TRUE(detail::Inside::state(kept.link)->linked()) << detail::Inside::state(kept.link)->gone();
    Guest& one = *std::next(guests_.begin());
    const PeerState& cut_off = *detail::Inside::state(one.link);
    EXPECT_TRUE(soon([&] {
        (void)one.node.poll(0ms);
        return cut_off.gone().find("of the payloads that it has begun") != std::string::npos;
    })) << "told: "
        << cut_off.gone();
}

// Nor by calls whose code it does not send, one after the other: frames in its mailbox are no excuse if the peer itself holds them up.
TEST_P(Staging, WhoOwesCodeIsCutOffAllTheSame) {
    constexpr std::size_t kEach = kStagedBytesMax / wire::kMessageBytesMax;
    FunctionId unknown{};
    for (std::size_t begun_bytes = 0; begun_bytes < kAllStagedBytesMax; begun_bytes += kStagedBytesMax) {
        Guest& guest = come();
        for (std::uint64_t number = 0; number < kEach; ++number) begin_payload(guest.link, number);
        ASSERT_EQ(guest.link.sync(within(20s), fn<add>, 1, 2), 3);
        for (std::uint8_t call = 1; call <= 100; ++call) {
            unknown.bytes[0] = call;
            write_frame(guest.link, Traffic::calls, {.kind = Kind::call, .flags = wire::kById | wire::kNoReply},
                        unknown.raw());
        }
    }
    is_served();
}

// Nor by calls that are not begun because it takes no results.
TEST_P(Staging, WhoTakesNoResultsIsCutOffAllTheSame) {
    constexpr std::size_t kEach = kStagedBytesMax / wire::kMessageBytesMax;
    constexpr int kTooMany = static_cast<int>(4 * kBacklogBytes / kResultBytes);
    for (std::size_t begun_bytes = 0; begun_bytes < kAllStagedBytesMax; begun_bytes += kStagedBytesMax) {
        Guest& guest = come();
        EXPECT_EQ(guest.link.sync(within(20s), fn<make>).size(), kResultBytes);
        const std::uint32_t handle = detail::Inside::state(guest.link)->code.bindings.all().front().handle;
        for (std::uint64_t number = 0; number < kEach; ++number) begin_payload(guest.link, number);
        ASSERT_EQ(guest.link.sync(within(20s), fn<add>, 1, 2), 3);
        for (int i = 0; i < kTooMany; ++i)
            write_frame(guest.link, Traffic::calls, {.kind = Kind::call, .handle = handle}, {});
    }
    is_served();
}

TEST_P(Staging, WhatIsTakenBackIsRoomAgain) {
    const Peer& link = come().link;
    const std::uint64_t met = meeting(link);
    for (std::uint64_t number = 0; number < kAllStagedBytesMax / wire::kMessageBytesMax + 2; ++number) {
        begin_payload(link, number);
        take_back(link, number);
        ASSERT_EQ(link.sync(within(5s), fn<add>, 1, 2), 3) << number;
        ASSERT_EQ(meeting(link), met) << "cut off after " << number;
    }
    is_served();
}

// Its sender gives a large call up on its way: the part that has come must not stay.
TEST_P(Staging, ACallThatIsGivenUpLeavesNothing) {
    NodeOptions lone = options();
    lone.listen = "127.0.0.1:0";
    lone.threads = 1;
    Node server(GetParam().start(lone));
    Guest one(options(), server.address()), another(options(), server.address());
    EXPECT_EQ(one.link.sync(fn<add>, 1, 1), 2);
    const std::vector<char> large(wire::kMessageBytesMax - 100);
    EXPECT_EQ(one.link.sync(fn<take>, large), large.size());
    const std::uint64_t met = meeting(one.link);
    for (std::size_t i = 0; i <= kStagedBytesMax / wire::kMessageBytesMax; ++i) {
        begun = 0;
        go_on = false;
        another.link.post(fn<wait_until_told>);
        ASSERT_TRUE(soon([] { return begun == 1; }));  // nobody empties the mailbox
        EXPECT_EQ(error_of([&] { (void)one.link.sync(within(50ms), fn<take>, large); }).code(), ErrorCode::timed_out);
        go_on = true;
        ASSERT_EQ(one.link.sync(within(20s), fn<add>, 1, 2), 3) << i;
        ASSERT_EQ(meeting(one.link), met) << "cut off after " << i;
    }
    EXPECT_EQ(one.link.sync(within(20s), fn<take>, large), large.size());
}

// ---- frames that wait for room

// Results that come from a node behind this one: what runs here waits, where its caller takes nothing.
class Outboxes : public Bounds {
protected:
    void SetUp() override {
        Bounds::SetUp();
        NodeOptions joining = options();
        joining.listen = "127.0.0.1:0";
        joining.join = server_->address();
        joining.own_thread = false;
        may_make = kAnyNumber;
        behind_ = std::make_unique<Node>(GetParam().start(joining));
        drives_ = std::jthread([this](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
                if (made < may_make)
                    (void)behind_->poll(1ms);
                else
                    std::this_thread::sleep_for(1ms);
                ++turns_;
            }
        });
    }
    void TearDown() override {
        drives_ = {};
        behind_.reset();
        Bounds::TearDown();
    }
    // Asks for so many results, and takes none of them. None comes before all are asked for: nobody's calls are begun while many of its
    // results wait.
    void ask(Guest& guest, int results, int at_first) {
        may_make = 0;
        const int before_pause = turns_;  // in which it may have looked already
        ASSERT_TRUE(soon([&] { return turns_ > before_pause + 1; }));
        PeerState& state = *detail::Inside::state(guest.link);
        for (int i = 0; i < results; ++i)
            write_frame(guest.link, Traffic::calls,
                        {.kind = Kind::call, .handle = state.code.bindings.all().front().handle}, {});
        const int before = marked;
        guest.link.post(fn<mark>);
        ASSERT_TRUE(soon([&] {  // over a stream they leave as the guest works; there is nothing to take yet
            (void)guest.node.poll();
            return marked > before;
        }));
        may_make = at_first;
    }
    Guest& come_and_ask(int results, int at_first = kAnyNumber) {
        Guest& guest = come();
        EXPECT_EQ(guest.link.sync(fn<make_on_node_1>).size(), kResultBytes);
        --made;
        ask(guest, results, at_first);
        return guest;
    }
    // Without the node behind.
    static std::size_t peers() { return core.load()->first_engine().peers().count() - 1; }
    // What one peer may have waiting, nearly: less than that where its mailbox takes some, too.
    static constexpr int kNearlyAll = static_cast<int>(kOutboxBytesMax / kResultBytes) - 10;
    static constexpr int kPeersTooMany = static_cast<int>(kAllOutboxBytesMax / kOutboxBytesMax) + 3;
    static constexpr int kAnyNumber = std::numeric_limits<int>::max();
    std::atomic<int> may_make = kAnyNumber;  // it goes on beyond that to the end of what it has begun with
    std::atomic<int> turns_ = 0;             // of the thread that drives it
    std::unique_ptr<Node> behind_;
    std::jthread drives_;
};

INSTANTIATE_TEST_SUITE_P(Fabrics, Outboxes, testing::Values(kShm, kTcp), fabric_name);

// They look at the node's engine, or count its places.
class BoundsOfOneEngine : public Bounds {};
ROVE_ON_THESE_FABRICS(BoundsOfOneEngine, kFabricsWithOneEngine);

TEST_P(BoundsOfOneEngine, WhoTakesNoResultsHasNoMoreCallsBegun) {
    constexpr int kMost = static_cast<int>((2 * kBacklogBytes + fabric::kRingBytes) / kResultBytes);
    Guest& guest = come();
    EXPECT_EQ(guest.link.sync(fn<make>).size(), kResultBytes);
    PeerState& state = *detail::Inside::state(guest.link);
    made = 0;
    for (int i = 0; i < 2 * kMost; ++i)
        write_frame(guest.link, Traffic::calls,
                    {.kind = Kind::call, .handle = state.code.bindings.all().front().handle}, {});
    ASSERT_TRUE(soon([] { return made * kResultBytes > kBacklogBytes; }));
    for (int i = 0; i < 100; ++i) EXPECT_EQ(honest().sync(within(20s), fn<add>, i, 2), i + 2);
    EXPECT_LT(made, kMost);
    EXPECT_EQ(core.load()->first_engine().peers().count(), 2U) << "it was cut off";
    EXPECT_TRUE(soon([&] {
        (void)guest.node.poll(1ms);  // it takes them
        return made == 2 * kMost;
    }));
}

// For the smallest frames, more than half of the memory is the overhead of each.
TEST_P(BoundsOfMailboxes, WhatWaitsCountsWithWhatItTakesBeside) {
    constexpr std::size_t kBeside = sizeof(ByteBuffer) + 16;
    constexpr std::size_t kSlack = 2000;  // the batch that is being served when there are too many is served to its end
    constexpr std::size_t kMost = fabric::kRingLines + kBacklogBytes / (wire::kHeaderBytes + kBeside) + kSlack;
    static_assert(kMost < kBacklogBytes / wire::kHeaderBytes);
    Guest& guest = come();
    guest.link.sync(fn<mark>);
    const std::uint32_t handle = detail::Inside::state(guest.link)->code.bindings.all().front().handle;
    marked = 0;
    const auto writes_all = [&] {
        while (try_write_frame(guest.link, Traffic::calls, {.kind = Kind::call, .handle = handle}, {})) {
        }
    };
    ASSERT_TRUE(soon([&] {
        writes_all();
        return static_cast<std::size_t>(marked) > kMost / 2;
    }));
    for (int before = -1; before < marked;) {  // until no more of them are begun
        before = marked;
        for (int i = 0; i < 200; ++i, std::this_thread::sleep_for(1ms)) writes_all();
    }
    EXPECT_LT(static_cast<std::size_t>(marked), kMost);
    EXPECT_EQ(honest().sync(within(20s), fn<add>, 1, 2), 3);
}

// One thread loads everybody's packages, and answers.
TEST_P(BoundsOfMailboxes, WhoTakesNoAnswerToItsLoadKeepsNobodysPackagesOut) {
    const Package held = Package::open(package("basics.c")), other = Package::open(package("relay.c"));
    const auto digest = PackageStore::open(package("basics.c")).value()->digest();
    const Guest& guest = come();
    guest.link.load(held);
    const std::uint64_t met = meeting(guest.link);
    const NodeId server = detail::Inside::state(guest.link)->id(), me = detail::Inside::state(guest.link)->my_id();
    const std::shared_ptr<PeerState> there = EngineView::on_the_way_to(core.load()->first_engine(), me);
    ASSERT_TRUE(there);
    const auto received = [&] { return core.load()->first_engine().peers().counters(*there).frames_received; };
    const auto waiting = [&] {
        const Hold hold(core.load()->first_engine().lock());
        return there->outbox_of(Traffic::prompt).bytes();
    };
    std::uint64_t sent = received();
    wire::NeedCode need{.asker = me, .origin = me};
    std::memset(&need.function, 7, sizeof need.function);
    const auto ask = [&] {
        return try_write_frame(guest.link, Traffic::prompt, {.kind = Kind::need, .node = server}, raw(need));
    };
    ASSERT_TRUE(soon([&] {  // whoever replies to it waits from then on
        for (; ask(); ++need.handle) ++sent;
        return waiting() > kFullBacklogBytes;
    }));
    ASSERT_TRUE(soon([&] { return received() == sent; }));
    write_frame(guest.link, Traffic::prompt, {.kind = Kind::load, .call = 9}, digest.raw());
    ASSERT_TRUE(soon([&] { return received() == sent + 1; }));
    EXPECT_NO_THROW(honest().limited(within(10s)).load(other));
    EXPECT_EQ(guest.link.sync(within(20s), fn<add>, 1, 2), 3);
    EXPECT_EQ(meeting(guest.link), met) << "it was cut off";
}

TEST_P(Outboxes, WhoTakesNothingIsCutOff) {
    constexpr int kTooMany = kNearlyAll + 100, kSome = kNearlyAll / 2;
    (void)come_and_ask(kTooMany, kSome);
    EXPECT_TRUE(soon([] { return made >= kSome; }));
    std::this_thread::sleep_for(kTakenLately + 100ms);
    EXPECT_EQ(peers(), 2U) << "there is room yet";
    may_make = kAnyNumber;
    EXPECT_TRUE(soon([] { return peers() == 1; })) << "all of them wait";
    EXPECT_EQ(honest().sync(within(20s), fn<add>, 1, 2), 3);
}

TEST_P(Outboxes, AreBoundedTogetherAndLeftByTheDead) {
    for (int i = 0; i < kPeersTooMany; ++i) {
        made = 0;
        (void)come_and_ask(kNearlyAll);
        ASSERT_TRUE(soon([] { return made == kNearlyAll; }));
        if (i + 2 >= kPeersTooMany) std::this_thread::sleep_for(200ms);
        ASSERT_EQ(peers(), 2U) << "cut off after " << i << " others had gone";
        guests_.clear();
        ASSERT_TRUE(soon([] { return peers() == 1; }));
    }
    made = 0;
    for (int i = 0; i < kPeersTooMany; ++i) (void)come_and_ask(kNearlyAll);
    EXPECT_TRUE(soon([] { return peers() <= kPeersTooMany; })) << "all of them wait";
    EXPECT_EQ(honest().sync(within(20s), fn<add>, 1, 2), 3);
}

TEST_P(Outboxes, AreLeftByOneWhoTakesNothingAndNotByAll) {
    constexpr int kAll = static_cast<int>(kAllOutboxBytesMax / (static_cast<std::size_t>(kNearlyAll) * kResultBytes));
    for (int i = 0; i < kAll; ++i) {
        made = 0;
        (void)come_and_ask(kNearlyAll);
        ASSERT_TRUE(soon([] { return made == kNearlyAll; }));
    }
    ASSERT_EQ(peers(), kAll + 1U);
    made = 0;
    (void)come_and_ask(kNearlyAll);
    ASSERT_TRUE(soon([] { return made == kNearlyAll || peers() <= kAll + 1U; }));
    ASSERT_TRUE(soon([] { return peers() <= kAll + 1U; }));
    std::this_thread::sleep_for(200ms);  // the others that were cut off would be gone by now, too
    EXPECT_EQ(peers(), kAll + 1U) << "of " << kAll + 2;
}

// ---- code that costs time

std::atomic<Node*> enemy{nullptr};
std::atomic<const Peer*> enemys_link{nullptr};
std::uint64_t answers_to_enemy() {
    (void)enemy.load()->poll();
    return enemys_link.load()->counters().frames_received;
}

// Of the largest manifests there are: a node makes room, ids and handles for each. Behind each is a question, whose answers are counted.
TEST_P(Bounds, ManifestsDoNotKeepOthersOut) {
    constexpr int kManifests = 30;
    Guest &sends = come(), &modest = come();
    enemy = &sends.node;
    enemys_link = &sends.link;
    sends.link.sync(fn<add>, 1, 2);
    const std::uint64_t before = modest.link.sync(fn<answers_to_enemy>);
    std::vector<ByteBuffer> manifests;
    for (int i = 0; i < kManifests; ++i) {
        wire::Manifest manifest{.name = "many" + std::to_string(i), .abi = ROVE_ABI_VERSION};
        for (std::size_t n = 0; n < wire::kEntriesMax; ++n) manifest.entries.push_back("f" + std::to_string(n));
        manifests.push_back(wire::encode(manifest));
    }
    const NodeId server = detail::Inside::state(sends.link)->id(), me = detail::Inside::state(sends.link)->my_id();
    wire::NeedCode need{.asker = me, .origin = server};
    std::memset(&need.function, 7, sizeof need.function);
    std::optional<Call<std::uint64_t>> call;
    {
        const Hold hold(core.load()->first_engine().lock());
        for (const ByteBuffer& manifest : manifests) {
            const wire::CodeChunk chunk{.package = digest_of_manifest(manifest),
                                        .total_bytes = static_cast<std::uint32_t>(manifest.size())};
            write_frame(sends.link, Traffic::prompt, {.kind = Kind::code, .node = server}, raw(chunk), manifest);
            write_frame(sends.link, Traffic::prompt, {.kind = Kind::need, .node = server}, raw(need));
        }
        call.emplace(modest.link.async(fn<answers_to_enemy>));
    }
    EXPECT_LT(call->get(), before + kManifests / 2) << "it had to wait for as many as may be taken at once";
    EXPECT_TRUE(soon([&] { return answers_to_enemy() >= before + kManifests; }));
}

// ---- memory for buffers

// An allocation may run beside the end of the link that it came by: then nobody else frees it.
TEST_P(Bounds, WhatIsAllocatedForWhoHasGoneIsFreed) {
    (void)scratch();
    NodeOptions small = options();
    small.listen = "127.0.0.1:0";
    small.buffer_bytes_max = 8192;
    Node server(GetParam().start(small));
    NodeId gone = kNoNode;
    {
        Guest guest(options(), server.address());
        guest.link.sync(fn<tell_core>);
        gone = detail::Inside::state(guest.link)->my_id();
        EXPECT_TRUE(core.load()->first_engine().peers().knows_owner(gone));
    }
    ASSERT_TRUE(soon([&] { return !core.load()->first_engine().peers().knows_owner(gone); }));
    const Resident* allocate = Residents::find(built_ins().allocate);
    ASSERT_NE(allocate, nullptr);
    const std::uint64_t bytes = 8192;
    rove_here here{&core.load()->first_engine(), nullptr, {.node = gone}, RanAs::resident};
    allocate->entry(&here, &bytes, sizeof bytes);
    Guest next(options(), server.address());
    EXPECT_EQ(next.link.allocate<char>(within(20s), bytes).get().size(), bytes);
}

}  // namespace
}  // namespace rove::test
