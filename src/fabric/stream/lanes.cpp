#include "fabric/stream/lanes.hpp"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace rove::fabric {

Result<std::unique_ptr<StreamLanes>> StreamLanes::open() {
    Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll.is_open())
        return fail(ErrorCode::overloaded, "no epoll descriptor for a fabric ({}); raise the limit (ulimit -n)",
                    strerror(errno));
    return std::unique_ptr<StreamLanes>(new StreamLanes(std::move(epoll)));
}

Result<std::unique_ptr<Link>> StreamLanes::open_stream(int socket, const StreamKeys& keys) {
    ROVE_TRY(StreamSocket opened, StreamSocket::open(Descriptor(socket), keys));
    ROVE_TRY(std::unique_ptr<StreamLink> link, StreamLink::open(*this, std::move(opened)));
    return std::unique_ptr<Link>(std::move(link));
}

Status StreamLanes::add(StreamLink& link) {
    if (const std::size_t room = links_.size() + 1; to_flush_.capacity() < room || links_.capacity() < room) {
        to_flush_.reserve(2 * room);
        links_.reserve(2 * room);
    }
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &link}};
    if (epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, link.descriptor(), &event) != 0)
        return fail(ErrorCode::overloaded, "a stream's socket cannot be watched ({})", strerror(errno));
    links_.push_back(&link);
    return {};
}

void StreamLanes::remove(StreamLink& link) {
    forget(link);
    std::erase(links_, &link);
    std::erase(to_flush_, &link);
}

void StreamLanes::forget(StreamLink& link) {
    (void)epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, link.descriptor(), nullptr);
}

void StreamLanes::watch_room(StreamLink& link, bool wanted) {
    epoll_event event{.events = EPOLLIN | (wanted ? EPOLLOUT : 0U), .data = {.ptr = &link}};
    (void)epoll_ctl(epoll_.number(), EPOLL_CTL_MOD, link.descriptor(), &event);
}

void StreamLanes::flush_later(StreamLink& link) noexcept {
    to_flush_.push_back(&link);
}

void StreamLanes::flush() {
    for (StreamLink* link : to_flush_) link->flush_gathered();
    to_flush_.clear();
}

unsigned StreamLanes::progress() {
    flush();
    return links_.size() <= kPolledMax ? poll_each() : poll_ready();
}

unsigned StreamLanes::poll_each() {
    unsigned events = 0;
    for (StreamLink* link : links_) {
        if (link->is_blocked()) link->flush();
        events += receive(*link);
    }
    return events;
}

unsigned StreamLanes::poll_ready() {
    std::array<epoll_event, kEventsMax> ready;
    const int count = epoll_wait(epoll_.number(), ready.data(), ready.size(), 0);
    unsigned events = 0;
    for (int i = 0; i < count; ++i) {
        auto& link = *static_cast<StreamLink*>(ready[static_cast<std::size_t>(i)].data.ptr);
        if (link.is_blocked()) link.flush();
        events += receive(link);
    }
    return events;
}

unsigned StreamLanes::receive(StreamLink& link) {
    const unsigned events = link.receive(scratch_);
    if (link.end_watch()) forget(link);
    if (events > 0) link.warm();
    return events;
}

}  // namespace rove::fabric
