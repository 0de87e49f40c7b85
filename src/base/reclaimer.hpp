// Reclaimer: gives memory of shared files back to the kernel in threads of its own.
//
// MADV_REMOVE takes a lock of the file, which another process's write to that file holds for as long as the write lasts, and visits each mapping of
// the file in every process. So no thread that anybody waits for should call it for a file that a peer has open; it does where there is
// no memory or thread for this.
//
// Threads: any. Work may outlive this object, so it owns all that it uses.
//
// Invariants: at most kThreadsMax threads at a time, and none while there is no work. Work that does not end delays other work only once it holds
// up all of them.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>

#include "base/mutex.hpp"

namespace rove {

class Reclaimer {
public:
    static constexpr unsigned kThreadsMax = 4;
    static constexpr std::size_t kWaitingMax = 4096;

    // Begins the work in another thread, soon. False: there is no thread or memory for it, or too much waits already; nothing is done.
    [[nodiscard]] bool run(std::function<void()> work) noexcept;

private:
    struct State {
        Mutex mutex;
        std::deque<std::function<void()>> waiting GUARDED_BY(mutex);
        unsigned threads GUARDED_BY(mutex) = 0;
    };
    static void work_off(State& state);

    const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace rove
