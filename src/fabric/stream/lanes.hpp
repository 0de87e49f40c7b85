// State that the stream links of one fabric share: the epoll descriptor that watches their sockets, and memory to receive through.
//
// Threads: as Fabric (fabric.hpp).
//
// Invariants: `links_` are the links that are open. A link is in `to_flush_` at most once, and only until flush() or its end. The socket of
// a link from which nothing more is read is not in the epoll set, where it would stay readable.
#pragma once

#include <memory>
#include <vector>

#include "fabric/stream/link.hpp"

namespace rove::fabric {

class StreamLanes {
public:
    // overloaded: no more descriptors.
    [[nodiscard]] static Result<std::unique_ptr<StreamLanes>> open();

    // Takes ownership of the socket.
    [[nodiscard]] Result<std::unique_ptr<Link>> open_stream(int socket, const StreamKeys& keys);
    unsigned progress();
    // Sends the frames that wait to be coalesced.
    void flush();
    [[nodiscard]] bool is_empty() const { return links_.empty(); }
    // Readable while data has arrived, or a socket that was full has room again.
    [[nodiscard]] int descriptor() const { return epoll_.number(); }

    // Used by the links.
    [[nodiscard]] Status add(StreamLink& link);
    void remove(StreamLink& link);
    void flush_later(StreamLink& link) noexcept;  // once until flush()
    void watch_room(StreamLink& link, bool wanted);

private:
    // Up to this many links are read without first asking epoll which of them have data, because a read that finds nothing takes about
    // as long as the query.
    static constexpr std::size_t kPolledMax = 2;
    static constexpr std::size_t kEventsMax = 64;  // per query; the kernel reports the sockets in turn
    static constexpr std::size_t kScratchBytes = 64 * 1024;

    explicit StreamLanes(Descriptor epoll) : epoll_(std::move(epoll)), scratch_(kScratchBytes) {}
    unsigned poll_each();
    unsigned poll_ready();
    unsigned receive(StreamLink& link);
    void forget(StreamLink& link);

    Descriptor epoll_;
    ByteBuffer scratch_;
    std::vector<StreamLink*> links_;
    std::vector<StreamLink*> to_flush_;  // has room for all of them
};

}  // namespace rove::fabric
