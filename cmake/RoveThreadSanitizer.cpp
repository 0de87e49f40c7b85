// What a program with the thread sanitizer needs: that sanitizer sees only what is compiled with it, which the installed librove.so is
// not, so it takes the library's hand-overs between threads for races. rove_add_executable() compiles this file into each program
// (docs/cpp.md); without the sanitizer it is empty.
//
// Not weak, and not in a header: the sanitizer's runtime has a weak definition of its own, and is linked first. A program that defines
// the function itself is compiled with -DROVE_OWN_TSAN_SUPPRESSIONS, and adds the line below to its own.
#if defined(__SANITIZE_THREAD__)  // g++
#define ROVE_UNDER_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ROVE_UNDER_TSAN
#endif
#endif

#if defined(ROVE_UNDER_TSAN) && !defined(ROVE_OWN_TSAN_SUPPRESSIONS)
extern "C" const char* __tsan_default_suppressions();   // NOLINT(bugprone-reserved-identifier): the runtime's name
extern "C" const char* __tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
    return "race:librove.so\n";
}
#endif
