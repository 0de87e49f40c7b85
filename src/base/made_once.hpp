// A process-wide value, made when it is first requested and never destroyed.
//
// Threads: any. Invariant: in one process get() returns the same value each time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/fork.hpp"

namespace rove {

// Replaces a `static` in a function, because of fork(): a static that another thread is initialising during the fork is never
// finished in the child, and a thread that requests it there waits for ever. This value is made again there; the unfinished one leaks.
//
// Threads: any. One of them makes the value, the others wait for it. The value is never destroyed: threads may outlive main().
template <typename T>
class MadeOnce {
public:
    constexpr MadeOnce() = default;
    MadeOnce(const MadeOnce&) = delete;
    MadeOnce& operator=(const MadeOnce&) = delete;

    // `make` returns a `T*` made by `new`, and must not request this value itself. Cost: one acquiring load once the value exists.
    // If `make` throws, so does this, and the next caller tries again.
    template <typename Make>
    T& get(const Make& make) {
        if (T* made = made_.load(std::memory_order_acquire)) return *made;
        return make_or_wait(make);
    }

private:
    static constexpr std::uint32_t kNobody = 0;

    template <typename Make>
    T& make_or_wait(const Make& make) {
        const std::uint32_t self = process_generation() + 1;
        for (;;) {
            std::uint32_t maker = maker_.load(std::memory_order_acquire);
            if (T* made = made_.load(std::memory_order_acquire)) return *made;
            if (maker == self)
                maker_.wait(maker);
            else if (maker_.compare_exchange_strong(maker,
                                                    self))  // it was kNobody, or a process of which this one is a fork
                return make_now(make);
        }
    }
    template <typename Make>
    T& make_now(const Make& make) {
        struct Done {
            std::atomic<std::uint32_t>& maker;
            ~Done() {
                maker.store(kNobody, std::memory_order_release);
                maker.notify_all();
            }
        } const done{maker_};
        if (T* made = made_.load(std::memory_order_acquire)) return *made;  // made since the last check
        T* made = make();
        made_.store(made, std::memory_order_release);
        return *made;
    }

    std::atomic<T*> made_{nullptr};
    std::atomic<std::uint32_t> maker_{kNobody};  // the generation of the process whose thread makes it, + 1
};

// The same for a value that the child of a fork cannot continue to use, because a thread that the child does not have may be changing it or
// hold its lock. Each process makes its own; the parent's value leaks in the child.
template <typename T>
class MadeInEachProcess {
public:
    constexpr MadeInEachProcess() = default;
    MadeInEachProcess(const MadeInEachProcess&) = delete;
    MadeInEachProcess& operator=(const MadeInEachProcess&) = delete;

    // Like MadeOnce::get().
    template <typename Make>
    T& get(const Make& make) {
        for (;;) {
            Own* own = own_.load(std::memory_order_acquire);
            if (own != nullptr && own->generation == process_generation()) return own->value.get(make);
            auto mine = std::make_unique<Own>();
            if (own_.compare_exchange_strong(own, mine.get())) (void)mine.release();
        }
    }

private:
    struct Own {
        const std::uint32_t generation = process_generation();
        MadeOnce<T> value;
    };
    std::atomic<Own*> own_{nullptr};
};

}  // namespace rove
