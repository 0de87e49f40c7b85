// NoNesting: a scope in which this thread, while it waits for a call, runs no other function.
#pragma once

#include "rove/edge.h"

namespace rove {

// A thread that waits for a call serves its node, and may run another function on top of the one that waits. If both want the same
// mutex, that is a deadlock. Within the scope of a NoNesting the thread takes replies only. The node needs a second thread for the calls
// that arrive in that time. For a whole function: rove::no_nesting(f) (rove/function.hpp). Scopes may nest; each ends in the thread in
// which it began.
//
//     const rove::NoNesting scope;
//     const std::lock_guard lock(mutex);          // a callback or another function may want it as well
//     total += peer.sync(rove::fn<weigh>, item);  // waits, and runs nothing else in this thread
class NoNesting {
public:
    NoNesting() noexcept { rove_no_nesting(1); }
    ~NoNesting() { rove_no_nesting(-1); }
    NoNesting(const NoNesting&) = delete;
    NoNesting& operator=(const NoNesting&) = delete;
};

}  // namespace rove
