#include "package/bundle.hpp"

#include <algorithm>
#include <charconv>

#include "base/elf.hpp"
#include "base/made_once.hpp"
#include "base/mangled.hpp"
#include "package/digest.hpp"

namespace rove {
namespace {

constexpr std::string_view kMagic = "ROVEBND2";
constexpr std::size_t kFunctionsMax = 65536;
constexpr std::size_t kKeyBytesMax = 60000;  // C++ names can be long; a key's length has 16 bits

constexpr std::size_t kNameBytesMax = 200;

// Characters of names that assembly may print (bitcode/assembly.cpp). '@' is not among them: a linker takes the text after it as a version.
bool is_of_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

}  // namespace

std::string Bundle::file_of(std::string_view path) {
    const std::size_t last = path.rfind('/');
    if (last == std::string_view::npos || last == 0) return std::string(path);
    const std::size_t before = path.rfind('/', last - 1);
    return std::string(before == std::string_view::npos ? path : path.substr(before + 1));
}

// "square" of "rove::detail::Fn<&(square(int))>".
static std::string function_in(std::string name) {
    const std::string_view prefix = "rove::detail::Fn<";
    if (!name.starts_with(prefix)) return name;
    name = name.substr(prefix.size(), name.size() - prefix.size() - 1);
    constexpr std::string_view kUnnamed = "(anonymous namespace)";
    std::size_t begin = 0;
    while (begin < name.size() && (name[begin] == '&' || name[begin] == '(') &&
           name.compare(begin, kUnnamed.size(), kUnnamed) != 0)
        ++begin;
    if (begin == name.size()) return name;
    name.erase(0, begin);
    int angles = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (name[i] == '<') ++angles;
        if (name[i] == '>') --angles;
        if (name[i] == '(' && angles == 0 && i > 0 && name.compare(i, kUnnamed.size(), kUnnamed) != 0)
            return name.substr(0, i);
    }
    while (!name.empty() && name.back() == ')') name.pop_back();
    return name;
}

// A template's name may have any length, but a package's is bounded. No look-up uses it.
std::string Bundle::name_of(std::string name) {
    return function_in(std::move(name)).substr(0, kNameBytesMax);
}

std::string Bundle::key_of(std::string_view offload_type, std::string_view source) {
    return symbol_of_offload(offload_type) + '@' + file_of(source);
}

std::string Bundle::key_of_code(std::string_view symbol, std::string_view source, bool internal) {
    const std::size_t suffix = symbol.find('.');  // .__uniq.123, .llvm.456
    std::string key(symbol.substr(0, suffix));
    return internal ? key + '@' + file_of(source) : key;
}

std::string Bundle::entry_of(std::string_view key) {
    return "f" + resident_id({"entry", key}).hex().substr(0, 16);
}

std::string Bundle::entry_of(std::string_view key, std::string_view name, std::size_t entries) {
    constexpr std::size_t kShownMax = 100, kShownOfAllMax = wire::kManifestBytesMax / 4;
    const std::size_t shown = std::min(kShownMax, kShownOfAllMax / std::max(entries, std::size_t{1}));
    std::string entry = entry_of(key) + '.';
    const std::size_t most = entry.size() + shown;
    for (const char c : name) {
        const std::string next =
            is_of_word(c) ? std::string(1, c) : fmt::format("${:02X}", static_cast<unsigned char>(c));
        if (entry.size() + next.size() > most) break;
        entry += next;
    }
    return entry;
}

std::string Bundle::name_in(std::string_view entry) {
    const std::size_t dot = entry.find('.');
    std::string name;
    for (std::size_t at = dot; dot != std::string_view::npos && ++at < entry.size();) {
        unsigned code = 0;
        const char* const digits = entry.data() + at + 1;
        const bool is_code = entry[at] == '$' && entry.size() - at > 2 &&
                             std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2 && code >= 0x20 &&
                             code < 0x7F;
        name += is_code ? static_cast<char>(code) : entry[at];
        if (is_code) at += 2;
    }
    return name;
}

std::optional<std::size_t> Bundle::place_in(const PackageStore& package, const std::string& key) {
    const std::vector<std::string>& entries = package.manifest().entries;
    for (const std::string& wanted : {entry_of(key), entry_of(without_file(key))}) {
        const auto found = std::find_if(entries.begin(), entries.end(),
                                        [&](const std::string& entry) { return without_name(entry) == wanted; });
        if (found != entries.end()) return static_cast<std::size_t>(found - entries.begin());
    }
    return std::nullopt;
}

Status Bundle::check_key(const std::string& key) {
    if (key.size() <= kKeyBytesMax) return {};
    return fail(ErrorCode::unsupported,
                "its mangled name has {} bytes, and {} are the most; give its type a shorter name", key.size(),
                kKeyBytesMax);
}

