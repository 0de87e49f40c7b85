// Waiting for what another thread or process does, with patience for a busy machine.
#pragma once

#include <chrono>
#include <thread>

namespace rove::test {

// False: it did not come true in that time.
template <typename Done>
bool soon(const Done& done, std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    for (const auto until = std::chrono::steady_clock::now() + patience; std::chrono::steady_clock::now() < until;
         std::this_thread::sleep_for(std::chrono::milliseconds(1)))
        if (done()) return true;
    return done();
}

}  // namespace rove::test
