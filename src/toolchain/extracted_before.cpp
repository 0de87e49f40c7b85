#include "toolchain/extracted_before.hpp"

#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "package/pack.hpp"

namespace rove::toolchain {
namespace {

constexpr std::size_t kProgramsMax = 256;
constexpr std::size_t kBytesMax = 16UL << 20;  // some 100,000 functions

Digest key_of(const std::filesystem::path& program, std::string_view made_by) {
    std::error_code unknown;
    return PackageCache::key_of({made_by, std::filesystem::absolute(program, unknown).string()});
}

void write(Writer& file, std::string_view text) {
    file.number(static_cast<std::uint32_t>(text.size()));
    file.bytes(as_bytes(text));
}
void write(Writer& file, const std::vector<std::string>& texts) {
    file.number(static_cast<std::uint32_t>(texts.size()));
    for (const std::string& each : texts) write(file, each);
}
std::string read_text(Reader& file) {
    return std::string(as_text(file.take(file.number<std::uint32_t>())));
}
std::vector<std::string> read_texts(Reader& file) {
    std::vector<std::string> texts;
    for (auto left = file.number<std::uint32_t>(); left > 0 && file.ok(); --left) texts.push_back(read_text(file));
    return texts;
}

void write(Writer& file, const Digest& digest) {
    file.bytes(std::as_bytes(std::span(digest.bytes)));
}

}  // namespace

ExtractedBefore::ExtractedBefore(const std::filesystem::path& program, std::string_view made_by,
                                 std::function<bool(const Digest&)> has_package)
    : key_(key_of(program, made_by)),
      has_package_(std::move(has_package)),
      files_(KeptFiles::default_folder(), ".extracted", kProgramsMax, kBytesMax),
      before_(parse(files_.find(key_))) {}

const code::jit::Extracted* ExtractedBefore::find(const Digest& fingerprint) const {
    const auto known = before_.find(fingerprint);
    return known != before_.end() ? &known->second : nullptr;
}

void ExtractedBefore::keep(const Digest& fingerprint, const code::jit::Extracted& extracted) {
    now_[fingerprint] = {.keys = {},
                         .name = extracted.name,
                         .obstacle = extracted.obstacle,
                         .digest = extracted.digest,
                         .bitcode = {},
                         .entries = {},
                         .replaced = extracted.replaced,
                         .statics = extracted.statics,
                         .begin_anew = {}};
}

// A digest of the rest, and then one function after the other.
void ExtractedBefore::write() const {
    Writer all;
    for (const auto& [fingerprint, extracted] : now_) {
        toolchain::write(all, fingerprint);
        toolchain::write(all, extracted.digest);
        toolchain::write(all, extracted.name);
        toolchain::write(all, extracted.obstacle);
        toolchain::write(all, extracted.replaced);
        toolchain::write(all, extracted.statics);
    }
    const ByteBuffer rest = all.take();
    Writer file;
    toolchain::write(file, PackageCache::key_of({as_text(rest)}));
    file.bytes(rest);
    files_.keep(key_, file.take());
}

ExtractedBefore::ByFingerprint ExtractedBefore::parse(Bytes file) {
    Reader all(file);
    const auto digest = all.id<Digest>();
    if (!all.ok() || digest != PackageCache::key_of({as_text(all.rest())})) return {};
    ByFingerprint functions;
    while (all.ok() && !all.done()) {
        code::jit::Extracted& extracted = functions[all.id<Digest>()];
        extracted.digest = all.id<Digest>();
        extracted.name = read_text(all);
        extracted.obstacle = read_text(all);
        extracted.replaced = read_texts(all);
        extracted.statics = read_texts(all);
    }
    return all.ok() ? std::move(functions) : ByFingerprint();
}

}  // namespace rove::toolchain
