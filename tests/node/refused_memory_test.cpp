// Memory that runs out where nothing may be thrown: in destructors, and behind the C ABI.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <optional>

#include "../watched_new.hpp"
#include "base/descriptor.hpp"
#include "fabric/local.hpp"
#include "peer/spare_memory.hpp"
#include "process.hpp"
#include "rove/rove.h"
#include "rove/rove.hpp"

namespace {
thread_local bool is_refused = false;
}

void rove::test::asked_for(std::size_t /*bytes*/) {
    if (is_refused) throw std::bad_alloc();
}

namespace rove::test {
namespace {

class Refused {
public:
    Refused() { is_refused = true; }
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
    // Where there is none for the list of what is kept nothing is taken.
    {
        const auto other = std::make_shared<SpareMemory>();
        const Refused here;
        EXPECT_THROW((void)other->take(kBytes), std::bad_alloc);
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
