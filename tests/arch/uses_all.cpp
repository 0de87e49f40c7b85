// All that arch.hpp speaks of, so that the compiler sees each of them, also those of another instruction set.
#include "arch/arch.hpp"

namespace rove::test {

using namespace rove;

std::uint64_t uses_all(std::byte& line, const std::uint64_t& word);
std::uint64_t uses_all(std::byte& line, const std::uint64_t& word) {
    static_assert(arch::kTriple.starts_with(arch::kName));
    arch::own_soon(&line);
    arch::code_written(&line, &line + 1);
    arch::pause();
    arch::rest();
    arch::rest_briefly();
    arch::rest_until_written(word, [] { return true; });
    const arch::FloatControls before;
    arch::FloatControls::set_standard();
    arch::FloatControls::reset();
    before.restore();
    return arch::ticks() + arch::page_bytes() + (arch::cpu_has("none") ? 1 : 0) + arch::compiler_symbols().size();
}

}  // namespace rove::test
