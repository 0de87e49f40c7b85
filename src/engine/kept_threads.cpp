// Code that is not the node's and ends the thread that it runs in, or forks: the node loses neither its thread nor its calls.
#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include <utility>

#include "base/log.hpp"
#include "engine/engine.hpp"
#include "engine/here.hpp"
#include "rove/edge.h"

namespace rove {

// The function ends its thread (pthread_exit), which may lead, and whose stack holds what others rely on. So the thread stays, as with a
// function that never returns, and one of the node's own gets another one in its place. So does a thread of the program that waits: what
// it called cannot be unwound.
void Engine::keep_thread(rove_here* here) {
    const std::string whose = here != nullptr ? here->function->name : "a callback";
    stay_in_parent(whose);
    const bool own = own_threads_.is_mine();
    const std::string what = fmt::format("{} on {} wanted to end its thread, which {}", whose, name_(),
                                         own ? "is the node's" : "is its program's");
    log().error("{}; that thread is kept, and runs nothing more", what);
    if (here != nullptr && here->gathering != nullptr)
        here->gathering->skip_rest(*here);  // the call comes after its parts
    if (here != nullptr && !std::exchange(here->ended, true))
        answers_.reply_error(here->call, Error(ErrorCode::failed, what));
    Run* const run = Runner::in_this_thread().run;
    // Those that wait in the same thread never return either.
    for (const Run* each = run != nullptr ? run->beneath : nullptr; each != nullptr; each = each->beneath)
        if (each->here != nullptr && !std::exchange(each->here->ended, true))
            answers_.reply_error(
                each->here->call,
                Error(ErrorCode::failed, fmt::format("{} on {} waited for a call, and its thread ran {}, "
                                                     "which wanted to end that thread",
                                                     each->function->name, name_(), whose)));
    Status replaced;
    bool rests = false;
    {
        const Hold hold(lock());
        runner_.step_aside();
        lead_.leave_to_others();
        for (Run* each = run; each != nullptr; each = each->beneath)
            if (each->let_go()) lead_.wake();  // nothing reads their payloads
        const bool ran = run != nullptr && run->handed_over;
        rests = own && ran;
        if (rests) replaced = own_threads_.keep_mine();
        for (Run* each = ran ? run : nullptr; each != nullptr; each = each->beneath) runner_.give_up(*each);
    }
    if (!replaced) log().error("{} is a thread short: {}; restart it", name_(), replaced.error().message());
    if (rests) OwnThreads::rest_mine();
    for (;;) pause();
}

// C functions have no tables by which to unwind them, so if a thread ends within one, no handler of the node's would run.
void Engine::exit_thread(void* result) {
    const Runner::Innermost here = Runner::in_this_thread();
    if (here.engine != nullptr) here.engine->keep_thread(here.run->here);
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
