// StreamLink: a Link over a stream socket that is connected already and whose two ends have authenticated each other.
//
// The sender fills a mirror of the peer's rings, and published frames are sent from the mirror: the lines are not written again
// before the peer has given credit for them, and credit for lines that were not sent ends the link. So data that the socket does not
// take stays where it is, and a peer that does not read costs only its rings.
//
// Arriving parts of a message are stored directly in the ring, except the signal word of its first frame, which is stored last,
// in a separate store with release, when the whole message has arrived (partner: RingReader::pending).
//
// Threads: as Fabric (fabric.hpp).
//
// Invariants: of each ring of the mirror, the lines before Sending::transmitted have been taken by the socket, and those from Sending::next
// on are in no message yet. At most one message is unfinished, and nothing else is sent before its rest.
#pragma once

#include <array>
#include <span>

#include "base/clock.hpp"
#include "fabric/fabric.hpp"
#include "fabric/mapped_region.hpp"
#include "fabric/stream/message.hpp"
#include "fabric/stream/socket.hpp"

namespace rove::fabric {

class StreamLanes;

class StreamLink final : public Link {
public:
    [[nodiscard]] static Result<std::unique_ptr<StreamLink>> open(StreamLanes& lanes, StreamSocket socket);
    ~StreamLink() override;

    // Empty, because the two ends are connected already.
    [[nodiscard]] const ByteBuffer& offer() const override { return offer_; }
    [[nodiscard]] Status connect(Bytes peer_offer) override;
    [[nodiscard]] Lane lane() const override { return Lane::message; }
    // Its frames arrive while StreamLanes makes progress, which then warms it.
    [[nodiscard]] bool can_be_cold() const override { return true; }

    // Called by StreamLanes: receives what has arrived, small parts by way of `scratch`: a bounded amount per call, so that other links get
    // their turn. Returns the number of messages that were completed; the end of the link counts as one.
    unsigned receive(std::span<std::byte> scratch);
    // Sends what waits, as much of it as the socket takes.
    void flush();
    // The same, called by StreamLanes after flush_later().
    void flush_gathered();
    // Whether the socket has taken less than there was to send.
    [[nodiscard]] bool is_blocked() const { return blocked_; }
    [[nodiscard]] int descriptor() const { return socket_.descriptor(); }
    // True, once, when nothing more is read from the link: the caller then takes its socket out of the epoll set.
    [[nodiscard]] bool end_watch() { return (at_end_ || !receives()) && std::exchange(watched_, false); }

protected:
    void transmit(Traffic traffic, std::uint64_t position, std::size_t bytes) override;
    void transmit_credit(Traffic traffic) override;
    [[nodiscard]] bool has_many_pages() const override;
    Pages free_pages() override;
    void wake_peer() override {}  // the message itself wakes the peer

private:
    // A message that is being sent.
    struct Outgoing {
        StreamHeader header;
        const std::byte* body = nullptr;
        std::uint64_t end = 0;  // the end of its lines
        [[nodiscard]] std::size_t bytes() const { return sizeof header + header.bytes; }
    };
    class Batch;

    StreamLink(StreamLanes& lanes, StreamSocket socket) : lanes_(lanes), socket_(std::move(socket)) {}
    [[nodiscard]] Outgoing cut(Traffic traffic, std::uint64_t from) const;
    void collect(Batch& batch) const;
    void collect_frames(Batch& batch, Traffic traffic) const;
    void begun(const Outgoing& message);
    void ended(const Outgoing& message);
    void account(const Batch& batch, std::size_t sent);
    void set_blocked(bool blocked);

    // Also true after a failed send, because data that the other end sent before it closed can still be read.
    [[nodiscard]] bool receives() const { return broken() == nullptr || has_ended(); }
    void take_in(Bytes bytes);
    void take_body(std::size_t bytes);
    [[nodiscard]] bool is_expected(const StreamHeader& header) const;
    void credit_arrived(const StreamHeader& header);
    void begin_message(const StreamHeader& header, Bytes signal);
    void end_message();
    void break_as_malformed(const StreamHeader& header);
    void lose(std::string_view why) noexcept;

    StreamLanes& lanes_;  // outlive the link
    StreamSocket socket_;
    ByteBuffer offer_;
    MappedRegion region_;  // the rings that the peer's messages fill
    MappedRegion mirror_;  // the mirror of the peer's rings

    struct Sending {
        std::uint64_t next = 0;         // the first line that no message begun so far contains
        std::uint64_t transmitted = 0;  // lines that the socket has taken
        std::uint64_t credited = 0;     // lines of these that the peer has given back
        bool credit_due = false;        // a credit for lines that this end has read is to be sent
    };
    std::array<Sending, kTrafficKinds> sending_{};
    Outgoing unfinished_;            // a message of which the socket has taken a part
    std::size_t unfinished_at_ = 0;  // the size of that part; 0: no message is unfinished
    TimePoint sent_at_{};
    bool blocked_ = false;
    bool gathering_ = false;  // StreamLanes will flush it
    bool watched_ = true;     // in StreamLanes' epoll set
    bool at_end_ = false;     // the end of the stream has been read

    std::array<std::uint64_t, kTrafficKinds> arrived_{};  // lines received
    StreamHeader incoming_header_;
    std::uint64_t incoming_signal_ = 0;
    std::byte* body_at_ = nullptr;
    std::size_t body_left_ = 0;
    // A header, with the signal word after it, that has not arrived completely.
    std::array<std::byte, sizeof(StreamHeader) + sizeof(std::uint64_t)> head_{};
    std::size_t head_bytes_ = 0;
    unsigned messages_ended_ = 0;
    std::array<std::uint64_t, kTrafficKinds> lines_read_when_freed_{};
};

}  // namespace rove::fabric
