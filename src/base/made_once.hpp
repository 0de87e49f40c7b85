// A value of the whole process, made where it is first asked for and kept to the very end.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/fork.hpp"

namespace rove {

// What a `static` in a function would be, were it not for fork(): a static that another thread is making at that moment is never
// finished in the child, and whoever asks for it there waits for ever. This one is made anew there; what was begun leaks.
//
// Threads: any. One of them makes the value, the others wait for it. The value is never destroyed: threads may outlive main().
template <typename T>
class MadeOnce {
public:
    constexpr MadeOnce() = default;
    MadeOnce(const MadeOnce&) = delete;
    MadeOnce& operator=(const MadeOnce&) = delete;

    // `make` gives a `T*` made by `new`, and does not ask for this value itself. One acquiring load where the value is there.
    // Where `make` throws, so does this, and the next one to ask tries again.
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
            else if (maker_.compare_exchange_strong(maker, self))  // was nobody, or a process that we are a fork of
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
        if (T* made = made_.load(std::memory_order_acquire)) return *made;  // since we looked
        T* made = make();
        made_.store(made, std::memory_order_release);
        return *made;
    }

    std::atomic<T*> made_{nullptr};
    std::atomic<std::uint32_t> maker_{kNobody};  // the generation of the process whose thread is at it, + 1
};

// The same for what a fork's child cannot go on with, because a thread that it does not have may be in the middle of it and hold a lock
// of it. Each process makes its own; what its parent made leaks there.
template <typename T>
class MadeInEachProcess {
public:
    constexpr MadeInEachProcess() = default;
    MadeInEachProcess(const MadeInEachProcess&) = delete;
    MadeInEachProcess& operator=(const MadeInEachProcess&) = delete;

    // As MadeOnce::get().
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
