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

// Registration belongs to the process, not to a fabric: destroying a fabric never waits for the kernel, and a process registers once.
constinit std::atomic<bool> registered{false};
constinit std::atomic<std::uint32_t> registering{0};  // 1 + the generation of the process that registers or has done so

}  // namespace

// Registration waits until every core has run the scheduler: mostly 10 ms, seconds if the machine is overloaded. So it runs
// concurrently with the start, and nothing waits for its thread. A second thread registers, and only once it exists: for a
// single-threaded process the kernel marks only the core on which it runs at that time, and a barrier could miss a thread that is
// started on another core. The child of a fork inherits what the kernel has recorded, but not a thread that was still registering.
SleepFence::SleepFence() {
    const std::uint32_t self = process_generation() + 1;
    if (registered.load(std::memory_order_acquire) || registering.exchange(self) == self) return;
    try {
        start_thread([] {
            registered.store(membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED), std::memory_order_release);
        }).detach();
    } catch (const std::exception&) {
        registering =
            0;  // no thread, or no memory for one: senders execute the fence themselves, and the next fabric tries again
    }
}

const std::atomic<bool>& SleepFence::sleeper_pays() {
    return registered;
}

void SleepFence::pay() {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // for senders that execute the fence themselves
    (void)membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);    // for senders that do not
}

}  // namespace rove::fabric
