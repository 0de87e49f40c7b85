// Messages over UCX: a peer's offer, and messages that are made by hand. (A trusted peer may still send wrong ones.)
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

}  // namespace
}  // namespace rove::fabric
