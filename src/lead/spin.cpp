#include "lead/spin.hpp"

#include "arch/arch.hpp"

namespace rove {
namespace {

// One line can be monitored. With more than one link (two lines each) none of them may wait for another's.
void pause_cpu(const AwaitedSignals& awaited) {
    if (awaited.signals.size() > 2 || awaited.cold_word != nullptr) return arch::rest_briefly();
    if (awaited.signals.empty()) return arch::rest();
    // The line of the ring for calls. A reply ends the rest by its timeout.
    arch::rest_until_written(*awaited.signals.front().word, [&awaited] { return awaited.arrived(); });
}

}  // namespace

bool spin(const AwaitedSignals& awaited, const std::atomic<bool>& attention, unsigned turns) {
    for (unsigned turn = 0; turn < turns; ++turn) {
        if (awaited.arrived() || attention.load(std::memory_order_relaxed)) return true;
        pause_cpu(awaited);
    }
    return false;
}

}  // namespace rove
