// Messages over UCX: a peer's offer, and messages that are made by hand. (A trusted peer may still send wrong ones.)
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "fabric/ucx/fabric.hpp"
#include "fabric/ucx/ucx_fabric.hpp"
#include "fabrics.hpp"

namespace rove::fabric {
namespace {

// UCX reads an address without knowing where it ends, so junk could end this process: what can be told of it is looked at.
TEST(UcxMessages, AnAddressThatIsJunkIsRefused) {
    auto a = std::move(*open_ucx_fabric({.shm = false, .tcp = true}));
    auto b = std::move(*open_ucx_fabric({.shm = false, .tcp = true}));
    const auto mine = std::move(*a->open_link());
    const auto other = std::move(*b->open_link());
    Reader in(mine->offer());
    const Bytes before = in.take(1 + 36 + 8 + 2 + 4 + 20);  // version, boot id, token, no worker, process, no file
    const std::string address(in.text());
    ASSERT_TRUE(in.done());
    const auto offer_with = [&](const std::string& junk) {
        Writer out;
        out.bytes(before);
        out.text(junk);
        return out.take();
    };
    std::string other_version = address;
    other_version[0] = static_cast<char>(~other_version[0]);
    for (const std::string& junk : {other_version, std::string(address.size(), '\xff'), address.substr(0, 1),
                                    address + std::string(4096, address[0])}) {
        const Status status = other->connect(offer_with(junk));
        ASSERT_FALSE(status) << junk.size();
        EXPECT_EQ(ErrorCode::unsupported, status.error().code());
    }
    EXPECT_TRUE(other->connect(offer_with(address)));
}

// What a link's offer says of how to send it messages.
struct Offered {
    explicit Offered(const Link& link) {
        Reader in(link.offer());
        in.take(1 + 36);  // version, boot id
        token = in.number<std::uint64_t>();
        in.take(2 + 4 + 20);  // no worker, process, no file
        address = in.text();
    }
    std::uint64_t token = 0;
    std::string address;
};

// A sender that does not wait for its frames to be taken, and so writes over some of them.
TEST(UcxMessages, FramesBeyondTheCreditAreCutOff) {
    const auto fabric = std::move(*open_ucx_fabric({.shm = false, .tcp = true}));
    const auto link = std::move(*fabric->open_link());
    const Offered to(*link);
    const auto worker = UcxWorker::open(*UcxContext::open(Transport::tcp)).value();
    const ucp_ep_h endpoint = worker->connect(std::as_bytes(std::span(to.address))).value();
    constexpr std::uint64_t kLines = 64;
    const ByteBuffer frames(kLines * wire::kLineBytes);
    unsigned on_their_way = 0;
    const auto send_at = [&](std::uint64_t line) {
        const UcxHeader at{.token = to.token, .position = line};
        EXPECT_TRUE(worker->send(endpoint, kFramesId, std::as_bytes(std::span(&at, 1)), frames, &on_their_way));
        for (int turn = 0; turn < 1'000'000 && on_their_way > 0; ++turn) {
            worker->progress();
            fabric->progress();
        }
    };
    std::uint64_t line = 0;
    for (; line < kRingLines; line += kLines) send_at(line);
    for (int turn = 0; turn < 10'000; ++turn) fabric->progress();
    EXPECT_EQ(link->broken(), nullptr) << "as many as there is room for";
    send_at(line);
    for (int turn = 0; turn < 1'000'000 && link->broken() == nullptr; ++turn) {
        worker->progress();
        fabric->progress();
    }
    ASSERT_NE(link->broken(), nullptr);
    EXPECT_NE(link->broken()->message().find("do not fit the mailbox"), std::string::npos) << link->broken()->message();
}

// A peer that is made by hand, with what has arrived from the link: credits for its calls, and how many messages with frames.
struct PeerByHand {
    PeerByHand() {
        const auto on_frames = [](void* to, const void*, std::size_t, void*, std::size_t, const ucp_am_recv_param_t*) {
            ++static_cast<PeerByHand*>(to)->messages;
            return UCS_OK;
        };
        const auto on_credit = [](void* to, const void* header, std::size_t, void*, std::size_t,
                                  const ucp_am_recv_param_t*) {
            UcxHeader credit;
            std::memcpy(&credit, header, sizeof credit);
            if ((credit.position & kTrafficBit) == 0) static_cast<PeerByHand*>(to)->credits.push_back(credit.position);
            return UCS_OK;
        };
        EXPECT_TRUE(worker->on_message(kFramesId, on_frames, this));
        EXPECT_TRUE(worker->on_message(kCreditId, on_credit, this));
    }
    // The offer of a link with this peer's token and address.
    [[nodiscard]] ByteBuffer offer_like(const Link& link) const {
        Reader in(link.offer());
        Writer out;
        out.bytes(in.take(1 + 36));
        out.number(std::uint64_t{42});
        in.take(8);
        out.bytes(in.take(2 + 4 + 20));
        out.text({reinterpret_cast<const char*>(worker->address().data()), worker->address().size()});
        return out.take();
    }
    std::unique_ptr<UcxWorker> worker = UcxWorker::open(*UcxContext::open(Transport::tcp)).value();
    std::vector<std::uint64_t> credits;
    std::size_t messages = 0;
};

// While UCX cannot send, one credit waits for another. A credit may only grow, and the peer cuts the link where one does not.
TEST(UcxMessages, CreditsThatWaitGrowWhateverThePeerReads) {
    const auto fabric = std::move(*open_ucx_fabric({.shm = false, .tcp = true}));
    const auto link = std::move(*fabric->open_link());
    PeerByHand peer;
    ASSERT_TRUE(link->connect(peer.offer_like(*link)));
    ASSERT_TRUE(send(*link, Traffic::calls, 1, 8));  // the two meet
    for (int turn = 0; turn < 1'000'000 && peer.messages == 0; ++turn) {
        (void)fabric->progress();
        (void)peer.worker->progress();
    }
    ASSERT_EQ(peer.messages, 1U);

    const Offered to(*link);
    const ucp_ep_h endpoint = peer.worker->connect(std::as_bytes(std::span(to.address))).value();
    unsigned on_their_way = 0;
    // The peer reads nothing, but gives credit for 16 MiB, more than the sockets take.
    for (int ring = 0; ring < 16; ++ring) {
        while (send(*link, Traffic::calls, 1, wire::kPayloadBytesMax)) (void)fabric->progress();
        const UcxHeader credit{.token = to.token, .position = link->lines_published(Traffic::calls)};
        ASSERT_TRUE(peer.worker->send(endpoint, kCreditId, std::as_bytes(std::span(&credit, 1)), {}, &on_their_way));
        for (int turn = 0; turn < 100'000 && !link->has_room(Traffic::calls, wire::kFrameBytesMax); ++turn)
            (void)fabric->progress();
    }
    const auto memory = std::make_unique<Region>();
    RingWriter writer(memory->rings[0], &memory->credits[0], to.token);
    constexpr std::uint64_t kLines = 64;
    constexpr int kFrames = 200;
    int taken = 0;
    for (int i = 0; i < kFrames; ++i) {
        std::byte* const frame = writer.reserve_rarely(kLines * wire::kLineBytes);
        ASSERT_NE(frame, nullptr);
        wire::FrameHeader header;
        header.kind = wire::Kind::call;
        header.body_bytes = kLines * wire::kLineBytes - wire::kHeaderBytes;
        writer.publish(header);
        const UcxHeader at{.token = to.token, .position = i * kLines};
        ASSERT_TRUE(peer.worker->send(endpoint, kFramesId, std::as_bytes(std::span(&at, 1)),
                                      {frame, kLines * wire::kLineBytes}, &on_their_way));
        wire::Frame arrived;
        for (int turn = 0; turn < 100'000 && taken == i; ++turn) {
            (void)fabric->progress();
            if (!link->next(Traffic::calls, arrived)) continue;
            link->release(Traffic::calls);
            ++taken;
        }
        if (taken == i) break;
    }
    ASSERT_GT(taken, 64) << "too few credits for this test";
    for (int turn = 0; turn < 1'000'000 && (peer.credits.empty() || peer.credits.back() < taken * kLines); ++turn) {
        (void)peer.worker->progress();
        (void)fabric->progress();
    }
    ASSERT_FALSE(peer.credits.empty());
    EXPECT_EQ(peer.credits.back(), taken * kLines);
    EXPECT_TRUE(std::ranges::is_sorted(peer.credits));
    EXPECT_EQ(link->broken(), nullptr);
}

}  // namespace
}  // namespace rove::fabric
