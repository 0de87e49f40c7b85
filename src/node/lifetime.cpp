// Decides whether a node may still be used: objects of a program outlive it, and a forked child has a copy that it must not touch.
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
    std::unordered_map<const void*, std::weak_ptr<NodeCore>> nodes GUARDED_BY(mutex);  // by their engines
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
    for (const auto& each : core->engines()) all.nodes[each.get()] = core;
}

std::shared_ptr<NodeCore> NodeCore::living(const void* engine) {
    Living& all = all_living();
    const MutexLock lock(all.mutex);
    const auto found = all.nodes.find(engine);
    return found != all.nodes.end() ? found->second.lock() : nullptr;
}

// The child of a fork keeps its copy: to end it would join threads that are not there, and take leave in the parent's name.
void NodeCore::Delete::operator()(NodeCore* core) const {
    if (core->is_inherited()) return;
    {
        Living& all = all_living();
        const MutexLock lock(all.mutex);
        for (const auto& each : core->engines()) all.nodes.erase(each.get());
    }
    core->shut_down();
    if (!core->is_abandoned_) delete core;
}

}  // namespace rove
