// Looks now and then whether the piece of work that a process does is within its bounds.
//
// Threads: one, which is not the one that works.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "code/jit/jit.hpp"

namespace rove::code::jit {

// This process's memory that is no file's, in bytes; 0: it is not told.
[[nodiscard]] inline std::size_t memory_of_process() {
    const Descriptor file(open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
    std::array<char, 128> text{};
    if (!file.is_open() || read(file.number(), text.data(), text.size() - 1) <= 0) return 0;
    char* next = nullptr;
    (void)std::strtoull(text.data(), &next, 10);
    const std::size_t resident = std::strtoull(next, &next, 10), shared = std::strtoull(next, &next, 10);
    return (resident - std::min(resident, shared)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

class Watch {
public:
    // `working` outlives this.
    Watch(const Bounds& bounds, pthread_t working) : bounds_(bounds) {
        if (pthread_getcpuclockid(working, &clock_) != 0) clock_ = CLOCK_PROCESS_CPUTIME_ID;
        used_ = begun_ = used_now();
    }

    // In words: beyond which of them it is.
    [[nodiscard]] std::optional<std::string> look() {
        const std::chrono::nanoseconds used = used_now();
        const Clock::time_point now = Clock::now();
        still_ = used == used_ ? still_ + std::min<Clock::duration>(now - looked_, kPauseMax) : Clock::duration{};
        used_ = used;
        looked_ = now;
        if (used - begun_ >= bounds_.processor_time)
            return fmt::format("it took more than {} s of a processor", bounds_.processor_time.count());
        if (memory_of_process() > before_ + bounds_.memory)
            return fmt::format("it took more than {} MiB of memory", bounds_.memory >> 20U);
        if (still_ >= bounds_.standstill) return fmt::format("it stood still for {} s", bounds_.standstill.count());
        return std::nullopt;
    }

private:
    // Between two looks: where more time has passed, the whole process stood still (a machine that was suspended, a debugger).
    static constexpr auto kPauseMax = std::chrono::milliseconds(200);

    // By the thread that works.
    [[nodiscard]] std::chrono::nanoseconds used_now() const {
        timespec used{};
        (void)clock_gettime(clock_, &used);
        return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
    }

    const Bounds bounds_;
    const std::size_t before_ = memory_of_process();
    clockid_t clock_{};
    std::chrono::nanoseconds begun_{}, used_{};
    Clock::time_point looked_ = Clock::now();
    Clock::duration still_{};  // for how long it has used no processor
};

}  // namespace rove::code::jit
