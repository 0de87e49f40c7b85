// SharedObjects: object files of functions that several packages of one program have.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/mutex.hpp"

namespace rove::bitcode {

// The object file of a function that several packages have.
struct SharedObject {
    Digest made_of;
    ByteBuffer object;
};

// The objects of one program's packages, which hold about as much code as the program, and those of versions of it that were bundled before
// (toolchain/kept_objects.hpp).
//
// Threads: any. Invariants: one object for each digest, the first that was kept. It is never changed, and not removed before this is destroyed.
class SharedObjects {
public:
    // Null: none was made of that.
    [[nodiscard]] std::shared_ptr<const SharedObject> find(const Digest& made_of) const {
        const MutexLock lock(mutex_);
        const auto found = objects_.find(made_of);
        return found != objects_.end() ? found->second : nullptr;
    }
    // Returns the object that is kept now: `object`, or one that another thread has kept before.
    std::shared_ptr<const SharedObject> keep(SharedObject object) {
        auto kept = std::make_shared<const SharedObject>(std::move(object));
        const MutexLock lock(mutex_);
        return objects_.try_emplace(kept->made_of, kept).first->second;
    }
    [[nodiscard]] std::size_t count() const {
        const MutexLock lock(mutex_);
        return objects_.size();
    }
    [[nodiscard]] std::vector<std::shared_ptr<const SharedObject>> all() const {
        const MutexLock lock(mutex_);
        std::vector<std::shared_ptr<const SharedObject>> all;
        for (const auto& [made_of, object] : objects_) all.push_back(object);
        return all;
    }

private:
    mutable Mutex mutex_;
    std::map<Digest, std::shared_ptr<const SharedObject>> objects_ GUARDED_BY(mutex_);
};

}  // namespace rove::bitcode
