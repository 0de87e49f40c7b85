// Result<T>: Rove's one error channel inside the library. Exceptions appear only at the public edge.
#pragma once

#include <fmt/format.h>

#include <tl/expected.hpp>
#include <utility>

#include "rove/detail/throw.hpp"
#include "rove/error.hpp"

namespace rove {

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// `return fail(ErrorCode::invalid, "{}: no such entry", name);`
template <typename... Args>
[[nodiscard]] tl::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> text, Args&&... args) {
    return tl::unexpected<Error>(Error(code, fmt::format(text, std::forward<Args>(args)...)));
}

// The error for running out of memory. Its text fits into the string object itself, so that it needs no allocation.
[[nodiscard]] inline Error no_memory() {
    return {ErrorCode::overloaded, "memory ran out"};
}

// Puts "what: " before the message of an error that is passed upwards.
[[nodiscard]] inline tl::unexpected<Error> prefixed(const Error& error, std::string_view what) {
    return tl::unexpected<Error>(Error(error.code(), fmt::format("{}: {}", what, error.message())));
}

// Throws the error of a Result, or returns its value; for the public functions.
template <typename T>
T value_or_throw(Result<T>&& result) {
    if (!result) detail::throw_error(std::move(result.error()));
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace rove

#define ROVE_CONCAT_(a, b) a##b
#define ROVE_CONCAT(a, b) ROVE_CONCAT_(a, b)
// ROVE_TRY(auto x, f()) binds the value of a Result or returns its error from the enclosing function.
#define ROVE_TRY(declaration, expression)                                                            \
    auto ROVE_CONCAT(rove_try_, __LINE__) = (expression);                                            \
    if (!ROVE_CONCAT(rove_try_, __LINE__))                                                           \
        return ::tl::unexpected<::rove::Error>(std::move(ROVE_CONCAT(rove_try_, __LINE__).error())); \
    declaration = std::move(*ROVE_CONCAT(rove_try_, __LINE__))
// ROVE_CHECK(f()) returns the error of a Status from the enclosing function.
#define ROVE_CHECK(expression)                                                      \
    do {                                                                            \
        if (auto rove_status = (expression); !rove_status)                          \
            return ::tl::unexpected<::rove::Error>(std::move(rove_status.error())); \
    } while (false)
