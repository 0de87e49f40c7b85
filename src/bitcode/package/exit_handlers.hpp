// Functions of which each C program and each shared library has its own copy, instead of calling the C library's: they register a function
// that is to be called later together with a handle of the program or library.
#pragma once

#include <llvm/IR/Module.h>

namespace rove::bitcode {

// If a module calls them, gives it its own `atexit`, `at_quick_exit` and `pthread_atfork`, as glibc's libc_nonshared.a does, with the
// package's handle: so the registered functions are called, or dropped, at the package's end, and not after its code was released.
void define_exit_handlers(llvm::Module& module);

// Registers functions that are marked as destructors before all constructors, so that they run after all others that are registered, as
// natively. A loader would run them at another time, and not for every form.
void register_destructors(llvm::Module& module);

}  // namespace rove::bitcode
