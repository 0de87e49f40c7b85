#include "fabric/stream/link.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "fabric/stream/lanes.hpp"

namespace rove::fabric {
namespace {

// The most reads of one progress(), for a peer that never stops sending: each reads the rest of one frame and up to the lanes' scratch.
constexpr unsigned kReadsMax = 2;
constexpr std::size_t kSignalBytes = sizeof(wire::FrameHeader::signal);

constexpr bool is_credit(StreamKind kind) {
    return kind == StreamKind::credit_of_calls || kind == StreamKind::credit_of_prompt;
}
// Precondition: the kind is one of the four.
constexpr std::size_t index_of(StreamKind kind) {
    return kind == StreamKind::prompt || kind == StreamKind::credit_of_prompt ? 1 : 0;
}
static_assert(index_of(Traffic::prompt) == index_of(StreamKind::prompt));

// Plain bytes of a frame whose signal is not stored yet. tests/tsan.supp names the function.
void copy_into_ring(std::byte* at, Bytes bytes) {
    std::memcpy(at, bytes.data(), bytes.size());
}

}  // namespace

// ---- opening

Result<std::unique_ptr<StreamLink>> StreamLink::open(StreamLanes& lanes, StreamSocket socket) {
    std::unique_ptr<StreamLink> link(new StreamLink(lanes, std::move(socket)));
    link->region_ = map_private_region();
    link->mirror_ = map_private_region();
    if (!link->region_ || !link->mirror_)
        return fail(ErrorCode::overloaded, "no memory for mailboxes of {} bytes", sizeof(Region));
    // Their pages come as they are used: that takes little time beside the system call for a message.
    link->by_messages_ = true;
    for (std::size_t i = 0; i < kTrafficKinds; ++i) {
        link->incoming_[i] = RingReader(link->region_->rings[i], link->socket_.keys().incoming);
        link->outgoing_[i] =
            RingWriter(link->mirror_->rings[i], &link->region_->credits[i], link->socket_.keys().outgoing);
    }
    ROVE_CHECK(lanes.add(*link));
    return link;
}

StreamLink::~StreamLink() {
    if (broken() == nullptr) flush();
    lanes_.remove(*this);
}

Status StreamLink::connect(Bytes peer_offer) {
    if (peer_offer.empty()) return {};
    return fail(ErrorCode::invalid, "a stream needs no offer, and the peer made one of {} bytes", peer_offer.size());
}

// Also called in the destructor, and when memory has run out; the message is then one that fits into the string object itself.
void StreamLink::lose(std::string_view why) noexcept {
    try {
        end_with(Error(ErrorCode::disconnected, fmt::format("the stream to the peer ended ({})", why)));
    } catch (const std::bad_alloc&) {
        end_with(Error(ErrorCode::disconnected, "stream ended"));
    }
    ++messages_ended_;
}

// ---- sending

// The messages of one system call, the unfinished one first.
class StreamLink::Batch {
public:
    static constexpr std::size_t kMost = 8;

    [[nodiscard]] bool is_full() const { return count_ == kMost; }
    void add(const Outgoing& message, std::size_t at = 0) {
        messages_[count_++] = message;
        const auto* header = reinterpret_cast<const std::byte*>(&messages_[count_ - 1].header);
        if (at < sizeof message.header) add_part(header + at, sizeof message.header - at);
        const std::size_t body_at = std::max(at, sizeof message.header) - sizeof message.header;
        if (body_at < message.header.bytes) add_part(message.body + body_at, message.header.bytes - body_at);
    }
    [[nodiscard]] std::span<const Outgoing> messages() const { return {messages_.data(), count_}; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] std::span<iovec> parts() { return {parts_.data(), parts_count_}; }

private:
    void add_part(const std::byte* at, std::size_t bytes) {
        parts_[parts_count_++] = {const_cast<std::byte*>(at), bytes};
        bytes_ += bytes;
    }

