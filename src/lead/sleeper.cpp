#include "lead/sleeper.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace rove {

Sleeper::~Sleeper() {
    if (epoll_ >= 0) close(epoll_);
    if (event_ >= 0) close(event_);
}

Status Sleeper::open(const std::vector<int>& descriptors) {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (epoll_ < 0 || event_ < 0)
        return fail(ErrorCode::overloaded, "no more file descriptors ({}); raise the limit (ulimit -n)",
                    strerror(errno));
    const auto watch = [this](int descriptor) {
        epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
        return epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0;
    };
    bool watched = watch(event_);
    for (const int descriptor : descriptors) watched = watched && watch(descriptor);
    if (!watched) return fail(ErrorCode::internal, "cannot watch the fabric's descriptors ({})", strerror(errno));
    return {};
}

std::cv_status Sleeper::sleep(std::optional<TimePoint> deadline) {
    int timeout_ms = -1;
    if (deadline) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
        timeout_ms = static_cast<int>(std::clamp<long>(left, 0, 3'600'000));
    }
    std::array<epoll_event, 8> events{};
    const int ready = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), timeout_ms);
    const auto end = events.begin() + std::max(ready, 0);
    if (std::any_of(events.begin(), end, [this](const epoll_event& each) { return each.data.fd == event_; })) {
        std::uint64_t kicks = 0;
        (void)!read(event_, &kicks, sizeof kicks);  // forgets the kicks that ended this sleep
    }
    return ready == 0 ? std::cv_status::timeout : std::cv_status::no_timeout;
}

void Sleeper::kick() noexcept {
    const std::uint64_t one = 1;
    (void)!write(event_, &one, sizeof one);
}

}  // namespace rove
