#include "arch/arch.hpp"

namespace rove::arch {

// Packages for AArch64 name no extensions: the machine need not be asked.
bool cpu_has(std::string_view) {
    return false;
}

std::vector<Symbol> compiler_symbols() {
    return {};
}

}  // namespace rove::arch
