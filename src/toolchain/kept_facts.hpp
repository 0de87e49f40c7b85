// The facts that the last `rove bundle` of a program determined about its functions.
//
// Threads: one at a time.
//
// Invariant: find() and definitions() answer from the file as the constructor read it; what is kept since is only for write(). So the
// pointers and bytes that they return are valid for as long as this object.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string_view>

#include "bitcode/extracted.hpp"
#include "package/kept_files.hpp"

namespace rove::toolchain {

// One file for each program, in the folder of cached packages: some 150 bytes for a function, and as many for each definition that it reaches.
// A file that is missing or damaged holds nothing.
class KeptFacts final : public bitcode::KnownFacts {
public:
    // made_by: identifies what determines the facts (code::made_by). has_package: whether a package has been made of bitcode with that
    // digest.
    KeptFacts(const std::filesystem::path& program, std::string_view made_by,
              std::function<bool(const Digest&)> has_package);

    [[nodiscard]] const bitcode::Facts* find(const Digest& fingerprint) const override;
    void keep(const Digest& fingerprint, const bitcode::Facts& facts) override;
    [[nodiscard]] bool has_package(const Digest& bitcode) override { return has_package_(bitcode); }
    [[nodiscard]] Bytes definitions(const Digest& module) const override;
    void keep_definitions(const Digest& module, ByteBuffer notes) override;
    // Writes what was kept this time, for the next time.
    void write() const;

private:
    struct Kept {
        std::map<Digest, bitcode::Facts> functions;  // by fingerprint
        std::map<Digest, ByteBuffer> definitions;    // by module
    };
    [[nodiscard]] static Kept parse(Bytes file);

    const Digest key_;
    const std::function<bool(const Digest&)> has_package_;
    const KeptFiles files_;
    const Kept before_;
    Kept now_;
};

}  // namespace rove::toolchain
