// The functions of this program, as the templates of rove/detail/offload.hpp have enrolled them, and the way to their packages.
//
// Threads: any. The first code_of() of a function may take seconds, because LLVM may make its package: not under an engine's lock.
//
// Invariants: an enrolled Callable lives as long as the program. The results of looking for its code are kept, except for transient errors
// (base/transient.hpp).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/made_once.hpp"
#include "package/package.hpp"
#include "program/residents.hpp"
#include "wire/frame.hpp"

namespace rove::detail {

struct Callable {
    FunctionId resident;
    std::string name;
    std::string key;  // the name by which the program's own packages call it: see package/bundle.hpp
    std::uint32_t schema = 0;

    struct Code {
        FunctionId shipped;
        std::shared_ptr<PackageStore> package;  // null: it does not travel …
        std::string why_not;                    // … because
    };
    mutable MadeOnce<const Code> code;  // found at the first call
};

[[nodiscard]] const Callable* callable_of(code::EntryPoint code);         // null: not one of this program's
[[nodiscard]] const Resident* resident_of_entry(std::string_view entry);  // by its name in packages; null: none
// Reads the packages that the program contains, so that no call waits for this.
void read_own_code();
// A digest of the forms and targets in which a package of one function contains it. 0: the package has several functions, whose ids depend
// on all of it.
[[nodiscard]] std::uint32_t forms_of_one(const PackageStore& package);
// A function of this program runs instead of the caller's: logs that once for each function, if the two have different code. Only functions
// whose packages contain no others and have the same forms can be compared.
void say_if_other_code(const Resident& own, const wire::Either& callers, const std::string& node);
// The code of the function that travels, found at the first call. overloaded: it cannot be found now.
[[nodiscard]] Result<const Callable::Code*> code_of(const Callable& callable);

}  // namespace rove::detail
