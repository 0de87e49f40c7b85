// Opens a library of Rove's own that is loaded only when it is needed: librove-jit.so, librove-ucx.so.
#pragma once

#include <string>
#include <string_view>

#include "base/fork.hpp"
#include "base/made_once.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"

namespace rove {

// The handle for dlsym. The library is looked for beside this code, in ../lib, in the build tree's lib, and then where the
// system looks. Its names stay out of other libraries' way, and it is never closed. unsupported: there is none; the message is
// the loader's.
[[nodiscard]] Result<void*> open_own_library(std::string_view file_name);

// The build of the program or library that has this address (its code or data): a number that the linker makes of all that it consists of, in
// hexadecimal. Empty: it has none.
[[nodiscard]] std::string build_of(const void* address);

// What such a library gives when it is opened: asked for once in each process, and again where that fails.
//
// Threads: any. One opens it, the others wait.
template <typename T>
class OpenedOnce {
public:
    constexpr OpenedOnce() = default;

    // `open` gives a Result<T*>.
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
