// Which statics a program's own code changes, where its functions run elsewhere with statics of their own.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "base/result.hpp"
#include "bitcode/program/modules.hpp"

namespace rove::bitcode {

// Of these statics (Modules::name_in_program) those that may have other values than their first ones where the program sends its functions: code
// that begins with main() or makes the program's variables, and is not only sent, writes them or what they point to. What makes a static
// does not count. A pointer or reference to const is believed where the code that receives it is not seen.
//
// Reads the bodies of all functions that the program itself may run.
[[nodiscard]] Result<std::set<std::string>> changed_at_home(Modules& program, const std::set<std::string>& statics,
                                                            const std::function<bool(const llvm::Function&)>& is_sent);

}  // namespace rove::bitcode
