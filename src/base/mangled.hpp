// The linkage of a function, derived from its mangled C++ name (Itanium ABI). (The demangler of libstdc++ leaves that out.)
#pragma once

#include <string>
#include <string_view>

namespace rove {

// The symbol of rove::detail::Offload<…>::run(rove_here*, const void*, std::size_t), the body of each function that a program sends
// (rove/detail/offload.hpp), from the type's name as typeid() gives it: "N4rove6detail7OffloadI…EE".
[[nodiscard]] std::string symbol_of_offload(std::string_view type);
[[nodiscard]] bool names_offload(std::string_view mangled);

// "UliE_", "UlvE0_", or clang's "$_0": the name of a closure type, or of a function within one.
[[nodiscard]] bool names_a_lambda(std::string_view mangled);

// Whether the function is known in one source file only: `static`, or in an unnamed namespace.
[[nodiscard]] bool names_internal(std::string_view mangled);

}  // namespace rove
