// What the stream links of one fabric share: the epoll descriptor that watches their sockets, and memory to receive through.
#pragma once

#include <memory>
#include <vector>

#include "fabric/stream/link.hpp"

namespace rove::fabric {

class StreamLanes {
public:
    // overloaded: no more descriptors.
    [[nodiscard]] static Result<std::unique_ptr<StreamLanes>> open();

    // Takes the socket.
    [[nodiscard]] Result<std::unique_ptr<Link>> open_stream(int socket, const StreamKeys& keys);
    unsigned progress();
    // Sends what waits for company.
    void flush();
    [[nodiscard]] bool is_empty() const { return links_.empty(); }
    // Readable while something has arrived, or a socket takes what it did not take before.
    [[nodiscard]] int descriptor() const { return epoll_.number(); }

    // For the links.
    [[nodiscard]] Status add(StreamLink& link);
    void remove(StreamLink& link);
    void flush_later(StreamLink& link);  // once until flush()
    void watch_room(StreamLink& link, bool wanted);

private:
    // Up to this many links are read without asking which have something: a read that finds nothing takes about as long as the
    // question.
    static constexpr std::size_t kPolledMax = 2;
    static constexpr std::size_t kEventsMax = 64;  // of one question; the kernel takes turns
    static constexpr std::size_t kScratchBytes = 64 * 1024;

    explicit StreamLanes(Descriptor epoll) : epoll_(std::move(epoll)), scratch_(kScratchBytes) {}
    unsigned poll_each();
    unsigned poll_ready();
    unsigned receive(StreamLink& link);
    void forget(StreamLink& link);

    Descriptor epoll_;
    ByteBuffer scratch_;
    std::vector<StreamLink*> links_;
    std::vector<StreamLink*> to_flush_;
};

}  // namespace rove::fabric
