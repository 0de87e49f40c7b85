// The fence between a sender that stores a signal and then looks whether its peer sleeps, and a sleeper that announces its
// sleep and then looks at the signals: one of them must see the other. The sleeper pays for both, because its membarrier
// interrupts every sender that runs (they have registered), so the way of a call has no fence.
#pragma once

#include <atomic>

namespace rove::fabric {

class SleepFence {
public:
    // Has this process registered with the kernel, once, beside what it does.
    SleepFence();

    // For senders: whether this process is registered. Until then, and where the kernel has no membarrier, they fence for
    // themselves.
    [[nodiscard]] static const std::atomic<bool>& sleeper_pays();
    // For the sleeper: between announcing its sleep and its last look at the signals.
    static void pay();
};

}  // namespace rove::fabric
