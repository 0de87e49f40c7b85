// Memory that runs out where nothing may be thrown: in destructors, and behind the C ABI.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "../watched_new.hpp"
#include "base/descriptor.hpp"
#include "fabric/local.hpp"
#include "idle_lead.hpp"
#include "package/digest.hpp"
#include "peer/absent_members.hpp"
#include "peer/bindings.hpp"
#include "peer/spare_memory.hpp"
#include "process.hpp"
#include "program/residents.hpp"
#include "rove/edge.h"
#include "rove/rove.h"
#include "rove/rove.hpp"

namespace {
thread_local bool is_refused = false;
thread_local unsigned granted = 0;         // before it is refused
std::atomic<std::size_t> refused_size{0};  // by every thread; 0: none is
}  // namespace

void rove::test::asked_for(std::size_t bytes) {
    if (bytes > 0 && bytes == refused_size.load(std::memory_order_relaxed)) throw std::bad_alloc();
    if (!is_refused) return;
    if (granted == 0) throw std::bad_alloc();
    --granted;
}

namespace rove::test {
namespace {

class Refused {
public:
    // All but the first allocations.
    explicit Refused(unsigned first = 0) {
        granted = first;
        is_refused = true;
    }
    ~Refused() { is_refused = false; }
    Refused(const Refused&) = delete;
};

TEST(RefusedMemory, LargeBytesGoBackWithoutAny) {
    const auto memory = std::make_shared<SpareMemory>();
    constexpr std::size_t kBytes = 1UL << 20U;
    std::vector<LargeBytes> taken;
    for (int i = 0; i < 100; ++i) taken.push_back(std::move(*memory->take(kBytes)));
    {
        const Refused here;
        taken.clear();
        EXPECT_TRUE(memory->is_over());
        {
            const TrimAtEnd trims(memory);
        }
        EXPECT_FALSE(memory->is_over());
        memory->trim(Clock::now() + 2 * kSpareFor);
        EXPECT_TRUE(memory->is_empty());
    }
}

// Neither for the bytes on the heap, nor for the list of what is kept, nor for the words of the error.
TEST(RefusedMemory, LargeBytesForWhichThereIsNoneAreAnError) {
    const auto memory = std::make_shared<SpareMemory>();
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{1} << 20U}) {
        const auto refused = [&] {
            const Refused here;
            return memory->take(bytes);
        }();
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code(), ErrorCode::overloaded);
        EXPECT_TRUE(memory->take(bytes));
    }
}

// Each allocation of each step in turn, and all that follow in that step.
TEST(RefusedMemory, AResultInPartsIsKeptWholeOrNotAtAll) {
    constexpr unsigned kSteps = 3, kMost = 20;
    const wire::FrameHeader reply{.kind = wire::Kind::reply, .flags = wire::kParts, .generation = 1, .node = 1};
    wire::FrameHeader part = reply;
    part.kind = wire::Kind::part;
    part.flags = 0;
    const ByteBuffer half(10);
    const auto keep = [&](AbsentMembers& absent, unsigned step) {
        const wire::Part of{.offset = 10 * step, .total_bytes = 20};
        return step < 2 ? absent.keep(1, part, std::as_bytes(std::span(&of, 1)), half, Clock::now())
                        : absent.keep(1, reply, {}, {}, Clock::now());
    };
    for (unsigned refused_step = 0; refused_step < kSteps; ++refused_step) {
        unsigned first = 0;
        for (bool in_want = true; in_want && first < kMost; ++first) {
            AbsentMembers absent;
            absent.lost(1, {}, "cut");
            bool is_told = true;
            for (unsigned step = 0; step < kSteps; ++step) {
                std::optional<Refused> here;
                if (step == refused_step) here.emplace(first);
                try {
                    (void)keep(absent, step);
                } catch (const std::bad_alloc&) {
                    is_told = false;
                }
                if (here) in_want = granted == 0;
            }
            const auto frames = absent.met(1, {}).frames;
            EXPECT_EQ(absent.kept_bytes() + absent.kept_errors(), 0U);
            std::vector<wire::FrameHeader> kept(frames.size());
            for (std::size_t i = 0; i < kept.size(); ++i)
                std::memcpy(static_cast<void*>(&kept[i]), frames[i].data(), sizeof kept[i]);
            SCOPED_TRACE(testing::Message() << "step " << refused_step << ", allocation " << first);
            if (kept.size() == kSteps) {
                EXPECT_EQ(kept[2].flags, wire::kParts);
                continue;
            }
            EXPECT_TRUE(in_want);
            ASSERT_EQ(kept.size(), is_told ? 1U : 0U);
            if (is_told) EXPECT_EQ(kept[0].flags, wire::kError);
        }
        EXPECT_GT(first, 1U);
        EXPECT_LT(first, kMost);
    }
}

