// Which statics a program's own code changes, while its functions run elsewhere with statics of their own.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "base/result.hpp"
#include "extraction/modules.hpp"

namespace rove::bitcode {

// Returns those of these statics (Modules::name_in_program) that may no longer have their initial values when the program sends its functions:
// code that main() or the initialisation of variables reaches, and that is not only sent, writes to them or to what they point to. The
// initialisation of the static itself does not count. If the code that receives a pointer to const is not seen, the const is trusted.
//
// Reads the bodies of all functions that the program itself may run.
[[nodiscard]] Result<std::set<std::string>> changed_at_home(Modules& program, const std::set<std::string>& statics,
                                                            const std::function<bool(const llvm::Function&)>& is_sent);

}  // namespace rove::bitcode
