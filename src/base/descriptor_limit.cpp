#include "base/descriptor_limit.hpp"

#include <sys/resource.h>

#include <atomic>

namespace rove {
namespace {

std::atomic<bool> is_raised{false};
rlimit at_first{};  // set before is_raised

}  // namespace

void allow_all_descriptors() noexcept {
    rlimit files{};
    if (is_raised.load(std::memory_order_acquire) || getrlimit(RLIMIT_NOFILE, &files) != 0) return;
    at_first = files;
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) == 0) is_raised.store(true, std::memory_order_release);
}

void restore_descriptor_limit() noexcept {
    if (is_raised.load(std::memory_order_acquire)) (void)setrlimit(RLIMIT_NOFILE, &at_first);
}

}  // namespace rove
