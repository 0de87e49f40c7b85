// The message of an exception.
#pragma once

#include <exception>
#include <string>
#include <typeinfo>

#include "base/demangle.hpp"

namespace rove {

// what() of an exception that is not the program's own may be null.
[[nodiscard]] inline std::string words_of(const std::exception& error) {
    const char* const words = error.what();
    return words != nullptr ? words : "an exception without a message";
}

// The type of the exception that is being handled; empty: it is another language's (Rust, Objective-C), which has none. libstdc++'s
// __cxa_current_exception_type() is not used, because it takes every exception for one of C++.
[[nodiscard]] inline std::string type_of_caught() {
    const std::exception_ptr caught = std::current_exception();  // null: another language's
    return caught ? demangled(caught.__cxa_exception_type()->name()) : std::string();
}

}  // namespace rove
