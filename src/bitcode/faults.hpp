// For surviving LLVM's crashes and fatal errors: a thread with a large stack, a stack for signal handlers, and the list of the signals. The
// process that compiles uses them (jit/process/serve.cpp), and ends after a fault; and guard.cpp, whose process continues.
//
// Threads: a FaultStack belongs to the thread that takes it. set_llvm_handlers() changes process-wide state: one call at a time.
//
// Invariant: the text of a OneLine ends with a zero, and has no line break.
#pragma once

#include <llvm/Support/ErrorHandling.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace rove::bitcode {

// LLVM visits types, constants and expressions by recursion; nesting.hpp bounds its depth. Of these addresses only those used take memory.
inline constexpr std::size_t kStackBytes = 64UL << 20;

// Starts a thread with such a stack. 0, or the error.
inline int begin_thread(pthread_t& thread, void* (*work)(void*), void* data) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    const int error = pthread_create(&thread, &attributes, work, data);
    pthread_attr_destroy(&attributes);
    return error;
}

// A stack for signal handlers of the thread that takes it, because its own stack may be exhausted. It must exist as long as the thread,
// which may stay in the handler.
class FaultStack {
public:
    void take() {
        const stack_t stack{.ss_sp = bytes_.data(), .ss_flags = 0, .ss_size = bytes_.size()};
        (void)sigaltstack(&stack, nullptr);
    }
    static void give_back() {
        const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
        (void)sigaltstack(&none, nullptr);
    }

private:
    // With AMX the registers that the kernel saves take 11 KiB.
    alignas(std::max_align_t) std::array<std::byte, 64UL << 10> bytes_;
};

// The signals that LLVM raises if bitcode that no compiler would write meets one of LLVM's defects.
struct Fault {
    int number;
    const char* words;
};
inline constexpr std::array<Fault, 6> kFaults{{{SIGSEGV, "it crashed (SIGSEGV)"},
                                               {SIGBUS, "it crashed (SIGBUS)"},
                                               {SIGILL, "it crashed (SIGILL)"},
                                               {SIGTRAP, "it crashed (SIGTRAP)"},
                                               {SIGFPE, "it crashed (SIGFPE)"},
                                               {SIGABRT, "it aborted, perhaps because memory ran out"}}};
// Its index in kFaults. Precondition: it is one of these signals.
inline std::size_t place_of_fault(int number) {
    return static_cast<std::size_t>(std::ranges::find(kFaults, number, [](const Fault& each) { return each.number; }) -
                                    kFaults.begin());
}

// LLVM's message as one line. Allocates nothing, because memory may have run out.
class OneLine {
public:
    OneLine() = default;
    explicit OneLine(std::string_view words) {
        words = words.substr(0, text_.size() - 1);  // LLVM may print a whole graph of instructions
        while (words.ends_with('\n')) words.remove_suffix(1);
        std::ranges::replace_copy(words, text_.begin(), '\n', ' ');
    }
    [[nodiscard]] const char* c_str() const { return text_.data(); }

private:
    std::array<char, 301> text_{};
};

// Sets LLVM's handlers for the whole process.
inline void set_llvm_handlers(llvm::fatal_error_handler_t handler) {
    llvm::remove_fatal_error_handler();
    llvm::install_fatal_error_handler(handler);
    llvm::remove_bad_alloc_error_handler();
    llvm::install_bad_alloc_error_handler(handler);
}

}  // namespace rove::bitcode
