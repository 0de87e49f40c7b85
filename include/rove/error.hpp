// Rove's one error type: what went wrong, where, and what to do about it.
//
// Inside Rove an Error travels as the unexpected side of a Result<T>; at the public C++ edge it is thrown.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace rove {

// The code says what the caller can do next. The values are those of `rove_error` in rove/rove.h and travel on
// the wire, so they never change.
enum class ErrorCode : std::uint8_t {
    ok = 0,            // never inside an Error; the C ABI's success
    invalid = 1,       // the call is wrong: fix it
    refused = 2,       // policy forbids it
    unsupported = 3,   // no form of the code fits that target
    overloaded = 4,    // a bound was reached: back off and try again
    disconnected = 5,  // the node is not there; the function may have run
    timed_out = 6,     // no answer in time; the function may have run
    cancelled = 7,     // the caller gave up
    failed = 8,        // the function said so, or could not be linked or compiled
    internal = 9,      // a defect in Rove
};

// The code's name as it is written in messages ("timed_out"); "unknown" for a value outside the enum.
[[nodiscard]] std::string_view to_string(ErrorCode code) noexcept;

class Error : public std::exception {
public:
    Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

    [[nodiscard]] ErrorCode code() const noexcept { return code_; }
    // What was tried, on which node, with which function, and what to do. One line, no trailing full stop.
    [[nodiscard]] const std::string& message() const noexcept { return message_; }
    [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

private:
    ErrorCode code_;
    std::string message_;
};

}  // namespace rove
