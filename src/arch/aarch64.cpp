#include "arch/arch.hpp"

namespace rove::arch {

// Packages for AArch64 name no extensions, so there is nothing to check.
bool cpu_has(std::string_view) {
    return false;
}

std::vector<Symbol> compiler_symbols() {
    return {};
}

}  // namespace rove::arch
