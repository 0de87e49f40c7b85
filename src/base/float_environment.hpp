// The floating-point state of a thread: rounding, traps, and the treatment of denormals.
//
// Threads: any; each scope belongs to the thread that makes it.
//
// Invariant: a thread of Rove's own has the standard state whenever it runs no user code.
#pragma once

#include <optional>
#include <thread>
#include <utility>

#include "arch/arch.hpp"

namespace rove {

// A scope for user code. It begins with the state that C defines (rounding to nearest, no traps, denormals kept), whatever ran in this thread
// before; changes that the code makes end with the scope.
class StandardFloatEnvironment {
public:
    // on_own_thread: a thread of Rove's own, which has the standard state already. Any other thread gets its own state back at the end.
    explicit StandardFloatEnvironment(bool on_own_thread) noexcept {
        if (on_own_thread) return;
        outer_.emplace();
        arch::FloatControls::set_standard();
    }
    ~StandardFloatEnvironment() {
        if (outer_)
            outer_->restore();
        else
            arch::FloatControls::set_standard();
    }
    StandardFloatEnvironment(const StandardFloatEnvironment&) = delete;
    StandardFloatEnvironment& operator=(const StandardFloatEnvironment&) = delete;

private:
    std::optional<arch::FloatControls> outer_;
};

// Makes a thread of Rove's own. It begins with the state that C defines, instead of inheriting that of the thread that makes it.
template <typename Work>
[[nodiscard]] std::thread start_thread(Work work) {
    return std::thread([work = std::move(work)]() mutable {
        arch::FloatControls::reset();
        work();
    });
}

}  // namespace rove
