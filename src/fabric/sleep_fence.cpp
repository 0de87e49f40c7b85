#include "fabric/sleep_fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <system_error>

#include "base/float_environment.hpp"
#include "base/fork.hpp"

namespace rove::fabric {
namespace {

bool membarrier(int command) {
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

// The process's, not a fabric's: no fabric's end waits for the kernel, and a process pays once.
constinit std::atomic<bool> registered{false};
constinit std::atomic<std::uint32_t> registering{0};  // the generation of the process whose thread is or was at it, + 1

}  // namespace

// Registration waits until every core has been through the scheduler: 10 ms mostly, seconds where the machine is overloaded. So it
// runs beside the start, and nobody waits for its thread. It is made from a second thread and not before there is one: for a
// single-threaded process the kernel marks only the core that it runs on then, and a barrier could miss a thread that is started
// on another. A fork's child inherits what the kernel has noted, but not the thread that was at it.
SleepFence::SleepFence() {
    const std::uint32_t self = process_generation() + 1;
    if (registered.load(std::memory_order_acquire) || registering.exchange(self) == self) return;
    try {
        start_thread([] {
            registered.store(membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED), std::memory_order_release);
        }).detach();
    } catch (const std::exception&) {
        registering =
            0;  // no thread to be had, or no memory for one: senders fence for themselves, and the next fabric tries again
    }
}

const std::atomic<bool>& SleepFence::sleeper_pays() {
    return registered;
}

void SleepFence::pay() {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // for senders that fence for themselves
    (void)membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);    // for those that do not
}

}  // namespace rove::fabric
