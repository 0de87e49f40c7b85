// Include once in a program whose forked children end as programs do (exit): under ASan they would look for leaks, and find what the threads of
// their parent held. The child has the memory and not the threads.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <unistd.h>

namespace {
const pid_t kFirstProcess = getpid();
}

// Asked by LeakSanitizer before it looks.
extern "C" int __lsan_is_turned_off() {  // NOLINT(bugprone-reserved-identifier): its name for that
    return getpid() != kFirstProcess ? 1 : 0;
}
#endif
