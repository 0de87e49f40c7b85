// Code of a package that runs in a thread of its own, because it may end that thread.
//
// Threads: any, without the lock of the cache: what runs there may never end.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/result.hpp"

namespace rove::code {

// Runs `work`, which is a `what` of that package (with its node's name), and waits for its end, however that comes. overloaded: no thread or
// no memory for it, and nothing of it has run. It throws nothing.
[[nodiscard]] Status in_own_thread(const std::string& package, const char* what, const std::function<void()>& work);

// Whether the kernel still has that thread of this process.
[[nodiscard]] bool is_alive(pid_t kernel_id);

}  // namespace rove::code
