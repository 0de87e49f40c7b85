// Reclaimer: gives memory of shared files back to the kernel in threads of its own.
//
// MADV_REMOVE, and the last close of a file, wait for every other process that is using the file: they take a lock of the file that a write by
// such a process holds for as long as that lasts, and visit each of its mappings. So no thread that anybody waits for may call them for a file
// that a peer has open.
//
// Threads: any. Work that has begun may outlive this object, and then owns all that it uses.
//
// Invariants: at most kThreadsMax threads at a time, of which one exists only while there is work; what does not end costs the others nothing
// until all of them are held up.
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