    std::array<Outgoing, kMost> messages_;
    std::array<iovec, 2 * kMost> parts_;
    std::size_t count_ = 0, parts_count_ = 0, bytes_ = 0;
};

void StreamLink::transmit(Traffic, std::uint64_t, std::size_t) {
    if (blocked_) return;  // the frame is sent when the socket takes more
    std::uint64_t lines = 0;
    for (std::size_t i = 0; i < kTrafficKinds; ++i) lines += outgoing_[i].head() - sending_[i].next;
    if (lines < kStreamCoalescedBytes / wire::kLineBytes / 2 && Clock::now() - sent_at_ <= kCoalesceFor) {
        if (!std::exchange(gathering_, true)) lanes_.flush_later(*this);
        return;
    }
    flush();
    sent_at_ = Clock::now();
}

void StreamLink::flush_gathered() {
    gathering_ = false;
    flush();
}

void StreamLink::transmit_credit(Traffic traffic) {
    sending_[index_of(traffic)].credit_due = true;
    if (!blocked_) flush();
}

// The frames from a line on that are sent in one message: consecutive frames of the mirror, up to the ring's end. The last
// one is cut off after its used bytes.
StreamLink::Outgoing StreamLink::cut(Traffic traffic, std::uint64_t from) const {
    const RingWriter& ring = outgoing_[index_of(traffic)];
    const std::byte* const begin = ring.memory() + from % kRingLines * wire::kLineBytes;
    std::uint64_t lines = 0;
    std::size_t bytes = 0;
    while (from + lines < ring.head() && (lines == 0 || (from + lines) % kRingLines != 0)) {
        const std::size_t offset = lines * wire::kLineBytes;
        wire::FrameHeader frame;
        std::memcpy(&frame, begin + offset, sizeof frame);
        const std::size_t used =
            frame.kind == wire::Kind::filler ? wire::kHeaderBytes : round_up(wire::kHeaderBytes + frame.body_bytes, 8);
        if (lines > 0 && offset + used > kStreamCoalescedBytes) break;
        bytes = offset + used;
        lines += wire::lines_of(frame);
    }
    Outgoing message;
    message.header.bytes = static_cast<std::uint32_t>(bytes);
    message.header.kind = traffic == Traffic::prompt ? StreamKind::prompt : StreamKind::calls;
    message.header.position = from;
    message.body = begin;
    message.end = from + lines;
    return message;
}

// Prompt frames before calls, so that code arrives before the call that needs it. Prompt frames before credit, so that a peer that has the credit
// for a call also has its reply, if the reply had room in the ring.
void StreamLink::collect(Batch& batch) const {
    if (unfinished_at_ > 0) batch.add(unfinished_, unfinished_at_);
    collect_frames(batch, Traffic::prompt);
    for (const Traffic traffic : {Traffic::calls, Traffic::prompt}) {
        if (!sending_[index_of(traffic)].credit_due || batch.is_full()) continue;
        Outgoing credit;
        credit.header.kind = traffic == Traffic::prompt ? StreamKind::credit_of_prompt : StreamKind::credit_of_calls;
        credit.header.position = incoming_[index_of(traffic)].given_back();
        batch.add(credit);
    }
    collect_frames(batch, Traffic::calls);
}

void StreamLink::collect_frames(Batch& batch, Traffic traffic) const {
    std::uint64_t from = sending_[index_of(traffic)].next;
    while (from < outgoing_[index_of(traffic)].head() && !batch.is_full()) {
        const Outgoing message = cut(traffic, from);
        batch.add(message);
        from = message.end;
    }
}

void StreamLink::begun(const Outgoing& message) {
    Sending& sending = sending_[index_of(message.header.kind)];
    if (is_credit(message.header.kind))
        sending.credit_due = false;
    else
        sending.next = message.end;
}

void StreamLink::ended(const Outgoing& message) {
    if (!is_credit(message.header.kind)) sending_[index_of(message.header.kind)].transmitted = message.end;
}

void StreamLink::account(const Batch& batch, std::size_t sent) {
    for (const Outgoing& message : batch.messages()) {
        // The rest of the first message; the others are complete.
        const std::size_t left = message.bytes() - unfinished_at_;
        if (sent == 0) return;
        if (unfinished_at_ == 0) begun(message);
        if (sent < left) {
            unfinished_ = message;
            unfinished_at_ += sent;
            return;
        }
        ended(message);
        unfinished_at_ = 0;
        sent -= left;
    }
}

void StreamLink::flush() {
    while (broken() == nullptr) {
        Batch batch;
        collect(batch);
        if (batch.messages().empty()) return set_blocked(false);
        const StreamSocket::Moved sent = socket_.send(batch.parts());
        if (!sent.end.empty()) return lose(sent.end);
        account(batch, sent.bytes);
        if (sent.bytes < batch.bytes()) return set_blocked(true);
    }
}

bool StreamLink::has_many_pages() const {
    for (std::size_t i = 0; i < kTrafficKinds; ++i)
        if (incoming_[i].tail() - lines_read_when_freed_[i] > kLinesAtFirst) return true;
    return Link::has_many_pages();
}

// The mirror's lines were sent, and given back. The region's are this end's alone, so it may free those that it has given back; a peer that has
// begun a message has its bytes copied straight to their place.
StreamLink::Pages StreamLink::free_pages() {
    for (std::size_t i = 0; i < kTrafficKinds; ++i) {
        free_pages_of(mirror_->rings[i], outgoing_[i].pages().touched(), outgoing_[i].kept(), MADV_DONTNEED);
        if (body_left_ == 0 && incoming_[i].is_empty(arrived_[i]))
            free_pages_of(region_->rings[i], kRingLines, {incoming_[i].tail(), incoming_[i].tail()}, MADV_DONTNEED);
        lines_read_when_freed_[i] = incoming_[i].tail();
    }
    return Pages::freed;
}

void StreamLink::set_blocked(bool blocked) {
    if (std::exchange(blocked_, blocked) != blocked) lanes_.watch_room(*this, blocked);
}

// ---- receiving

unsigned StreamLink::receive(std::span<std::byte> scratch) {
    messages_ended_ = 0;
    for (unsigned reads = 0; reads < kReadsMax && receives() && !at_end_; ++reads) {
        // First the rest of the message that has begun, to its place in the ring; the bytes after it to the scratch memory.
        std::memcpy(scratch.data(), head_.data(), head_bytes_);
        std::array<iovec, 2> parts{iovec{body_at_, body_left_},
                                   iovec{scratch.data() + head_bytes_, scratch.size() - head_bytes_}};
        const std::size_t room = parts[0].iov_len + parts[1].iov_len;
        const StreamSocket::Moved got = socket_.receive(parts);
        if (!got.end.empty()) {
            at_end_ = true;
            lose(got.end);
        } else if (got.bytes > 0) {
            const std::size_t in_place = std::min(got.bytes, body_left_);
            take_body(in_place);
            const std::size_t head = std::exchange(head_bytes_, 0);
            if (const std::size_t more = head + got.bytes - in_place; more > 0) take_in(scratch.first(more));
        }
        if (got.bytes < room) break;
    }
    return messages_ended_;
}

// Takes the bytes in the order in which they were sent.
void StreamLink::take_in(Bytes bytes) {
    while (!bytes.empty() && receives()) {
        if (body_left_ > 0) {
            const std::size_t size = std::min(bytes.size(), body_left_);
            copy_into_ring(body_at_, bytes.first(size));
            take_body(size);
            bytes = bytes.subspan(size);
            continue;
        }
        StreamHeader header;
        const bool whole = bytes.size() >= sizeof header;
        if (whole) {
            std::memcpy(&header, bytes.data(), sizeof header);
            if (!is_expected(header)) return break_as_malformed(header);
        }
        if (whole && is_credit(header.kind)) {
            credit_arrived(header);
            bytes = bytes.subspan(sizeof header);
        } else if (bytes.size() >= head_.size()) {
            begin_message(header, bytes.subspan(sizeof header, kSignalBytes));
            bytes = bytes.subspan(head_.size());
        } else {  // the rest arrives later
            std::memcpy(head_.data(), bytes.data(), bytes.size());
            head_bytes_ = bytes.size();
            return;
        }
    }
}

// The only check of a header: no field is used before it.
bool StreamLink::is_expected(const StreamHeader& header) const {
    for (const std::uint8_t byte : header.reserved)
        if (byte != 0) return false;
    if (header.kind == StreamKind::none || header.kind > StreamKind::credit_of_prompt) return false;
    const std::size_t i = index_of(header.kind);
    if (is_credit(header.kind))  // a credit may only grow, and not beyond what was sent
        return header.bytes == 0 && header.position >= sending_[i].credited &&
               header.position <= sending_[i].transmitted;
    const std::uint64_t behind_filler = round_up(arrived_[i], kRingLines);
    const std::uint64_t lines = wire::lines_of(header.bytes);
    return header.bytes >= wire::kHeaderBytes && header.bytes <= kStreamMessageBytesMax &&
           (header.position == arrived_[i] || header.position == behind_filler) &&
           header.position % kRingLines + lines <= kRingLines &&
           header.position + lines - incoming_[i].given_back() <= kRingLines;
}

void StreamLink::credit_arrived(const StreamHeader& header) {
    const std::size_t i = index_of(header.kind);
    sending_[i].credited = header.position;
    std::atomic_ref(region_->credits[i]).store(header.position, std::memory_order_release);
    ++messages_ended_;
}

void StreamLink::begin_message(const StreamHeader& header, Bytes signal) {
    incoming_header_ = header;
    std::memcpy(&incoming_signal_, signal.data(), sizeof incoming_signal_);
    body_at_ = region_->rings[index_of(header.kind)] + header.position % kRingLines * wire::kLineBytes + kSignalBytes;
    body_left_ = header.bytes - kSignalBytes;
}

void StreamLink::take_body(std::size_t bytes) {
    if (bytes == 0) return;
    body_at_ += bytes;
    body_left_ -= bytes;
    if (body_left_ == 0) end_message();
}

// The first signal is stored last, in a separate store, because a thread that has just lost the lead may still be polling it.
void StreamLink::end_message() {
    const std::size_t i = index_of(incoming_header_.kind);
    std::byte* at = region_->rings[i] + incoming_header_.position % kRingLines * wire::kLineBytes;
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(at)).store(incoming_signal_, std::memory_order_release);
    arrived_[i] = incoming_header_.position + wire::lines_of(incoming_header_.bytes);
    ++messages_ended_;
}

void StreamLink::break_as_malformed(const StreamHeader& header) {
    break_with(
        Error(ErrorCode::invalid, fmt::format("the peer sent a malformed message (kind {}, {} bytes, position {})",
                                              static_cast<unsigned>(header.kind), header.bytes, header.position)));
    ++messages_ended_;
}

}  // namespace rove::fabric
