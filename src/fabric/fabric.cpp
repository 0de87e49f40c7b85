#include "fabric/fabric.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace rove::fabric {

// Handles the cases at the ring's end, without credit, or with a wrong credit.
std::byte* Link::reserve_rarely(Traffic traffic, std::size_t frame_bytes) {
    if (pages_are_lent_) take_pages_back(/*wanted=*/true);
    RingWriter& ring = outgoing_[index_of(traffic)];
    const std::uint64_t before = ring.head();
    std::byte* frame = ring.reserve_rarely(frame_bytes);
    if (ring.head() != before && by_messages_) transmit(traffic, before, wire::kHeaderBytes);  // a filler
    if (!ring.credit_is_wrong()) return frame;
    break_with(Error(ErrorCode::invalid, "the peer gave credit for frames that it was not sent"));
    return nullptr;
}

bool Link::tend_memory() {
    const std::uint64_t frames = counters_.frames_sent + counters_.frames_received;
    const std::uint64_t since = frames - std::exchange(frames_when_tended_, frames);
    has_pages_ = has_pages_ || since > 0;
    if (pages_are_lent_) take_pages_back(/*wanted=*/false);
    if (!has_pages_ || broken_ || pages_are_lent_ || since > kFewFrames) return false;
    for (const Traffic traffic : {Traffic::calls, Traffic::prompt})
        if (incoming_[index_of(traffic)].take_credit()) transmit_credit(traffic);
    for (RingWriter& ring : outgoing_)
        if (!ring.connected() || !ring.is_drained()) return false;
    if (since > 0 && !has_many_pages()) return false;
    const Pages pages = free_pages();
    has_pages_ = pages == Pages::kept;
    pages_are_lent_ = pages == Pages::being_freed;
    for (RingWriter& ring : outgoing_)
        if (pages == Pages::freed)
            ring.forget_pages();
        else if (pages_are_lent_)
            ring.lend_pages();
    return !has_pages_;
}

// wanted: for a frame that may not fit the page that stays. What has not begun is not waited for then, because other peers can hold up all threads
// that do it.
void Link::take_pages_back(bool wanted) {
    const bool stay = wanted && keep_pages();
    if (!stay && !pages_are_free()) return;
    for (RingWriter& ring : outgoing_) stay ? ring.keep_pages() : ring.forget_pages();
    has_pages_ = has_pages_ || stay;
    pages_are_lent_ = false;
}

void Link::break_with_malformed() {
    break_with(Error(ErrorCode::invalid, "the peer sent a malformed frame"));
}

std::uint64_t Link::hold(Traffic traffic) noexcept {
    ++counters_.frames_received;
    return incoming_[index_of(traffic)].hold();
}

void Link::let_go(Traffic traffic, std::uint64_t held) {
    RingReader& ring = incoming_[index_of(traffic)];
    ring.let_go(held);
    if (ring.take_due_credit()) transmit_credit(traffic);
}

void Link::await(std::vector<AwaitedSignal>& signals, bool calls_too) const {
    for (const Traffic traffic : {Traffic::calls, Traffic::prompt}) {
        const RingReader& ring = incoming_[index_of(traffic)];
        if (traffic == Traffic::prompt || calls_too) signals.push_back({ring.next_word(), ring.awaited()});
    }
}

void Link::break_with(Error why) {
    if (broken_ && !ended_) return;
    broken_ = std::move(why);
    ended_ = false;
    warm();
}

void Link::end_with(Error why) {
    if (broken_) return;
    broken_ = std::move(why);
    ended_ = true;
    warm();
}

void Fabric::cool(std::span<Link* const> links) noexcept {
    const std::size_t before = cold_links_.cold().size();
    try {
        for (Link* const link : links)
            if (link->can_be_cold() && !link->is_cold() && !link->is_reported_next()) cold_links_.add(*link);
    } catch (const std::bad_alloc&) {  // the others stay warm
    }
    if (cold_links_.cold().size() == before) return;
    settle_announcements();
    // From the end, because another link takes the place of one that becomes warm.
    for (std::size_t place = cold_count(); place > before; --place) warm_if_pending(place - 1);
}

void Fabric::take_board() noexcept {
    if (!board_->take()) return;
    settle_announcements();
    board_->look_at_doubted();
}

// Several at a time, because what shows whether a frame has arrived is in nobody's cache: it is fetched for all of them together. Without memory for
// the list it looks the next time.
void Fabric::look_at_cold(std::size_t links) noexcept try {
    constexpr std::size_t kTogether = 16;
    std::vector<AwaitedSignal> words;
    words.reserve(kTogether * kTrafficKinds);
    links = std::min(links, cold_count());
    while (links > 0 && has_cold()) {
        if (looked_at_ == 0 || looked_at_ > cold_count()) looked_at_ = cold_count();
        const std::size_t some = std::min({links, looked_at_, kTogether});
        words.clear();
        for (std::size_t ahead = 1; ahead <= some; ++ahead)
            static_cast<const Link&>(*cold_links_.cold()[looked_at_ - ahead]).await(words, /*calls_too=*/true);
        for (const AwaitedSignal& each : words) __builtin_prefetch(each.word);
        for (std::size_t left = some; left > 0; --left) warm_if_pending(--looked_at_);
        links -= some;
    }
} catch (const std::bad_alloc&) {
}

void Fabric::warm_if_pending(std::size_t place) noexcept {
    MayBeCold& link = *cold_links_.cold()[place];
    if (static_cast<const Link&>(link).pending()) link.warm();
}

Result<std::unique_ptr<Link>> Fabric::open_stream(int socket, const StreamKeys&) {
    close(socket);
    return fail(ErrorCode::unsupported, "the fabric {} has no lanes over sockets", name());
}

// A direct peer can write to this memory, so each header is copied once, and checked like a header that arrives.
std::vector<ByteBuffer> Link::untaken(Traffic traffic) {
    RingWriter& ring = outgoing_[index_of(traffic)];
    std::vector<ByteBuffer> frames;
    if (!ring.connected()) return frames;
    for (std::uint64_t at = ring.credited(); at < ring.head();) {
        const std::byte* const place = ring.memory() + at % kRingLines * wire::kLineBytes;
        wire::FrameHeader header;
        std::memcpy(&header, place, sizeof header);
        const std::uint64_t lines = wire::lines_of(header);
        if (!wire::is_well_formed(header) || lines > kRingLines - at % kRingLines || lines > ring.head() - at) break;
        if (header.kind != wire::Kind::filler) {
            ByteBuffer& frame = frames.emplace_back(wire::kHeaderBytes + header.body_bytes);
            std::memcpy(frame.data(), &header, sizeof header);
            std::memcpy(frame.data() + sizeof header, place + sizeof header, header.body_bytes);
        }
        at += lines;
    }
    return frames;
}

std::uint64_t Link::lines_credited(Traffic traffic) {
    RingWriter& ring = outgoing_[index_of(traffic)];
    return ring.connected() ? ring.credited() : 0;
}

}  // namespace rove::fabric
