#include "toolchain/header.hpp"

#include <fmt/format.h>

#include <cctype>

namespace rove::toolchain {
namespace {

std::string macro(std::string_view name) {
    std::string upper;
    for (const char c : name)
        upper += std::isalnum(static_cast<unsigned char>(c)) != 0
                     ? static_cast<char>(std::toupper(static_cast<unsigned char>(c)))
                     : '_';
    return upper;
}

}  // namespace

std::string header_of(const PackageStore& package) {
    const wire::Manifest& manifest = package.manifest();
    const std::string prefix = "ROVE_PACKAGE_" + macro(manifest.name);
    std::string text = fmt::format(
        "/* Package {0}: its functions' names and ids. Made by rove build; the ids change with the package's content. "
        "*/\n"
        "#ifndef {1}_H\n#define {1}_H\n\n#define {1}_NAME \"{0}\"\n#define {1}_DIGEST \"{2}\"\n",
        manifest.name, prefix, package.digest().hex());
    for (std::size_t i = 0; i < manifest.entries.size(); ++i) {
        const std::string& entry = manifest.entries[i];
        std::string bytes;
        for (const std::uint8_t byte : package.function_ids()[i].bytes)
            bytes += fmt::format("{}0x{:02x}", bytes.empty() ? "" : ", ", byte);
        text += fmt::format(
            "\n/* {0}:{1} */\n#define {2}_{3}_NAME \"{1}\"\n#define {2}_{3}_ID \"{4}\"\n#define {2}_{3}_ID_BYTES "
            "{{{5}}}\n",
            manifest.name, entry, prefix, macro(entry), package.function_ids()[i].hex(), bytes);
    }
    return text + fmt::format("\n#endif /* {}_H */\n", prefix);
}

}  // namespace rove::toolchain
