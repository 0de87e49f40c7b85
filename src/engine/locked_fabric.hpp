// LockedFabric: an engine's fabric, for threads that do not hold the engine's lock, which guards the fabric.
//
// Threads: any; takes the lock. No state: each call takes the lock at most once, and has released it when it returns.
#pragma once

#include <memory>

#include "fabric/fabric.hpp"
#include "lead/lead.hpp"

namespace rove {

class LockedFabric {
public:
    LockedFabric(Lead& lead, const std::unique_ptr<fabric::Fabric>& fabric) : lead_(lead), fabric_(fabric) {}

    // Constant, so it needs no lock.
    [[nodiscard]] bool has_streams() const NO_THREAD_SAFETY_ANALYSIS { return fabric_->has_streams(); }
    // Without the lock, as it is to be.
    void tidy() noexcept NO_THREAD_SAFETY_ANALYSIS { fabric_->tidy(); }
    [[nodiscard]] Result<std::unique_ptr<fabric::Link>> open_link() EXCLUDES(lock_of<EngineLock>) {
        const Hold hold(lead_.mutex());
        return fabric_->open_link();
    }
    [[nodiscard]] Result<std::unique_ptr<fabric::Link>> open_stream(int socket, const fabric::StreamKeys& keys)
        EXCLUDES(lock_of<EngineLock>) {
        const Hold hold(lead_.mutex());
        return fabric_->open_stream(socket, keys);
    }
    [[nodiscard]] Status connect(fabric::Link& link, Bytes offer) EXCLUDES(lock_of<EngineLock>) {
        const Hold hold(lead_.mutex());
        return link.connect(offer);
    }
    void drop(std::unique_ptr<fabric::Link> link) EXCLUDES(lock_of<EngineLock>) {
        const Hold hold(lead_.mutex());
        link.reset();
    }

private:
    Lead& lead_;
    const std::unique_ptr<fabric::Fabric>& fabric_ GUARDED_BY(lock_of<EngineLock>);
};

}  // namespace rove
