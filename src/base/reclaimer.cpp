#include "base/reclaimer.hpp"

#include <new>
#include <system_error>
#include <utility>

#include "base/float_environment.hpp"

namespace rove {

bool Reclaimer::run(std::function<void()> work) noexcept try {
    const MutexLock lock(state_->mutex);
    if (state_->waiting.size() >= kWaitingMax) return false;
    state_->waiting.push_back(std::move(work));
    if (state_->threads == kThreadsMax) return true;
    try {
        start_thread([state = state_] { work_off(*state); }).detach();
        ++state_->threads;
    } catch (...) {  // no thread, or no memory for one
        if (state_->threads == 0) {
            state_->waiting.pop_back();
            return false;
        }
    }
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

void Reclaimer::work_off(State& state) {
    for (;;) {
        std::function<void()> next;
        {
            const MutexLock lock(state.mutex);
            if (state.waiting.empty()) {
                --state.threads;
                return;
            }
            next = std::move(state.waiting.front());
            state.waiting.pop_front();
        }
        next();
    }
}

}  // namespace rove
