// ROVE_TRY and ROVE_CHECK (base/result.hpp) for coroutines.
#pragma once

#include "base/result.hpp"

#define ROVE_CO_TRY(declaration, expression)                                                  \
    auto ROVE_CONCAT(rove_try_, __LINE__) = (expression);                                     \
    if (!ROVE_CONCAT(rove_try_, __LINE__))                                                    \
        co_return tl::unexpected<Error>(std::move(ROVE_CONCAT(rove_try_, __LINE__).error())); \
    declaration = std::move(*ROVE_CONCAT(rove_try_, __LINE__))
#define ROVE_CO_CHECK(expression) \
    if (auto rove_status = (expression); !rove_status) co_return tl::unexpected<Error>(rove_status.error())
