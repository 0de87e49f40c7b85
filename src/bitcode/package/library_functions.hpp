// Functions of a package that C's library has as well: a strcmp of its own.
#pragma once

#include <llvm/IR/Module.h>

#include <vector>

namespace rove::bitcode {

// The optimiser takes a function for the library's, and computes or leaves out its calls, where it has the name and the type and could be called
// from outside. It could in its program, and no function of a package can. So these can be while the optimiser works.
//
// Made before the package's functions become internal, and outlived by the module.
class LibraryFunctions {
public:
    explicit LibraryFunctions(llvm::Module& module);
    // Those that are internal by now can be called from outside, from here on …
    void begin();
    // … to here. Those that have no caller left are removed.
    void end();

private:
    llvm::Module& module_;
    std::vector<std::string> names_;
    std::vector<llvm::Function*> begun_;
};

}  // namespace rove::bitcode
