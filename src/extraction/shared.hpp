// Functions that several packages have: optimised once, in their source, and not changed in each package.
#pragma once

#include <llvm/IR/Module.h>

#include <map>
#include <unordered_set>
#include <vector>

#include "base/result.hpp"
#include "extraction/modules.hpp"

namespace rove::bitcode {

// Instances of templates and inline functions are the same wherever they are used: two functions with a std::map have some 600 in common, and a
// package's own code is a fifth of it. So these are optimised before they are copied, callees first. The result for each depends on the code
// that it reaches, and neither on the functions that are sent nor on their order. (Exception: among functions that call each other LLVM begins
// with the first one that it finds. So packages with such functions may have another digest, and the same meaning, if other functions are sent.)
//
// Another file may have a function of the same name with another body (linkonce_odr), and a package may get that one. So, as in clang, the body
// may be inlined, but its callers must not rely on the absence of effects (throwing, writing).
//
// Threads: one at a time. Invariant: functions in `reached_` have been read and simplified, and optimised if they may be shared; they are not
// visited again.
class SharedCode {
public:
    explicit SharedCode(Modules& program) : program_(program) {}
    // Optimises functions that these reach and others may reach as well, unless they are optimised already. invalid: the program's bitcode
    // is malformed.
    [[nodiscard]] Status optimise(const std::vector<const llvm::Function*>& roots);

private:
    using InModules = std::map<std::size_t, std::vector<llvm::Function*>>;  // by the module's index
    Status find(std::vector<const llvm::Value*> rest, InModules& shared);
    Status read(llvm::Function& function, InModules& shared);

    Modules& program_;
    std::unordered_set<const llvm::GlobalValue*> reached_;
};

}  // namespace rove::bitcode
