// What the last `rove bundle` of a program found out of its functions.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string_view>

#include "code/jit/jit.hpp"
#include "package/kept_files.hpp"

namespace rove::toolchain {

// One file for each program, beside the packages: some 100 bytes for a function. What is wrong with it is as if it were not there.
class ExtractedBefore final : public code::jit::ExtractedBefore {
public:
    // made_by: what finds it out (code::made_by). has_package: whether a package has been made of bitcode with that digest.
    ExtractedBefore(const std::filesystem::path& program, std::string_view made_by,
                    std::function<bool(const Digest&)> has_package);

    [[nodiscard]] const code::jit::Extracted* find(const Digest& fingerprint) const override;
    void keep(const Digest& fingerprint, const code::jit::Extracted& extracted) override;
    [[nodiscard]] bool has_package(const Digest& bitcode) override { return has_package_(bitcode); }
    // For the next time: what was kept this time.
    void write() const;

private:
    using ByFingerprint = std::map<Digest, code::jit::Extracted>;
    [[nodiscard]] static ByFingerprint parse(Bytes file);

    const Digest key_;
    const std::function<bool(const Digest&)> has_package_;
    const KeptFiles files_;
    const ByFingerprint before_;
    ByFingerprint now_;
};

}  // namespace rove::toolchain
