// How this thread computes with floating-point numbers: rounding, traps, and what becomes of denormals.
#pragma once

#include <optional>
#include <thread>
#include <utility>

#include "arch/arch.hpp"

namespace rove {

// While this lives, code runs here that has nothing to do with what ran before, be it the node's or somebody else's: with rounding to nearest, no
// traps and denormals kept, as C sets out. What that sets of it ends with this.
class StandardFloatEnvironment {
public:
    // on_own_thread: of Rove's own. Such a thread computes so whenever it runs nobody else's code. Any other gets back what was its own.
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

// A thread of Rove's own: it computes as C sets out, whatever the thread that makes it has set and would hand on.
template <typename Work>
[[nodiscard]] std::thread start_thread(Work work) {
    return std::thread([work = std::move(work)]() mutable {
        arch::FloatControls::reset();
        work();
    });
}

}  // namespace rove
