// UcxLink: a Link over UCX. The offer contains the memory file of this side's Region, with the address at which UCX rings for it, and the address
// for messages (TCP); connect() uses the first of the two that works.
//
// Threads: as Fabric (../fabric.hpp).
//
// Invariant: either `remote_` is set (direct), or `messages_` is, or neither before connect(). What UCX may still read when the link ends
// is given to its workers (UcxWorkers::leave).
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "fabric/fabric.hpp"
#include "fabric/mapped_region.hpp"
#include "fabric/proc_file.hpp"
#include "fabric/ucx/worker.hpp"

namespace rove::fabric {

class UcxFabric;
struct UcxWorkers;

// The header of each message: the link, the ring, and the position in the ring.
struct UcxHeader {
    // The receiver's; unguessable, because every program on this machine can reach a worker's TCP port.
    std::uint64_t token = 0;
    std::uint64_t position = 0;  // line, with the traffic in bit 63; for credits: lines given back
};
static_assert(sizeof(UcxHeader) == 16, "a call of 8 bytes stays at 56 on the wire");
inline constexpr std::uint64_t kTrafficBit = std::uint64_t{1} << 63U;

// Coalesced frames (kCoalesceFor) are sent by the next progress() at the latest, or when they have this many bytes: the size that UCX
// sends over TCP in one piece (8 KiB), without its headers.
inline constexpr std::size_t kCoalescedBytesMax = 7 * 1024;

// The memory from which UCX reads the messages of one link.
struct UcxSendMemory {
    MappedRegion mirror;  // the mirror of the peer's rings
    // One header per line of a ring; it is free again when its frame has been credited.
    std::array<std::vector<UcxHeader>, kTrafficKinds> headers;
    // Of each ring one credit at most is in transit. A later one says what all before it did, and waits for its place.
    struct Credit {
        UcxHeader header;
        unsigned on_its_way = 0;  // 1: UCX has not read the header yet
    };
    std::array<Credit, kTrafficKinds> credits{};
    unsigned on_their_way = 0;  // messages with frames that UCX has not read yet
    // UCX may read from it also after the link has ended.
    [[nodiscard]] bool is_in_use() const {
        return on_their_way > 0 || std::ranges::any_of(credits, [](const Credit& each) { return each.on_its_way > 0; });
    }
};

class UcxLink final : public Link {
public:
    [[nodiscard]] static Result<std::unique_ptr<UcxLink>> open(UcxFabric& fabric, std::shared_ptr<UcxWorkers> workers);
    ~UcxLink() override;

    [[nodiscard]] const ByteBuffer& offer() const override { return offer_; }
    [[nodiscard]] Status connect(Bytes peer_offer) override;
    [[nodiscard]] Lane lane() const override { return remote_ ? Lane::direct : messages_ ? Lane::message : Lane::none; }
    void settled() override { file_.close(); }

    // Called by the fabric with messages that its workers received for this link.
    void frames_arrived(const UcxHeader& header, Bytes bytes);
    void credit_arrived(const UcxHeader& header);
    void announce_sleep(bool asleep);
    // Whether it was rung since the sleep was announced.
    [[nodiscard]] bool was_rung() const {
        return std::atomic_ref(region_->wanted).load(std::memory_order_acquire) == Wanted::nothing;
    }
    // Sends the frames that wait to be coalesced, and the credit that waits for an earlier one.
    void flush();
    [[nodiscard]] std::uint64_t token() const { return token_; }

protected:
    void transmit(Traffic traffic, std::uint64_t position, std::size_t bytes) override;
    void transmit_credit(Traffic traffic) override;
    void wake_peer() override;

private:
    UcxLink(UcxFabric& fabric, std::shared_ptr<UcxWorkers> workers) : fabric_(fabric), workers_(std::move(workers)) {}
    [[nodiscard]] Status make_region();
    [[nodiscard]] Status connect_direct(Bytes address, std::uint32_t pid, const ProcFile& mailbox);
    [[nodiscard]] Status connect_message(Bytes address);
    void send_coalesced(Traffic traffic);
    void send_coalesced_frames();
    void send_credit(Traffic traffic);

    UcxFabric& fabric_;
    std::shared_ptr<UcxWorkers> workers_;
    std::uint64_t token_ = 0;
    std::uint64_t peer_token_ = 0;
    ByteBuffer offer_;
    Descriptor file_;      // the file of region_, if it is shared, until the peer has mapped it
    MappedRegion region_;  // this end's region, which the peer writes

    MappedRegion remote_;  // direct: the peer's region
    ucp_ep_h shm_endpoint_ = nullptr;

    std::unique_ptr<UcxSendMemory> messages_;  // null: the lane is direct
    ucp_ep_h tcp_endpoint_ = nullptr;
    struct Coalesced {
        std::uint64_t position = 0;  // the position of the first frame
        std::size_t bytes = 0;       // 0: no frames
    };
    std::array<Coalesced, kTrafficKinds> coalesced_{};
    TimePoint sent_at_{};
    std::array<bool, kTrafficKinds> credit_due_{};        // message
    std::array<std::uint64_t, kTrafficKinds> arrived_{};  // message: lines received
};

}  // namespace rove::fabric
