// For a test program whose forked children end by exit(): under ASan each looks for leaks there, and would report what its parent's threads
// hold, because it has their memory and not the threads. To be included once.
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
