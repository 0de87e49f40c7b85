// A CodeExchange beside neighbours, and what it uses.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "idle_lead.hpp"
#include "neighbours.hpp"
#include "peer/code_exchange.hpp"

namespace rove::test {

class Exchanging : public testing::Test {
protected:
    NodeOptions options_{.listen = "127.0.0.1:0"};
    Neighbours neighbours_;
    const std::unique_ptr<code::CodeCache> cache_ = std::make_unique<code::CodeCache>(code::CodeOptions{});
    OwnFunctions own_functions_;
    std::optional<Parked> local_parked_;
    CodeExchange exchange_{{.options = options_,
                            .cache = cache_,
                            .peers = neighbours_.peers,
                            .routes = neighbours_.routes,
                            .others = neighbours_.others,
                            .sender = neighbours_.sender,
                            .complaints = neighbours_.complaints,
                            .own_functions = own_functions_,
                            .local_parked = local_parked_,
                            .name = &IdleLead::name}};
};

}  // namespace rove::test