Result<ByteBuffer> Bundle::encode(const std::vector<Entry>& entries) {
    if (entries.size() > kFunctionsMax)
        return fail(ErrorCode::unsupported, "it would send {} functions, and {} are the most", entries.size(),
                    kFunctionsMax);
    // Functions that travel together have one package.
    std::vector<std::shared_ptr<const ByteBuffer>> packages;
    const auto number_of = [&packages](const std::shared_ptr<const ByteBuffer>& package) -> std::uint32_t {
        if (!package) return 0;
        const auto known = std::find(packages.begin(), packages.end(), package);
        const auto number = static_cast<std::uint32_t>(known - packages.begin()) + 1;
        if (known == packages.end()) packages.push_back(package);
        return number;
    };
    Writer out;
    out.bytes(as_bytes(kMagic));
    out.number(static_cast<std::uint32_t>(entries.size()));
    for (const Entry& entry : entries) {
        out.text(entry.key);
        out.text(std::string_view(entry.why_not).substr(0, 4096));
        out.number(number_of(entry.package));
    }
    out.number(static_cast<std::uint32_t>(packages.size()));
    for (const auto& package : packages) out.number(static_cast<std::uint32_t>(package->size()));
    for (const auto& package : packages) out.bytes(*package);
    return out.take();
}

Result<std::vector<Bundle::Entry>> Bundle::decode(Bytes bytes) {
    Reader in(bytes);
    if (as_text(in.take(kMagic.size())) != kMagic)
        return fail(ErrorCode::invalid, "not a bundle of packages, or of another version of Rove");
    const auto count = in.number<std::uint32_t>();
    if (!in.ok() || count > kFunctionsMax)
        return fail(ErrorCode::invalid, "a bundle of {} functions is over the limit", count);
    std::vector<Entry> entries;
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
        Entry entry;
        entry.key = in.text();
        entry.why_not = in.text();
        numbers.push_back(in.number<std::uint32_t>());
        if (entry.key.size() > kKeyBytesMax) in.fail();
        entries.push_back(std::move(entry));
    }
    const auto package_count = in.number<std::uint32_t>();
    if (!in.ok() || package_count > entries.size())
        return fail(ErrorCode::invalid, "a bundle of {} functions that has more packages", count);
    std::vector<std::uint32_t> sizes(package_count);
    for (std::uint32_t& size : sizes) size = in.number<std::uint32_t>();
    std::vector<std::shared_ptr<const ByteBuffer>> packages;
    for (const std::uint32_t size : sizes) {
        const Bytes package = in.take(size);
        packages.push_back(std::make_shared<const ByteBuffer>(package.begin(), package.end()));
    }
    if (!in.done()) return fail(ErrorCode::invalid, "a bundle of packages that is cut short, or has more after it");
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (numbers[i] > packages.size())
            return fail(ErrorCode::invalid, "a bundle of {} packages, and a function in number {}", package_count,
                        numbers[i]);
        if (numbers[i] != 0) entries[i].package = packages[numbers[i] - 1];
    }
    return entries;
}

const Bundle& Bundle::of_program() {
    static constinit MadeOnce<const Bundle>
        bundle;  // a thread reads it in advance, and may be doing so when the program forks or ends
    return bundle.get([] {
        auto* const kept = new Bundle;
        Bundle& read = *kept;
        const Result<ByteBuffer> section = read_section("/proc/self/exe", kSection);
        if (!section || section->empty()) return kept;
        Result<std::vector<Entry>> entries = decode(*section);
        if (!entries) {
            read.why_unreadable_ = entries.error().message();
            return kept;
        }
        std::unordered_map<const ByteBuffer*, Result<std::shared_ptr<PackageStore>>> opened;  // functions may share one
        for (Entry& entry : *entries) {
            Found& found = read.found_[std::move(entry.key)];
            found.why_not = std::move(entry.why_not);
            if (!entry.package) continue;
            auto known = opened.find(entry.package.get());
            if (known == opened.end())
                known = opened.emplace(entry.package.get(), PackageStore::parse(*entry.package)).first;
            const Result<std::shared_ptr<PackageStore>>& package = known->second;
            if (package)
                found.package = *package;
            else
                found.why_not = package.error().message();
        }
        return kept;
    });
}

Bundle::Found Bundle::find(const std::string& key) const {
    if (const Status fits = check_key(key); !fits) return {.package = {}, .why_not = fits.error().message()};
    const auto found = find_code(found_, key);
    return found != found_.end() ? found->second : Found{};
}

}  // namespace rove
