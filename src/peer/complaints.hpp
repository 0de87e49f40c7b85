// Log messages that peers can cause, at a bounded rate, so that they cannot fill a disk.
//
// Threads: any. Invariant: `said_` counts the messages since `since_`; the log has at most kLinesASecond of them.
#pragma once

#include <string_view>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"

namespace rove {

// Ten lines a second; those beyond are written for `debug` only. It has a lock of its own, under which nothing else is called.
class Complaints {
public:
    void say(std::string_view node, std::string_view text) EXCLUDES(mutex_) {
        if (may_say_more())
            log().warn("{}: {}", node, text);
        else
            log().debug("{}: {}", node, text);
    }

private:
    static constexpr unsigned kLinesASecond = 10;

    [[nodiscard]] bool may_say_more() EXCLUDES(mutex_) {
        const TimePoint now = Clock::now();
        const MutexLock lock(mutex_);
        if (now - since_ > std::chrono::seconds(1)) {
            since_ = now;
            said_ = 0;
        }
        return ++said_ <= kLinesASecond;
    }

    Mutex mutex_;
    TimePoint since_ GUARDED_BY(mutex_){};
    unsigned said_ GUARDED_BY(mutex_) = 0;
};

}  // namespace rove
