// StreamLink: a Link over a stream socket that is connected already and whose two ends have proved who they are.
//
// The sender fills a mirror of the peer's rings. What is published there is sent from there: the lines are not written again
// before the peer has given credit for them, and credit for what was not sent ends the link. So what the socket does not take
// waits where it is, and a peer that does not read costs nothing but its rings.
//
// What has arrived of a message goes straight into the ring, but for the signal word of its first frame, which is stored last,
// on its own and with release, when all of the message is there (partner: RingReader::pending).
#pragma once

#include <sys/uio.h>

#include <array>
#include <span>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "fabric/fabric.hpp"
#include "fabric/mapped_region.hpp"
#include "fabric/stream/message.hpp"

namespace rove::fabric {

class StreamLanes;

class StreamLink final : public Link {
public:
    [[nodiscard]] static Result<std::unique_ptr<StreamLink>> open(StreamLanes& lanes, Descriptor socket,
                                                                  const StreamKeys& keys);
    ~StreamLink() override;

    // There is nothing to offer: the two ends are connected.
    [[nodiscard]] const ByteBuffer& offer() const override { return offer_; }
    [[nodiscard]] Status connect(Bytes peer_offer) override;
    [[nodiscard]] std::string_view lane() const override { return "message"; }

    // For StreamLanes. Takes in what has arrived, through `scratch` where it is small: a bounded amount, so that others get
    // their turn. Returns how many messages ended, and counts the end of the link as one.
    unsigned receive(std::span<std::byte> scratch);
    // Sends what waits, as far as the socket takes it.
    void flush();
    // The same, as StreamLanes::flush_later() was asked to.
    void flush_gathered();
    // Whether the socket took less than there was.
    [[nodiscard]] bool is_blocked() const { return blocked_; }
    [[nodiscard]] int descriptor() const { return socket_.number(); }
    // True once, when nothing more is read from it: its socket would be readable for ever.
    [[nodiscard]] bool leaves_watch() { return (at_end_ || !receives()) && std::exchange(watched_, false); }

protected:
    void transmit(Traffic traffic, std::uint64_t position, std::size_t bytes) override;
    void transmit_credit(Traffic traffic) override;
    void ring() override {}  // a message wakes by itself

private:
    // A message that is being sent.
    struct Outgoing {
        StreamHeader header;
        const std::byte* body = nullptr;
        std::uint64_t end = 0;  // of its lines
        [[nodiscard]] std::size_t bytes() const { return sizeof header + header.bytes; }
    };
    class Batch;

    StreamLink(StreamLanes& lanes, Descriptor socket) : lanes_(lanes), socket_(std::move(socket)) {}
    [[nodiscard]] Outgoing cut(Traffic traffic, std::uint64_t from) const;
    void collect(Batch& batch) const;
    void collect_frames(Batch& batch, Traffic traffic) const;
    void begun(const Outgoing& message);
    void ended(const Outgoing& message);
    void account(const Batch& batch, std::size_t sent);
    void set_blocked(bool blocked);

    // Also where a send has failed: what the other end had sent before it closed is still there.
    [[nodiscard]] bool receives() const { return broken() == nullptr || has_ended(); }
    void take_in(Bytes bytes);
    void take_body(std::size_t bytes);
    [[nodiscard]] bool is_expected(const StreamHeader& header) const;
    void credit_arrived(const StreamHeader& header);
    void begin_message(const StreamHeader& header, Bytes signal);
    void end_message();
    void break_as_malformed(const StreamHeader& header);
    void lose(std::string_view why) noexcept;

    StreamLanes& lanes_;  // outlive it
    Descriptor socket_;
    ByteBuffer offer_;
    MappedRegion region_;  // what the peer sends
    MappedRegion mirror_;  // what the peer's rings will hold

    struct Sending {
        std::uint64_t next = 0;         // the first line of which no message has begun
        std::uint64_t transmitted = 0;  // lines that the socket has taken
        std::uint64_t credited = 0;     // of those, given back
        bool credit_due = false;        // for what this end has read
    };
    std::array<Sending, kTrafficKinds> sending_{};
    Outgoing unfinished_;            // of which the socket has taken a part
    std::size_t unfinished_at_ = 0;  // how much; 0: there is none
    TimePoint sent_at_{};
    bool blocked_ = false;
    bool gathering_ = false;  // StreamLanes will flush it
    bool watched_ = true;     // by StreamLanes' epoll
    bool at_end_ = false;     // all that will ever come has been read

    std::array<std::uint64_t, kTrafficKinds> arrived_{};  // lines
    StreamHeader incoming_header_;
    std::uint64_t incoming_signal_ = 0;
    std::byte* body_at_ = nullptr;
    std::size_t body_left_ = 0;
    // A header of which not all has arrived, and the signal word after it.
    std::array<std::byte, sizeof(StreamHeader) + sizeof(std::uint64_t)> head_{};
    std::size_t head_bytes_ = 0;
    unsigned messages_ended_ = 0;
};

}  // namespace rove::fabric
