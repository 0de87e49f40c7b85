// Code that is not the node's and ends the thread that it runs in, or forks: the node loses neither its thread nor its calls.
#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "engine/engine.hpp"
#include "engine/here.hpp"
#include "rove/edge.h"

namespace rove {

// The function ends its thread (pthread_exit), which may lead, and whose stack holds what others rely on. So the thread stays, as with a
// function that never returns, and one of the node's own gets another one in its place. So does a thread of the program that waits: what
// it called cannot be unwound. What waits in the thread beneath the function may be another engine's, and so may the thread.
void Engine::keep_thread(rove_here* here) {
    const std::string whose = here != nullptr ? here->function->name : "a callback";
    stay_in_parent(whose);
    std::vector<ThreadRuns::Within> stack;  // of the thread, from its top; what a fork has beneath it is the parent's
    for (ThreadRuns::Within at = ThreadRuns::innermost(); at.run != nullptr && !at.of->engine().is_inherited();
         at = ThreadRuns::beneath(*at.run))
        stack.push_back(at);
    const auto owner = std::ranges::find_if(
        stack, [](const ThreadRuns::Within& at) { return at.of->engine().own_threads_.is_mine(); });
    const bool own = owner != stack.end();
    const std::string what = fmt::format("{} on {} wanted to end its thread, which {}", whose, name_(),
                                         own ? "is the node's" : "is its program's");
    log().error("{}; that thread is kept, and runs nothing more", what);
    if (here != nullptr && here->gathering != nullptr)
        here->gathering->skip_rest(*here);  // the call arrives after its parts
    if (here != nullptr && !std::exchange(here->ended, true))
        answers_.reply_error(here->call, Error(ErrorCode::failed, what));
    // Those that wait in the same thread never return either.
    for (const ThreadRuns::Within& each : std::span(stack).subspan(std::min<std::size_t>(1, stack.size())))
        if (each.run->here != nullptr && !std::exchange(each.run->here->ended, true))
            each.of->engine().answers_.reply_error(
                each.run->here->call,
                Error(ErrorCode::failed, fmt::format("{} on {} waited for a call, and its thread ran {}, "
                                                     "which wanted to end that thread",
                                                     each.run->function->name, each.of->engine().name_(), whose)));
    bool ran = false;
    {
        const Hold hold(lock());
        runner_.step_aside();
        lead_.leave_to_others();
        ran = !stack.empty() && stack.front().run->handed_over;
    }
    const bool rests = own && ran;
    for (const ThreadRuns::Within& each : stack) each.of->engine().part_with(*each.run, ran);
    if (const Status replaced = rests ? owner->of->engine().replace_this_thread() : Status{}; !replaced)
        log().error("{} is a thread short: {}; restart it", name_(), replaced.error().message());
    if (rests) OwnThreads::rest_mine();
    for (;;) pause();
}

// Nothing reads its payload any more. `ran`: it has left the lead to others.
void Engine::part_with(Run& run, bool ran) {
    const Hold hold(lock());
    if (run.let_go()) lead_.wake();
    if (ran) runner_.give_up(run);
}

Status Engine::replace_this_thread() {
    const Hold hold(lock());
    return own_threads_.keep_mine();
}

// C functions have no tables by which to unwind them, so if a thread ends within one, no handler of the node's would run.
void Engine::exit_thread(void* result) {
    const ThreadRuns::Within here = ThreadRuns::innermost();
    if (here.of != nullptr) here.of->engine().keep_thread(here.run->here);
    pthread_exit(result);
}

// Without the lock: what somebody asked for when his call has ended.
void Engine::call_back(const Run& run, const CallSlot::Notify& notify) {
    try {
        Runner::call_out(run, [&] { notify.function(notify.argument); });
    } catch (const abi::__forced_unwind&) {
        keep_thread(nullptr);
    } catch (...) {  // of a coroutine that lets it out where it is resumed
        rove_report_caught("what waited for a call");
    }
    stay_in_parent("a callback");
}

}  // namespace rove
