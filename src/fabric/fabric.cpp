#include "fabric/fabric.hpp"

namespace rove::fabric {
namespace {
constexpr std::size_t index_of(Traffic traffic) {
    return static_cast<std::size_t>(traffic);
}
}  // namespace

std::byte* Link::reserve(Traffic traffic, std::size_t frame_bytes) {
    RingWriter& ring = outgoing_[index_of(traffic)];
    if (broken_ || !ring.connected()) return nullptr;
    const std::uint64_t before = ring.head();
    bool filler = false;
    std::byte* frame = ring.reserve(frame_bytes, filler);
    if (filler) transmit(traffic, before, wire::kHeaderBytes);
    if (ring.credit_is_wrong()) {
        break_with(Error(ErrorCode::invalid, "the peer gave credit for frames that it was not sent"));
        return nullptr;
    }
    return frame;
}

void Link::publish(Traffic traffic, const wire::FrameHeader& header) {
    RingWriter& ring = outgoing_[index_of(traffic)];
    const std::uint64_t position = ring.head();
    const std::size_t bytes = (wire::kHeaderBytes + header.body_bytes + 7) / 8 * 8;
    ring.publish(header);
    ++counters_.frames_sent;
    counters_.bytes_sent += bytes;
    transmit(traffic, position, bytes);
    if (peer_asleep()) this->ring();
}

bool Link::next(Traffic traffic, wire::Frame& frame) {
    if (broken_) return false;
    const RingReader::Arrival arrival = incoming_[index_of(traffic)].next(frame);
    if (arrival == RingReader::Arrival::malformed)
        break_with(Error(ErrorCode::invalid, "the peer sent a malformed frame"));
    return arrival == RingReader::Arrival::frame;
}

void Link::release(Traffic traffic) {
    RingReader& ring = incoming_[index_of(traffic)];
    ring.release();
    ++counters_.frames_received;
    if (ring.credit_due()) transmit_credit(traffic);
}

std::uint64_t Link::hold(Traffic traffic) {
    ++counters_.frames_received;
    return incoming_[index_of(traffic)].hold();
}

void Link::let_go(Traffic traffic, std::uint64_t held) {
    RingReader& ring = incoming_[index_of(traffic)];
    ring.let_go(held);
    if (ring.credit_due()) transmit_credit(traffic);
}

bool Link::pending() const {
    return !broken_ && (incoming_[0].pending() || incoming_[1].pending());
}

void Link::await(std::vector<AwaitedSignal>& signals) const {
    for (const RingReader& ring : incoming_) signals.push_back({ring.next_word(), ring.awaited()});
}

void Link::break_with(Error why) {
    if (!broken_) broken_ = std::move(why);
}

std::uint64_t Link::lines_credited(Traffic traffic) {
    RingWriter& ring = outgoing_[index_of(traffic)];
    return ring.connected() ? ring.credited() : 0;
}

}  // namespace rove::fabric
