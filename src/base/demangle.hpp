// Readable C++ names.
#pragma once

#include <cxxabi.h>

#include <cstdlib>
#include <string>

namespace rove {

// "std::out_of_range" of "St12out_of_range"; other text is returned unchanged.
[[nodiscard]] inline std::string demangled(const char* name) {
    int status = 0;
    char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
    std::string result = status == 0 && text != nullptr ? text : name;
    std::free(text);  // NOLINT: __cxa_demangle's
    return result;
}

}  // namespace rove
