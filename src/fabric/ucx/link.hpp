// UcxLink: a Link over UCX. The offer tells the peer where this side's Region is (shared memory) and how to send it messages
// (TCP); connect() takes the first of the two that works.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "fabric/fabric.hpp"
#include "fabric/mapped_region.hpp"
#include "fabric/ucx/worker.hpp"

namespace rove::fabric {

class UcxFabric;
struct UcxWorkers;

// What goes before each message: whose link, which ring, and where in it.
struct MessageHeader {
    std::uint64_t token = 0;     // the receiver's, unguessable: a worker's TCP port is open to everyone on this machine
    std::uint64_t position = 0;  // line, with the traffic in bit 63; for credits: lines given back
};
static_assert(sizeof(MessageHeader) == 16, "a call of 8 bytes stays at 56 on the wire");
inline constexpr std::uint64_t kTrafficBit = std::uint64_t{1} << 63U;

// Frames that share a message (kGatherFor) leave with the next progress() at the latest, or when there are so many bytes of them: what UCX
// sends over TCP in one piece (8 KiB) less its headers.
inline constexpr std::size_t kGatherBytes = 7 * 1024;

// What the messages of one link are read from.
struct MessageMemory {
    MappedRegion mirror;  // what the peer's rings will hold
    // One per line of a ring is free again when its frame has been credited.
    std::array<std::vector<MessageHeader>, kTrafficKinds> headers;
    std::array<std::array<MessageHeader, 32>, kTrafficKinds> credit_headers{};  // at most 8 banks are on their way
    unsigned on_their_way = 0;  // messages that UCX has not read yet; it may do so after their link has gone
};

class UcxLink final : public Link {
public:
    [[nodiscard]] static Result<std::unique_ptr<UcxLink>> open(UcxFabric& fabric, std::shared_ptr<UcxWorkers> workers);
    ~UcxLink() override;

    [[nodiscard]] const ByteBuffer& offer() const override { return offer_; }
    [[nodiscard]] Status connect(Bytes peer_offer) override;
    [[nodiscard]] std::string_view lane() const override {
        return remote_ != nullptr ? "direct" : messages_ ? "message" : "none";
    }

    // For the fabric: what its workers received for this link.
    void frames_arrived(const MessageHeader& header, Bytes bytes);
    void credit_arrived(const MessageHeader& header);
    void announce_sleep(bool asleep);
    // Since the sleep was announced.
    [[nodiscard]] bool was_rung() const {
        return std::atomic_ref(region_->asleep).load(std::memory_order_acquire) == 0;
    }
    // Sends the frames that wait for one another.
    void flush();
    [[nodiscard]] std::uint64_t token() const { return token_; }

protected:
    void transmit(Traffic traffic, std::uint64_t position, std::size_t bytes) override;
    void transmit_credit(Traffic traffic) override;
    void ring() override;

private:
    UcxLink(UcxFabric& fabric, std::shared_ptr<UcxWorkers> workers) : fabric_(fabric), workers_(std::move(workers)) {}
    [[nodiscard]] Status make_region();
    [[nodiscard]] Status connect_direct(Bytes address, Bytes key, std::uint64_t region);
    [[nodiscard]] Status connect_message(Bytes address);
    void drop_direct();
    void send_gathered(Traffic traffic);

    UcxFabric& fabric_;
    std::shared_ptr<UcxWorkers> workers_;
    std::uint64_t token_ = 0;
    std::uint64_t peer_token_ = 0;
    ByteBuffer offer_;
    Region* region_ = nullptr;     // this end's, for the peer to write
    ucp_mem_h handle_ = nullptr;   // of region_, where it is shared
    MappedRegion private_region_;  // region_, where it is not
    std::size_t key_bytes_ = 0;    // of the key to region_

    Region* remote_ = nullptr;  // direct: the peer's
    ucp_ep_h shm_endpoint_ = nullptr;
    ucp_rkey_h key_ = nullptr;

    std::unique_ptr<MessageMemory> messages_;  // null: the lane is direct
    ucp_ep_h tcp_endpoint_ = nullptr;
    struct Gathered {
        std::uint64_t position = 0;  // of the first frame
        std::size_t bytes = 0;       // 0: none
    };
    std::array<Gathered, kTrafficKinds> gathered_{};
    TimePoint sent_at_{};
    std::array<unsigned, kTrafficKinds> credits_sent_{};
    std::array<std::uint64_t, kTrafficKinds> arrived_{};  // message: lines received
};

}  // namespace rove::fabric
