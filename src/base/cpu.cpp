#include "base/cpu.hpp"

#include <algorithm>

#include "arch/arch.hpp"
#include "arch/x86_extensions.hpp"

namespace rove {
namespace {

constexpr std::string_view kPrefix = "rove.cpu.";
constexpr std::string_view kX86 = "x86_64";

}  // namespace

std::span<const std::string_view> cpu_extensions(std::string_view kind) {
    if (kind == kX86) return arch::kX86Extensions;
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
    if (!import.starts_with(arch::kName) || !import.substr(arch::kName.size()).starts_with('.')) return {};
    import.remove_prefix(arch::kName.size() + 1);
    std::string lacked;
    while (!import.empty()) {
        const std::string_view extension = import.substr(0, import.find('+'));
        import.remove_prefix(std::min(import.size(), extension.size() + 1));
        if (!arch::cpu_has(extension)) (lacked += lacked.empty() ? "" : ", ") += extension;
    }
    return lacked;
}

}  // namespace rove
