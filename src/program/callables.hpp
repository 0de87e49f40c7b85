// The functions of this program, as the templates of rove/detail/offload.hpp have enrolled them, and the way to their packages.
//
// Threads: any.
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
    std::string key;  // by which the program's own packages name it: see package/bundle.hpp
    std::uint32_t schema = 0;

    struct Code {
        FunctionId shipped;
        std::shared_ptr<PackageStore> package;  // null: it does not travel …
        std::string why_not;                    // … because
    };
    mutable MadeOnce<const Code> code;  // looked for at the first call
};

[[nodiscard]] const Callable* callable_of(code::EntryPoint code);         // null: none of this program's
[[nodiscard]] const Resident* resident_of_entry(std::string_view entry);  // by the name it has in packages; null: none
// Reads what says which code this program's functions have, so that no call waits for it.
void read_own_code();
// The forms in which a package of one function has it, as a number. 0: it has several functions, whose ids depend on all of the package.
[[nodiscard]] std::uint32_t forms_of_one(const PackageStore& package);
// A function of this program runs in place of the caller's: says so once, where both are alone in packages of the same forms and differ.
// Others cannot be compared.
void say_if_other_code(const Resident& own, const wire::Either& callers, const std::string& node);
// The code of the function that travels; looks for it the first time. overloaded: that cannot be done now.
[[nodiscard]] Result<const Callable::Code*> code_of(const Callable& callable);

}  // namespace rove::detail
