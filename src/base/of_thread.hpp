// A value of each thread's own, made when the thread first requests it and destroyed when the thread ends.
#pragma once

#include <pthread.h>

#include <memory>
#include <new>

namespace rove {

// Replaces a thread_local object with a destructor: glibc takes memory for that, and ends a process that has none.
//
// Threads: any. Lives as long as the process. Invariant: a thread has at most one value, which no other thread gets.
template <typename T>
class OfThread {
public:
    OfThread() : has_key_(pthread_key_create(&key_, [](void* value) { delete static_cast<T*>(value); }) == 0) {}
    OfThread(const OfThread&) = delete;

    // Null: there is no memory for it.
    [[nodiscard]] T* get() noexcept {
        if (!has_key_) return nullptr;
        if (void* const there = pthread_getspecific(key_)) return static_cast<T*>(there);
        auto made = std::unique_ptr<T>(new (std::nothrow) T);
        return made && pthread_setspecific(key_, made.get()) == 0 ? made.release() : nullptr;
    }

private:
    pthread_key_t key_{};
    const bool has_key_;
};

}  // namespace rove
