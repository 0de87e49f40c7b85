#include "fabric/ucx/link.hpp"

#include <sodium.h>
#include <unistd.h>

#include "base/boot_id.hpp"
#include "fabric/region_file.hpp"
#include "fabric/ucx/fabric.hpp"

namespace rove::fabric {
namespace {

constexpr std::uint8_t kOfferVersion = 4;  // differs from every version of a direct link's offer (direct/link.cpp)

template <typename T>
Bytes raw(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

}  // namespace

Result<std::unique_ptr<UcxLink>> UcxLink::open(UcxFabric& fabric, std::shared_ptr<UcxWorkers> workers) {
    std::unique_ptr<UcxLink> link(new UcxLink(fabric, std::move(workers)));
    do {
        randombytes_buf(&link->token_, sizeof link->token_);
    } while (link->token_ == 0 || fabric.find(link->token_) != nullptr);
    ROVE_CHECK(link->make_region());
    for (std::size_t i = 0; i < kTrafficKinds; ++i)
        link->incoming_[i] = RingReader(link->region_->rings[i], link->token_);
    fabric.add(*link);
    return link;
}

Status UcxLink::make_region() {
    Writer offer;
    offer.number(kOfferVersion);
    offer.bytes(as_bytes(boot_id()));
    offer.number(token_);
    const UcxWorker* const shm = workers_->worker(Transport::shm);
    offer.text(shm != nullptr ? as_text(shm->address()) : std::string_view());
    ProcFile mailbox;
    if (shm != nullptr) {
        ROVE_TRY(Shared<Region> made, make_shared_memory<Region>());
        file_ = std::move(made.file);
        region_ = std::move(made.memory);
        ROVE_TRY(mailbox, ProcFile::of(file_.number()));
    } else {
        region_ = map_private_region();
        if (!region_) return fail(ErrorCode::overloaded, "no memory for a mailbox of {} bytes", sizeof(Region));
        populate(*region_);
    }
    offer.number(static_cast<std::uint32_t>(getpid()));
    mailbox.write_to(offer);
    region_->owner = token_;
    UcxWorker* tcp = workers_->worker(Transport::tcp);
    offer.text(tcp != nullptr ? as_text(tcp->address()) : std::string_view());
    offer_ = offer.take();
    return {};
}

Status UcxLink::connect(Bytes peer_offer) {
    Reader in(peer_offer);
    const auto version = in.number<std::uint8_t>();
    const std::string_view boot = as_text(in.take(kBootIdBytes));
    peer_token_ = in.number<std::uint64_t>();
    const std::string_view shm_address = in.text();
    const auto pid = in.number<std::uint32_t>();
    const ProcFile mailbox = ProcFile::read_from(in);
    const std::string_view tcp_address = in.text();
    if (!peer_offer.empty() && version != kOfferVersion)
        return fail(ErrorCode::unsupported,
                    "no transport reaches the peer: its offer is of another kind; are both ends started with the same "
                    "--fabric and one version of Rove?");
    if (!in.done())
        return fail(ErrorCode::invalid, "the peer's offer is malformed: it has {} bytes", peer_offer.size());
    Status direct = fail(ErrorCode::unsupported, "the two ends share no memory");
    if (workers_->worker(Transport::shm) != nullptr && !shm_address.empty() && boot == boot_id()) {
        direct = connect_direct(as_bytes(shm_address), pid, mailbox);
        if (direct || direct.error().code() != ErrorCode::unsupported) return direct;
    }
    if (workers_->worker(Transport::tcp) != nullptr && !tcp_address.empty())
        return connect_message(as_bytes(tcp_address));
    return fail(ErrorCode::unsupported,
                "no transport reaches the peer: {}; are both ends started with the same --fabric?",
                direct.error().message());
}

// The mailbox is mapped as a direct lane's is, and not by UCX. Before openucx/ucx#10380 (Debian 12 has 1.13, which is older)
// ucp_ep_rkey_unpack ended this process by SIGSEGV if the peer had died after making its offer. It also believes the address in the offer.
Status UcxLink::connect_direct(Bytes address, std::uint32_t pid, const ProcFile& mailbox) {
    ROVE_TRY(MappedRegion remote, map_peers_memory<Region>(pid, mailbox));
    ROVE_CHECK(check_owner(*remote, peer_token_, token_));
    ROVE_TRY(shm_endpoint_, workers_->worker(Transport::shm)->connect(address));
    remote_ = std::move(remote);
    wanted_ = &remote_->wanted;
    sleeper_pays_ = &fabric_.sleeper_pays();
    for (std::size_t i = 0; i < kTrafficKinds; ++i)
        outgoing_[i] = RingWriter(remote_->rings[i], &region_->credits[i], peer_token_);
    return {};
}

Status UcxLink::connect_message(Bytes address) {
    auto messages = std::make_unique<UcxSendMemory>();
    messages->mirror = map_private_region();
    if (!messages->mirror) return fail(ErrorCode::overloaded, "no memory for a mailbox of {} bytes", sizeof(Region));
    ROVE_TRY(tcp_endpoint_, workers_->worker(Transport::tcp)->connect(address));
    fabric_.count_message_link(1);
    by_messages_ = true;
    for (std::size_t i = 0; i < kTrafficKinds; ++i) {
        messages->headers[i].resize(kRingLines);
        outgoing_[i] = RingWriter(messages->mirror->rings[i], &region_->credits[i], peer_token_);
    }
    messages_ = std::move(messages);
    return {};
}

UcxLink::~UcxLink() {
    fabric_.remove(*this);
    if (tcp_endpoint_ != nullptr) fabric_.count_message_link(-1);
    if (messages_) workers_->leave(std::move(messages_));
    workers_.reset();
    fabric_.drop_unused_workers();
}

// Sends the frame in a message of its own if the lane has been quiet; otherwise coalesces frames into the next message.
void UcxLink::transmit(Traffic traffic, std::uint64_t position, std::size_t bytes) {
    if (tcp_endpoint_ == nullptr) return;
    Coalesced& coalesced = coalesced_[index_of(traffic)];
    if (coalesced.bytes > 0 && position % kRingLines == 0) send_coalesced(traffic);  // a message does not wrap
    if (coalesced.bytes == 0) coalesced.position = position;
    coalesced.bytes = (position - coalesced.position) * wire::kLineBytes + bytes;
    const TimePoint now = Clock::now();
    if (coalesced.bytes < kCoalescedBytesMax && now - sent_at_ <= kCoalesceFor) return;
    sent_at_ = now;
    send_coalesced_frames();
}

void UcxLink::flush() {
    send_coalesced_frames();
    for (const Traffic traffic : {Traffic::prompt, Traffic::calls})
        if (credit_due_[index_of(traffic)]) send_credit(traffic);
}

// Prompt frames first, so that code arrives before the call that needs it.
void UcxLink::send_coalesced_frames() {
    for (const Traffic traffic : {Traffic::prompt, Traffic::calls})
        if (coalesced_[index_of(traffic)].bytes > 0) send_coalesced(traffic);
}

void UcxLink::send_coalesced(Traffic traffic) {
    const Coalesced coalesced = std::exchange(coalesced_[index_of(traffic)], {});
    const std::size_t line = coalesced.position % kRingLines;
    UcxHeader& header = messages_->headers[index_of(traffic)][line];
    header = {peer_token_, coalesced.position | (traffic == Traffic::prompt ? kTrafficBit : 0)};
    const Bytes frames(messages_->mirror->rings[index_of(traffic)] + line * wire::kLineBytes, coalesced.bytes);
    if (const Status sent = workers_->worker(Transport::tcp)
                                ->send(tcp_endpoint_, kFramesId, raw(header), frames, &messages_->on_their_way);
        !sent)
        end_with(sent.error());
}

void UcxLink::transmit_credit(Traffic traffic) {
    const std::size_t i = index_of(traffic);
    if (remote_) {  // partner: RingWriter::load_credit
        std::atomic_ref(remote_->credits[i]).store(incoming_[i].given_back(), std::memory_order_release);
        return;
    }
    if (tcp_endpoint_ == nullptr) return;
    credit_due_[i] = true;
    flush();  // the frames first: a peer that has the credit for a call also has its reply
}

void UcxLink::send_credit(Traffic traffic) {
    const std::size_t i = index_of(traffic);
    auto& [header, on_its_way] = messages_->credits[i];
    if (on_its_way > 0) return;
    credit_due_[i] = false;
    header = {peer_token_, incoming_[i].given_back() | (traffic == Traffic::prompt ? kTrafficBit : 0)};
    if (const Status sent =
            workers_->worker(Transport::tcp)->send(tcp_endpoint_, kCreditId, raw(header), {}, &on_its_way);
        !sent)
        end_with(sent.error());
}

void UcxLink::credit_arrived(const UcxHeader& header) {
    const std::size_t i = (header.position & kTrafficBit) != 0 ? 1 : 0;
    // Checked when it is used: a credit may only grow, and not beyond what was sent.
    std::atomic_ref(region_->credits[i]).store(header.position & ~kTrafficBit, std::memory_order_release);
}

// One frame or several consecutive ones of the ring. The last one may be shortened by a frame's unused bytes or a filler's lines.
void UcxLink::frames_arrived(const UcxHeader& header, Bytes bytes) {
    const std::size_t i = (header.position & kTrafficBit) != 0 ? 1 : 0;
    const std::uint64_t position = header.position & ~kTrafficBit;
    const std::uint64_t lines = wire::lines_of(bytes.size());
    const std::size_t line = position % kRingLines;
    const std::uint64_t expected = arrived_[i];
    const std::uint64_t behind_filler = (expected + kRingLines - 1) / kRingLines * kRingLines;
    if ((position != expected && position != behind_filler) || bytes.size() < wire::kHeaderBytes ||
        line + lines > kRingLines || position + lines - incoming_[i].given_back() > kRingLines)
        return break_with(Error(ErrorCode::invalid, "the peer sent frames that do not fit the mailbox"));
    // The first signal is stored last, in a separate store, because a thread that has just lost the lead may still be polling it.
    std::byte* at = region_->rings[i] + line * wire::kLineBytes;
    std::uint64_t signal = 0;
    std::memcpy(&signal, bytes.data(), sizeof signal);
    std::memcpy(at + sizeof signal, bytes.data() + sizeof signal, bytes.size() - sizeof signal);
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(at)).store(signal, std::memory_order_release);
    arrived_[i] = position + lines;
}

void UcxLink::announce_sleep(bool asleep) {
    // Even if this side sends by messages, because the peer may be allowed to map memory that this side is not.
    std::atomic_ref(region_->wanted).store(asleep ? Wanted::bell : Wanted::nothing, std::memory_order_relaxed);
}

void UcxLink::wake_peer() {
    if (std::atomic_ref(remote_->wanted).exchange(Wanted::nothing, std::memory_order_relaxed) == Wanted::nothing)
        return;  // rung already
    static constexpr UcxHeader kNothing{};
    (void)workers_->worker(Transport::shm)->send(shm_endpoint_, kDoorbellId, raw(kNothing), {}, nullptr);
}

}  // namespace rove::fabric
