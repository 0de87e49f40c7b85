// The fabrics between processes that the test of mixed life runs on. The one list: the command's check and the tests follow it.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "rove/node.hpp"

namespace life {

inline constexpr std::pair<const char*, rove::FabricChoice> kFabrics[] = {
    {"shm", rove::FabricChoice::shm},
    {"tcp", rove::FabricChoice::tcp},
    {"ucx", rove::FabricChoice::ucx},
};

inline rove::FabricChoice fabric_of(std::string_view name) {
    for (const auto& [known, choice] : kFabrics)
        if (name == known) return choice;
    throw rove::Error(rove::ErrorCode::invalid, "life: no fabric '" + std::string(name) + "'");
}

}  // namespace life
