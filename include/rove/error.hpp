// Rove's one error type: what went wrong, where, and what to do about it.
//
// Inside Rove an Error travels as the unexpected side of a Result<T>; at the public C++ edge it is thrown.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#if defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#error "rove: librove.so has the std::string of GCC 5 and later; compile without -D_GLIBCXX_USE_CXX11_ABI=0"
#endif

namespace rove {

// The code says what the caller can do next. The values are those of `rove_error` in rove/rove.h and travel on
// the wire, so they never change.
enum class ErrorCode : std::uint8_t {
    ok = 0,            // never inside an Error; the C ABI's success
    invalid = 1,       // the call is wrong: fix it
    refused = 2,       // policy forbids it
    unsupported = 3,   // no form of the code fits that target
    overloaded = 4,    // a bound was reached, or memory ran out: back off and try again
    disconnected = 5,  // the node cannot be reached or has ended; the function may have run
    timed_out = 6,     // no answer in time; the function may have run
    cancelled = 7,     // the caller gave up, or the node ended
    failed = 8,        // the function reported an error, or could not be linked or compiled
    internal = 9,      // a defect in Rove
};

// The code's name as it is written in messages ("timed_out"); "unknown" for a value outside the enum.
[[nodiscard]] std::string_view to_string(ErrorCode code) noexcept;

// The code with this number; `internal` for 0 and for numbers outside the enum, so that a peer cannot turn an error into a success.
[[nodiscard]] constexpr ErrorCode error_code_of(unsigned number) noexcept {
    return number >= static_cast<unsigned>(ErrorCode::invalid) && number <= static_cast<unsigned>(ErrorCode::internal)
               ? static_cast<ErrorCode>(number)
               : ErrorCode::internal;
}

class Error : public std::exception {
public:
    // The code `ok`, and numbers outside the enum, become `internal`.
    Error(ErrorCode code, std::string message)
        : code_(error_code_of(static_cast<unsigned>(code))), message_(std::move(message)) {}

    [[nodiscard]] ErrorCode code() const noexcept { return code_; }
    // What was tried, on which node, with which function, and what to do. One line without a full stop at its end.
    [[nodiscard]] const std::string& message() const noexcept { return message_; }
    [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }
    // The type of the exception that the function threw, if that is the error; otherwise empty.
    [[nodiscard]] const std::string& exception_type() const noexcept { return exception_type_; }
    // The node that reported the error, or no_node.
    [[nodiscard]] std::uint32_t node() const noexcept { return node_; }
    static constexpr std::uint32_t no_node = 0xFFFF'FFFFU;

    // An error that a node reported; with a type, an exception there.
    [[nodiscard]] static Error reported(ErrorCode code, std::string message, std::uint32_t node, std::string type) {
        Error error(code, std::move(message));
        error.node_ = node;
        error.exception_type_ = std::move(type);
        return error;
    }

private:
    ErrorCode code_;
    std::uint32_t node_ = no_node;
    std::string message_;
    std::string exception_type_;
};

// An exception that a function threw on another node: its type as the compiler writes it ("std::out_of_range"), what() as its
// message, and the node. The code is `failed`, or that of a rove::Error that was thrown.
class RemoteError : public Error {
public:
    explicit RemoteError(Error error) : Error(std::move(error)) {}
    [[nodiscard]] const std::string& type() const noexcept { return exception_type(); }
};

}  // namespace rove
