// Who may still use a node: objects of a program outlive it, and a forked child has a copy that it must not touch.
#include <cxxabi.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "base/log.hpp"
#include "base/made_once.hpp"
#include "engine/gathering.hpp"
#include "engine/here.hpp"
#include "node/built_ins.hpp"
#include "node/core.hpp"
#include "rove/edge.h"

namespace rove {

namespace {

struct Living {
    Mutex mutex;
    std::unordered_map<const void*, std::weak_ptr<NodeCore>> nodes GUARDED_BY(mutex);
};
// Never destroyed: a program's globals may hold nodes.
Living& all_living() {
    static constinit MadeOnce<Living> kept;
    return kept.get([] {
        auto* made = new Living;
        hold_across_forks(made->mutex);
        return made;
    });
}

}  // namespace

Error NodeCore::why_unusable() const {
    if (is_inherited())
        return {ErrorCode::invalid,
                "this process is a fork of the one that made the node: make a Node of its own after fork()"};
    return {ErrorCode::cancelled, "the node was shut down"};
}

void NodeCore::remember(const std::shared_ptr<NodeCore>& core) {
    Living& all = all_living();
    const MutexLock lock(all.mutex);
    all.nodes[core.get()] = core;
}

std::shared_ptr<NodeCore> NodeCore::living(const void* node) {
    Living& all = all_living();
    const MutexLock lock(all.mutex);
    const auto found = all.nodes.find(node);
    return found != all.nodes.end() ? found->second.lock() : nullptr;
}

// The child of a fork keeps its copy: to end it would join threads that are not there, and take leave in the parent's name.
void NodeCore::Delete::operator()(NodeCore* core) const {
    if (core->is_inherited()) return;
    {
        Living& all = all_living();
        const MutexLock lock(all.mutex);
        all.nodes.erase(core);
    }
    delete core;
}

// The function ends its thread (pthread_exit), which may lead, and whose stack holds what others rely on. So the thread stays, as with a
// function that never returns, and one of the node's own gets another one in its place. So does a thread of the program that waits: what
// it called cannot be unwound.
void NodeCore::keep_thread(rove_here* here) {
    const std::string whose = here != nullptr ? here->function->name : "a callback";
    stay_in_parent(whose);
    const bool own = own_threads_.is_mine();
    const std::string what = fmt::format("{} on {} wanted to end its thread, which {}", whose, name(),
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
                                                     each->function->name, name(), whose)));
    Status replaced;
    {
        Hold hold(*this);
        runner_.step_aside();
        lead_.leave_to_others();
        for (Run* each = run; each != nullptr; each = each->beneath)
            if (each->let_go()) lead_.wake();  // nothing reads their payloads
        const bool ran = run != nullptr && run->handed_over;
        const bool is_to_be_replaced = own && ran;
        if (is_to_be_replaced) replaced = own_threads_.keep_mine();
        const bool is_replaced = is_to_be_replaced && replaced;
        for (Run* each = ran && (is_replaced || !own) ? run : nullptr; each != nullptr; each = each->beneath)
            runner_.give_up(*each);
    }
    if (!replaced) log().error("{} is a thread short: {}; restart it", name(), replaced.error().message());
    for (;;) pause();
}

// Where C functions are left there is nothing that says how to unwind them, so no handler of the node's would be told.
void NodeCore::exit_thread(void* result) {
    const Runner::Innermost here = Runner::in_this_thread();
    if (here.node != nullptr) here.node->keep_thread(here.run->here);
    pthread_exit(result);
}

// Without the lock: what somebody asked for when his call has ended.
void NodeCore::call_back(const Run& run, const CallSlot::Notify& notify) {
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
