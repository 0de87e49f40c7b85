// Whether the address of a package's constant (a string literal, a row of a table, a type_info) or of a label may be kept beyond a call.
//
// It is followed from where the code names it, through arithmetic, casts, choices, aggregates, local variables, and the package's own
// functions, to what it is stored in. A library function is assumed to read what it is given and not to keep it, because hardly any package
// could be evicted otherwise; where it returns a pointer, that may be one to what it was given (strchr()).
//
// A thrown exception leads to the type_info of its class. Those that leave a function end with its call, in the node; a std::exception_ptr
// may last longer, and who makes it is not known. So a package is pinned that throws a type of its own, as those with a destructor or
// virtual functions are already, because the exception leads to these.
#pragma once

#include <llvm/IR/Module.h>

namespace rove::bitcode {

// Any is kept. `by_calls`: the package has a place of its own for an address, where a library function may write it, too (strtol()), so
// every function counts that may keep what it is given.
[[nodiscard]] bool are_constants_kept(const llvm::Module& module, bool by_calls);

}  // namespace rove::bitcode
