// Log messages that peers can cause, at a bounded rate, so that they cannot fill a disk.
#pragma once

#include <string_view>

#include "base/clock.hpp"
#include "base/log.hpp"

namespace rove {

// Ten lines a second; those beyond are for whoever asks for `debug`. Not locked: each belongs to one thread, or to what a lock guards.
class Complaints {
public:
    void say(std::string_view node, std::string_view text) {
        const TimePoint now = Clock::now();
        if (now - since_ > std::chrono::seconds(1)) {
            since_ = now;
            said_ = 0;
        }
        if (++said_ <= kLinesASecond)
            log().warn("{}: {}", node, text);
        else
            log().debug("{}: {}", node, text);
    }

private:
    static constexpr unsigned kLinesASecond = 10;
    TimePoint since_{};
    unsigned said_ = 0;
};

}  // namespace rove
