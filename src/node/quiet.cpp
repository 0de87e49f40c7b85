// Functions that wait quietly. Their threads take replies only, so those of the node's own are lost to the mailboxes for as long: what
// such a function waits for may be a call that comes here. Each has another thread made in its place when it first waits so, and
// keeps it until it returns. There are always as many others, then, as a node begins with, and all that is said of these holds.
#include <system_error>

#include "node/core.hpp"
#include "node/log.hpp"

namespace rove {

thread_local OwnThread* NodeCore::own_thread_ = nullptr;

// Under the lock, which the new thread takes first of all.
void NodeCore::add_own_thread(void (NodeCore::*serves)(OwnThread&)) {
    OwnThread& own = threads_.emplace_back(OwnThread{.of = this});
    ++own_live_;
    own.thread = std::thread([this, &own, serves] {
        own_thread_ = &own;
        (this->*serves)(own);
    });
}

// Threads that were made stay: the next function that waits so finds one there. With `--threads 1` no functions run side by side.
void NodeCore::replace_thread(Run& run) {
    OwnThread* const self = own_thread_;
    if (run.replaced || self == nullptr || self->of != this || own_threads_ < 2) return;
    if (run.function != nullptr)
        run.function->waits_quietly.store(true, std::memory_order_relaxed);
    else if (quiet_runs_.is_full())
        return;  // a callback of this program's own: nobody can hold it back, and it has no thread beyond the bound
    run.replaced = true;
    if (self->quiet_runs++ > 0) return;
    quiet_runs_.begin();
    const std::size_t functions_on = threads_.size() - 1;  // one stands by
    if (stopping_ || functions_on >= std::size_t{own_threads_} + quiet_runs_.threads()) return;
    try {
        add_own_thread(&NodeCore::serve_own_thread);
    } catch (const std::system_error& error) {
        threads_.pop_back();
        --own_live_;
        log().error("{}: no thread can be made in place of one that waits quietly ({}); calls may wait for it", name(),
                    error.what());
    }
}

void NodeCore::take_thread_back(Run& run) {
    run.replaced = false;
    if (--own_thread_->quiet_runs > 0) return;
    if (quiet_runs_.is_full()) wake_leader();  // another one may begin
    quiet_runs_.end();
}

}  // namespace rove
