#include "node/spin.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace rove {
namespace {

#if defined(__x86_64__)
// WAITPKG: the core dozes until a line is written or a little time has passed.
bool has_waitpkg() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c & (1U << 5U)) != 0;
}

const bool kHasWaitpkg = has_waitpkg();

// Cycles. Not longer than a yielding leader takes to look again, because only one line can be watched.
constexpr std::uint64_t kDozeCycles = 2000;
constexpr unsigned kLightSleep = 1;  // C0.1: wakes fast

__attribute__((target("waitpkg"))) void doze(const Watch& watch) {
    const std::uint64_t until = __rdtsc() + kDozeCycles;
    if (watch.signals.size() > 2) {  // more than one link: none of them may wait for another's
        _tpause(kLightSleep, __rdtsc() + kDozeCycles / 16);
        return;
    }
    if (watch.signals.empty()) {
        _tpause(kLightSleep, until);
        return;
    }
    _umonitor(const_cast<std::uint64_t*>(watch.signals.front().word));  // calls; a reply ends the doze by its time
    if (!watch.arrived()) _umwait(kLightSleep, until);
}

void pause_cpu(const Watch& watch) {
    if (kHasWaitpkg)
        doze(watch);
    else
        _mm_pause();
}
#elif defined(__aarch64__)
// WFE sleeps until the exclusive monitor that LDXR has set is cleared by a write to the line, or the kernel's event stream
// (every 100 us at most) ends it.
void pause_cpu(const Watch& watch) {
    if (watch.signals.size() != 2) {  // one line can be watched
        __asm__ volatile("yield" ::: "memory");
        return;
    }
    std::uint64_t word = 0;
    __asm__ volatile("ldxr %0, [%1]" : "=r"(word) : "r"(watch.signals.front().word) : "memory");
    if (watch.arrived())
        __asm__ volatile("clrex" ::: "memory");
    else
        __asm__ volatile("wfe" ::: "memory");
}
#endif

}  // namespace

bool spin(const Watch& watch, const std::atomic<bool>& attention, unsigned turns) {
    for (unsigned turn = 0; turn < turns; ++turn) {
        if (watch.arrived() || attention.load(std::memory_order_relaxed)) return true;
        pause_cpu(watch);
    }
    return false;
}

}  // namespace rove
