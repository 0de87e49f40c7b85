// Functions that a C program does not get from its library, because each program and each shared library has its own copy: they register
// what is to be called later together with a handle of who asks for it.
#pragma once

#include <llvm/IR/Module.h>

namespace rove::bitcode {

// Gives a module that calls them its own `atexit`, `at_quick_exit` and `pthread_atfork`, as glibc's libc_nonshared.a does, with the
// package's handle: so they are called, or forgotten, at the package's end, and not when its code is gone.
void define_exit_handlers(llvm::Module& module);

// Has functions that are marked as destructors registered before all constructors, so that they run after all else that is registered, as
// natively. A loader's list of them would be run at another moment, and not by every form.
void register_destructors(llvm::Module& module);

}  // namespace rove::bitcode