// What a peer's handle means is known before it is used.
TEST(RefusedMemory, AHandleThatIsUsedHasAMeaning) {
    constexpr unsigned kMost = 20;
    const auto function = FunctionId::from(std::array<std::byte, sizeof(FunctionId)>{std::byte{1}});
    unsigned first = 0;
    for (bool is_learnt = false; !is_learnt && first < kMost; ++first) {
        Bindings bindings;
        bindings.expect();
        try {
            const Refused here(first);
            bindings.learn(function, 10);
            is_learnt = true;
        } catch (const std::bad_alloc&) {
        }
        const auto handle = bindings.handle_of(function);
        EXPECT_EQ(handle.has_value(), is_learnt);
        if (handle) EXPECT_EQ(bindings.function_of(*handle), function);
    }
    EXPECT_GT(first, 2U);
    EXPECT_LT(first, kMost);
}

// Their list takes memory for some at a time.
TEST(RefusedMemory, AThreadOfTheNodesOwnForWhichThereIsNoneIsAnError) {
    constexpr unsigned kThreads = 20;
    IdleLead idle;
    for (unsigned made = 0; made < kThreads; ++made) {
        const auto add = [&idle]() REQUIRES(lock_of<EngineLock>) {
            return idle.own_threads.add([](void*, OwnThreads::Lock&, OwnThreads::One&) {}, nullptr);
        };
        const Status refused = idle.under_lock([&]() REQUIRES(lock_of<EngineLock>) {
            const Refused here;
            return add();
        });
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code(), ErrorCode::overloaded);
        EXPECT_EQ(idle.under_lock([&]() REQUIRES(lock_of<EngineLock>) { return idle.own_threads.made(); }), made);
        ASSERT_TRUE(idle.under_lock(add));
    }
}

// What it had to send cannot be sent any more, and nothing can be said of that.
TEST(RefusedMemory, AStreamThatIsFullEndsWithoutAny) {
    const auto fabric = std::move(*fabric::open_local_fabric({.direct = false}));
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    Descriptor other(ends[1]);
    auto link = std::move(*fabric->open_stream(ends[0], {.incoming = 3, .outgoing = 5}));
    constexpr std::uint32_t kBody = 8000;
    while (link->reserve(fabric::Traffic::calls, wire::kHeaderBytes + kBody) != nullptr)
        link->publish(fabric::Traffic::calls, {.body_bytes = kBody, .kind = wire::Kind::call});
    ASSERT_EQ(link->broken(), nullptr);
    other.close();
    const Refused here;
    link.reset();
}

TEST(RefusedMemory, ABatchThatCannotBePostedIsDropped) {
    const Node server(NodeOptions{.listen = "unix:" + (scratch() / "batch.sock").string(), .log = "off"});
    Node client(NodeOptions{.log = "off"});
    const Peer peer = client.connect(server.address());
    const Entry entry = Package::open(package("basics.c")).entry("count");
    {
        std::optional<Batch> batch(peer.batch(entry, 8));
        (void)batch->add();
        const Refused here;
        batch.reset();
    }
    EXPECT_NO_THROW((void)peer.ping().get());
}

constexpr std::size_t kOdd = 12'345;  // nothing else asks for that many
void give_odd(rove_here* here, const void*, std::size_t) {
    static constexpr std::array<std::byte, kOdd> kBytes{};
    (void)rove_reply(here, kBytes.data(), kBytes.size());
}
void ask_itself(Here& here) {
    rove_pending pending{};
    if (rove_here_call(here.raw(), here.node(), reinterpret_cast<rove_code>(&give_odd), nullptr, 0, &pending) !=
        ROVE_OK)
        throw std::runtime_error(rove_last_failure()->message);
    refused_size = kOdd;
    const bool ended = rove_pending_wait(&pending, 20'000'000'000) == ROVE_OK;
    refused_size = 0;
    std::array<std::byte, kOdd> into{};
    std::size_t size = 0;
    if (!ended) throw std::runtime_error("it did not end");
    if (rove_pending_take(&pending, into.data(), into.size(), &size) == ROVE_OK)
        throw std::runtime_error("it had memory");
}

// It costs that call and not the process, which answers itself where nothing may be thrown.
TEST(RefusedMemory, AResultForANodesOwnCallIsAnErrorOfThatCall) {
    (void)Residents::add({.id = resident_id({"test", "give odd"}),
                          .name = "test:give odd",
                          .signature = {},
                          .entry = &give_odd,
                          .built_in = true});
    const Node server(NodeOptions{.listen = "unix:" + (scratch() / "odd.sock").string(), .log = "off"});
    Node client(NodeOptions{.log = "off"});
    EXPECT_NO_THROW(client.connect(server.address()).sync(fn<ask_itself>));
}

TEST(RefusedMemory, TheCAbiSaysThatItRanOut) {
    rove_node_t* node = nullptr;
    const auto create = [&node] {
        const Refused here;
        return rove_node_create(nullptr, &node);
    };
    EXPECT_EQ(create(), ROVE_OVERLOADED);
    EXPECT_STREQ(rove_error_message(), "this process has no memory left for it");
    ASSERT_EQ(rove_node_create(nullptr, &node), ROVE_OK) << rove_error_message();
    rove_node_destroy(node);
}

// The number counts, and not the words.
TEST(RefusedMemory, TheCAbiKeepsAnErrorForWhoseWordsThereIsNone) {
    const auto nowhere = [] {
        const Refused here;
        return rove_node_create(nullptr, nullptr);
    };
    EXPECT_EQ(nowhere(), ROVE_INVALID);
}

}  // namespace
}  // namespace rove::test
