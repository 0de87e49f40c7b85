#include "base/fork_descriptors.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace rove {
namespace {

constexpr std::size_t kBits = 64;
std::array<std::atomic<std::uint64_t>, kForkDescriptorsMax / kBits> to_close;
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "the child of a fork may take no lock");

std::atomic<std::uint64_t>* word_of(int descriptor) noexcept {
    const auto number = static_cast<std::size_t>(descriptor);
    return descriptor >= 0 && number < kForkDescriptorsMax ? &to_close[number / kBits] : nullptr;
}
std::uint64_t bit_of(int descriptor) noexcept {
    return std::uint64_t{1} << (static_cast<std::size_t>(descriptor) % kBits);
}

// Uses only close() and lock-free atomics, which are safe in the child of a process with several threads.
void close_all() {
    for (std::size_t i = 0; i < to_close.size(); ++i)
        for (std::uint64_t bits = to_close[i].exchange(0); bits != 0; bits &= bits - 1)
            close(static_cast<int>(i * kBits) + std::countr_zero(bits));
}

// Registered once, when the library is loaded, because handlers cannot be removed.
[[maybe_unused]] const int handler = pthread_atfork(nullptr, nullptr, close_all);

}  // namespace

void close_in_forks(int descriptor) noexcept {
    if (auto* word = word_of(descriptor)) word->fetch_or(bit_of(descriptor));
}

void keep_in_forks(int descriptor) noexcept {
    if (auto* word = word_of(descriptor)) word->fetch_and(~bit_of(descriptor));
}

}  // namespace rove
