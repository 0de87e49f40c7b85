#include "fabric/sleep_fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rove::fabric {
namespace {

bool membarrier(int command) {
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

}  // namespace

// Registration takes the kernel 10 ms, so it runs beside the start. It is made from a second thread and not before there is one:
// for a single-threaded process the kernel marks only the core that it runs on then, and a barrier could miss a thread that is
// started on another.
SleepFence::SleepFence()
    : registrar_([this] {
          registered_.store(membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED), std::memory_order_release);
      }) {}

SleepFence::~SleepFence() {
    registrar_.join();
}

void SleepFence::pay() const {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // for senders that fence for themselves
    (void)membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);    // for those that do not
}

}  // namespace rove::fabric
