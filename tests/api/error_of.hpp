// Catches the error that a test expects to be thrown.
#pragma once

#include <gtest/gtest.h>

#include "rove/error.hpp"

namespace rove::test {

// The error of a call, or a failed test.
template <typename Work>
Error error_of(Work&& work) {
    try {
        work();
    } catch (const Error& error) {
        return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return {ErrorCode::internal, "nothing was thrown"};
}

}  // namespace rove::test
