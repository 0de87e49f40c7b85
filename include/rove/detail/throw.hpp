// How the headers throw, with exceptions and without.
#pragma once

#include <string>
#include <utility>

#include "rove/edge.h"
#include "rove/error.hpp"

namespace rove::detail {

// Throws RemoteError if a function threw, else Error. Without exceptions (-fno-exceptions) the function that this thread runs for
// a caller ends with the error; a program that is in no such function ends with the message on stderr.
// NOLINTNEXTLINE(performance-unnecessary-value-param): moved, where there are exceptions
[[noreturn]] inline void throw_error(Error error) {
#ifdef __cpp_exceptions
    if (!error.exception_type().empty()) throw RemoteError(std::move(error));
    throw error;
#else
    const rove_failure why{static_cast<int>(error.code()), error.node(), error.exception_type().c_str(),
                           error.message().c_str()};
    rove_raise(&why);
#endif
}
// Throws an Error of this node. A separate throw expression, so that shipped code does not contain RemoteError.
[[noreturn]] inline void throw_error(ErrorCode code, std::string message) {
#ifdef __cpp_exceptions
    throw Error(code, std::move(message));
#else
    throw_error(Error(code, std::move(message)));
#endif
}

}  // namespace rove::detail
