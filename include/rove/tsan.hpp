// For programs that are compiled with -fsanitize=thread: librove.so is not, so its hand-overs are invisible to the sanitizer, and copies
// that it makes for one thread and another would be reported as races. A program that has suppressions of its own defines the same
// function, and adds this line to them.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define ROVE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ROVE_THREAD_SANITIZER 1
#endif
#endif

#if defined(ROVE_THREAD_SANITIZER)
extern "C" __attribute__((weak, visibility("default"))) const char* __tsan_default_suppressions() {
    return "called_from_lib:librove.so\nrace:librove.so\n";
}
#endif
