// The message of an exception.
#pragma once

#include <exception>
#include <string>

namespace rove {

// what() of an exception that is not the program's own may be null.
[[nodiscard]] inline std::string words_of(const std::exception& error) {
    const char* const words = error.what();
    return words != nullptr ? words : "an exception without words";
}

}  // namespace rove
