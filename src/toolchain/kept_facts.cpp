#include "toolchain/kept_facts.hpp"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "package/pack.hpp"
#include "toolchain/sealed.hpp"

namespace rove::toolchain {
namespace {

constexpr std::size_t kProgramsMax = 256;
constexpr std::size_t kFramingMax = 128;       // the file's, and each module's: digests and a length
constexpr std::size_t kBytesMax = 16UL << 20;  // some 100,000 functions and definitions

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

// Both name every member, so that no new one is forgotten.
void write(Writer& file, const bitcode::Facts& facts) {
    const auto& [name, obstacle, digest, replaced, statics] = facts;
    write(file, digest);
    write(file, name);
    write(file, obstacle);
    write(file, replaced);
    write(file, statics);
}
bitcode::Facts read_facts(Reader& file) {
    bitcode::Facts facts;
    auto& [name, obstacle, digest, replaced, statics] = facts;
    digest = file.id<Digest>();
    name = read_text(file);
    obstacle = read_text(file);
    replaced = read_texts(file);
    statics = read_texts(file);
    return facts;
}

}  // namespace

KeptFacts::KeptFacts(const std::filesystem::path& program, std::string_view made_by,
                     std::function<bool(const Digest&)> has_package)
    : key_(key_of_program(program, made_by)),
      has_package_(std::move(has_package)),
      files_(KeptFiles::default_folder(), ".extracted", kProgramsMax, kBytesMax),
      before_(parse(files_.find(key_))) {}

const bitcode::Facts* KeptFacts::find(const Digest& fingerprint) const {
    const auto known = before_.functions.find(fingerprint);
    return known != before_.functions.end() ? &known->second : nullptr;
}

void KeptFacts::keep(const Digest& fingerprint, const bitcode::Facts& facts) {
    now_.functions[fingerprint] = facts;
}

Bytes KeptFacts::definitions(const Digest& module) const {
    const auto known = before_.definitions.find(module);
    return known != before_.definitions.end() ? Bytes(known->second) : Bytes();
}

void KeptFacts::keep_definitions(const Digest& module, ByteBuffer notes) {
    now_.definitions[module] = std::move(notes);
}

// The functions, and then, if there is room, the definitions of one module after the other.
void KeptFacts::write() const {
    Writer all;
    all.number(static_cast<std::uint32_t>(now_.functions.size()));
    for (const auto& [fingerprint, facts] : now_.functions) {
        toolchain::write(all, fingerprint);
        toolchain::write(all, facts);
    }
    for (const auto& [module, notes] : now_.definitions) {
        if (all.size() + notes.size() > kBytesMax - kFramingMax) continue;
        toolchain::write(all, module);
        toolchain::write(all, as_text(notes));
    }
    (void)files_.keep(key_, seal(all.take()));
}

KeptFacts::Kept KeptFacts::parse(Bytes file) {
    Reader all(unseal(file));
    if (all.done()) return {};
    Kept kept;
    for (auto left = all.number<std::uint32_t>(); left > 0 && all.ok(); --left) {
        bitcode::Facts& facts = kept.functions[all.id<Digest>()];
        facts = read_facts(all);
    }
    while (all.ok() && !all.done()) {
        ByteBuffer& notes = kept.definitions[all.id<Digest>()];
        const Bytes read = all.take(all.number<std::uint32_t>());
        notes.assign(read.begin(), read.end());
    }
    return all.ok() ? std::move(kept) : Kept();
}

}  // namespace rove::toolchain
