// Opens a library of Rove's own that is loaded only when it is needed: librove-jit.so, librove-ucx.so.
//
// Threads: any. Invariant: a library that was opened stays open, so its handle and its functions are valid until the process ends.
#pragma once

#include <string>
#include <string_view>

#include "base/fork.hpp"
#include "base/made_once.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"

namespace rove {

// Returns the handle for dlsym. The library is searched beside this code, in ../lib, in the build tree's lib, and then on the
// system's path. Its names are not visible to other libraries, and it is never closed. unsupported: it was not found; the message is
// the loader's.
[[nodiscard]] Result<void*> open_own_library(std::string_view file_name);

// The build id of the program or library that contains this address: a number that the linker computes from its content, in
// hexadecimal. Empty: it has none.
[[nodiscard]] std::string build_of(const void* address);

// The result of opening such a library. One thread opens it, and the others wait. Each process opens it once; after a failure the next
// request tries again.
template <typename T>
class OpenedOnce {
public:
    constexpr OpenedOnce() = default;

    // `open` returns a Result<T*>.
    template <typename Open>
    Result<T*> get(const Open& open) {
        Opened& opened = opened_.get([] { return new Opened; });
        const MutexLock lock(opened.mutex);
        if (opened.kept == nullptr) {
            const NoForkMeanwhile whole;  // the loader has locks
            ROVE_TRY(opened.kept, open());
        }
        return opened.kept;
    }

private:
    struct Opened {
        Mutex mutex;
        T* kept GUARDED_BY(mutex) = nullptr;
    };
    MadeInEachProcess<Opened> opened_;
};

}  // namespace rove
