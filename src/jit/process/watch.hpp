// Checks whether one piece of work is within its bounds: processor time, memory, and time without any processor time.
//
// Threads: one at a time, and not the one that works: it may never return.
//
// Invariant: what the process had used before a Watch was made does not count.
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

#include "arch/arch.hpp"
#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "bitcode/compiled.hpp"

namespace rove::bitcode {

// Bytes of this process's memory, without pages of files. 0: unknown.
[[nodiscard]] inline std::size_t memory_of_process() {
    const Descriptor file(open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
    std::array<char, 128> text{};
    // NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection): the kernel makes the text while it is read, and does not wait
    if (!file.is_open() || read(file.number(), text.data(), text.size() - 1) <= 0) return 0;
    char* next = nullptr;
    (void)std::strtoull(text.data(), &next, 10);
    const std::size_t resident = std::strtoull(next, &next, 10), shared = std::strtoull(next, &next, 10);
    return (resident - std::min(resident, shared)) * arch::page_bytes();
}

// How long a thread or process has used no processor time, according to the checks.
class Standstill {
public:
    explicit Standstill(clockid_t clock) : clock_(clock) {}
    [[nodiscard]] std::chrono::nanoseconds used() const { return used_; }
    [[nodiscard]] Clock::duration look() {
        const std::chrono::nanoseconds used = used_now();
        const Clock::time_point now = Clock::now();
        still_ = used == used_ ? still_ + std::min<Clock::duration>(now - looked_, kPauseMax) : Clock::duration{};
        used_ = used;
        looked_ = now;
        return still_;
    }

private:
    // The most time between two checks: if more has passed, the checking thread was stopped, too (a machine that was suspended, a
    // debugger).
    static constexpr auto kPauseMax = std::chrono::milliseconds(200);

    [[nodiscard]] std::chrono::nanoseconds used_now() const {
        timespec used{};
        (void)clock_gettime(clock_, &used);
        return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
    }

    const clockid_t clock_;
    std::chrono::nanoseconds used_ = used_now();
    Clock::time_point looked_ = Clock::now();
    Clock::duration still_{};
};

class Watch {
public:
    // `working` outlives this.
    Watch(const Bounds& bounds, pthread_t working) : bounds_(bounds), standstill_(clock_of(working)) {}

    // The bound that was exceeded, as text; nothing: none.
    [[nodiscard]] std::optional<std::string> look() {
        const Clock::duration still = standstill_.look();
        if (standstill_.used() - begun_ >= bounds_.processor_time)
            return fmt::format("it took more than {} s of a processor", bounds_.processor_time.count());
        if (memory_of_process() > before_ + bounds_.memory)
            return fmt::format("it took more than {} MiB of memory", bounds_.memory >> 20U);
        if (still >= bounds_.standstill) return fmt::format("it stood still for {} s", bounds_.standstill.count());
        return std::nullopt;
    }

private:
    static clockid_t clock_of(pthread_t working) {
        clockid_t clock{};
        return pthread_getcpuclockid(working, &clock) == 0 ? clock : CLOCK_PROCESS_CPUTIME_ID;
    }

    const Bounds bounds_;
    const std::size_t before_ = memory_of_process();
    Standstill standstill_;
    const std::chrono::nanoseconds begun_ = standstill_.used();
};

}  // namespace rove::bitcode
