// For tests in which memory runs out while LLVM works. It unwinds nothing, so what it had in its hands then is never freed, nor is the session that
// is left as lost: ASan would report both when the process ends. To be included once in a program; each test is a process of its own.
#pragma once

namespace rove::test {

inline bool llvm_loses_memory = false;

}  // namespace rove::test

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
// Asked by LeakSanitizer before it looks.
extern "C" int __lsan_is_turned_off() {  // NOLINT(bugprone-reserved-identifier): its name for that
    return rove::test::llvm_loses_memory ? 1 : 0;
}
#endif
