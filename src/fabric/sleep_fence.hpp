// The fence between a sender that stores a signal and then checks whether its peer sleeps, and a sleeper that announces its
// sleep and then checks the signals: one of them must see the other. The sleeper bears the cost for both: its membarrier
// interrupts every running sender (all have registered), so sending a call needs no fence.
//
// Threads: any.
//
// Invariant: sleeper_pays() never becomes false again. pay() is right in either case, because it executes both the fence and the membarrier.
#pragma once

#include <atomic>

namespace rove::fabric {

class SleepFence {
public:
    // Registers this process with the kernel, once, in a thread of its own.
    SleepFence();

    // For senders: whether this process is registered. Until then, and if the kernel has no membarrier, senders execute the fence
    // themselves.
    [[nodiscard]] static const std::atomic<bool>& sleeper_pays();
    // For the sleeper: called between announcing its sleep and its last check of the signals.
    static void pay();
};

}  // namespace rove::fabric
