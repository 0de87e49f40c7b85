#include "base/cpu.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/made_once.hpp"

namespace rove {
namespace {

constexpr std::string_view kPrefix = "rove.cpu.";
constexpr std::string_view kX86 = "x86_64";

// clang-format off
#define ROVE_X86_EXTENSIONS(EACH)                                                                                            \
    EACH("sse3") EACH("ssse3") EACH("sse4.1") EACH("sse4.2") EACH("sse4a") EACH("popcnt") EACH("aes") EACH("pclmul")         \
    EACH("avx") EACH("avx2") EACH("fma") EACH("fma4") EACH("xop") EACH("tbm") EACH("f16c") EACH("bmi") EACH("bmi2")          \
    EACH("lzcnt") EACH("movbe") EACH("adx") EACH("rdrnd") EACH("rdseed") EACH("sha") EACH("vaes") EACH("vpclmulqdq")         \
    EACH("gfni") EACH("avxvnni") EACH("avx512f") EACH("avx512cd") EACH("avx512vl") EACH("avx512bw") EACH("avx512dq")         \
    EACH("avx512ifma") EACH("avx512vbmi") EACH("avx512vbmi2") EACH("avx512vnni") EACH("avx512bitalg")                        \
    EACH("avx512vpopcntdq") EACH("avx512bf16") EACH("avx512vp2intersect")
// clang-format on

#define ROVE_NAME(name) name,
constexpr std::string_view kX86Extensions[] = {ROVE_X86_EXTENSIONS(ROVE_NAME)};
#undef ROVE_NAME

#ifdef __x86_64__
constexpr std::string_view kHere = kX86;
using Extensions = std::unordered_map<std::string_view, bool>;
constinit MadeOnce<Extensions> asked;

// The compiler's function takes literals only. It asks the system, too, because registers that are not saved cannot be used.
Extensions* ask() {
    __builtin_cpu_init();
#define ROVE_ASKED(name) {name, __builtin_cpu_supports(name) != 0},
    return new Extensions{ROVE_X86_EXTENSIONS(ROVE_ASKED)};
#undef ROVE_ASKED
}

bool is_here(std::string_view extension) {
    const Extensions& all = asked.get(ask);
    const auto found = all.find(extension);
    return found != all.end() && found->second;
}
#else
constexpr std::string_view kHere = "aarch64";
bool is_here(std::string_view) {
    return false;
}
#endif

}  // namespace

std::span<const std::string_view> cpu_extensions(std::string_view kind) {
    if (kind == kX86) return kX86Extensions;
    return {};
}

std::string cpu_import(std::string_view kind, const std::vector<std::string_view>& extensions) {
    std::string name = std::string(kPrefix).append(kind);
    char before = '.';
    for (const std::string_view each : extensions) {
        name += before;
        name += each;
        before = '+';
    }
    return name;
}

bool is_cpu_import(std::string_view import) {
    return import.starts_with(kPrefix);
}

std::string lacked_by_cpu(std::string_view import) {
    if (!is_cpu_import(import)) return {};
    import.remove_prefix(kPrefix.size());
    if (!import.starts_with(kHere) || !import.substr(kHere.size()).starts_with('.')) return {};
    import.remove_prefix(kHere.size() + 1);
    std::string lacked;
    while (!import.empty()) {
        const std::string_view extension = import.substr(0, import.find('+'));
        import.remove_prefix(std::min(import.size(), extension.size() + 1));
        if (!is_here(extension)) (lacked += lacked.empty() ? "" : ", ") += extension;
    }
    return lacked;
}

}  // namespace rove
