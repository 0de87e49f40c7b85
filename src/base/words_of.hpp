// What an exception says.
#pragma once

#include <exception>
#include <string>

namespace rove {

// One that is not the program's own may say nothing at all.
[[nodiscard]] inline std::string words_of(const std::exception& error) {
    const char* const words = error.what();
    return words != nullptr ? words : "an exception without words";
}

}  // namespace rove
