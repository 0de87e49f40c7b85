// Callbacks of calls that had ended when they were asked for (rove_call_back).
#include <deque>
#include <new>

#include "base/of_thread.hpp"
#include "base/stack.hpp"
#include "rove/edge.h"

namespace {

// Callbacks of calls that had ended when they were asked for. Each runs within the one that asked for it, as long as the thread has stack for
// it; the others run when the innermost one is done. The first few do not ask how much stack is left.
constexpr unsigned kCallingBackUnasked = 16;
constexpr std::size_t kCallingBackStackBytes = 128UL * 1024;
struct CallingBack {
    unsigned depth = 0;
    struct Later {
        void (*run)(void*);
        void* argument;
        unsigned depth;  // of the callback that asked for it
    };
    std::deque<Later> later;

    // The size of a fiber's stack is unknown: there the depth is the bound.
    [[nodiscard]] bool is_deep() const {
        return depth >= kCallingBackUnasked &&
               (!rove::is_on_own_stack() || rove::stack_left() < kCallingBackStackBytes);
    }
    // False: there is no memory.
    bool defer(void (*run)(void*), void* argument) try {
        later.push_back({run, argument, depth});
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
    // A callback that did not return has left its function: what was asked for within it may refer to objects that are gone.
    void forget_from(unsigned own) {
        std::erase_if(later, [own](const Later& each) { return each.depth >= own; });
    }
};
rove::OfThread<CallingBack> calling_back;

}  // namespace

extern "C" void rove_call_back(void (*run)(void*), void* argument) {
    CallingBack* const within = calling_back.get();
    if (within == nullptr) return run(argument);
    if (within->is_deep() && within->defer(run, argument)) return;
    struct Deeper {
        explicit Deeper(CallingBack& calling) : of(calling), depth(++calling.depth) {}
        Deeper(const Deeper&) = delete;
        ~Deeper() {
            if (!has_returned) of.forget_from(depth);  // it threw, or has ended its thread
            --of.depth;
        }
        CallingBack& of;
        const unsigned depth;
        bool has_returned = false;
    } deeper{*within};
    run(argument);
    while (!within->later.empty()) {
        const CallingBack::Later next = within->later.front();
        within->later.pop_front();
        next.run(next.argument);
    }
    deeper.has_returned = true;
}
