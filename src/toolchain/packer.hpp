// Packer: makes packages of the functions that one program can send.
//
// Threads: one at a time; pack() compiles on all cores.
//
// Invariant: only a package without notes is kept on disk, under a key of everything on which it depends.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "bitcode/compiler.hpp"
#include "package/libraries.hpp"
#include "package/pack.hpp"
#include "toolchain/kept_objects.hpp"

namespace rove::toolchain {

struct Packed {
    std::shared_ptr<const ByteBuffer> package;  // null: it cannot travel …
    std::string why_not;                        // … because
    bool from_cache = false;
    // Warnings about its calls. A package with notes is not kept: it is made again the next time, so that the notes are printed again.
    std::vector<std::string> notes;
};

// In three steps: packages that were made before are looked up, the others are compiled on all cores, and these are then linked one after the
// other, which takes two milliseconds each.
class Packer {
public:
    // All of these outlive this.
    Packer(bitcode::Compiler& compiler, const std::filesystem::path& program, const Libraries& libraries,
           const std::vector<std::string>& dependencies);

    [[nodiscard]] const std::string& made_by() const { return made_by_; }
    // Why what was packed is packed again the next time; empty: it is kept.
    [[nodiscard]] const std::string& why_not_kept() const { return why_not_kept_; }

    // The package that has been made of bitcode with that digest; null: none.
    [[nodiscard]] std::shared_ptr<const ByteBuffer> find(const Digest& bitcode);

    // Returns one for each, in their order.
    [[nodiscard]] Result<std::vector<Packed>> pack(const std::vector<bitcode::Extracted>& all);

private:
    static constexpr std::size_t kAtOnce = 64;  // packages whose code is in memory: some 100 KiB each

    struct Work;  // a package that is still to be made
    [[nodiscard]] Digest key_of(const Digest& bitcode) const;
    [[nodiscard]] bool is_linked_as_now(const ByteBuffer& package) const;
    [[nodiscard]] std::vector<std::string> dependencies_of(const std::vector<std::string>& imports) const;
    void prepare(std::span<Work> work) const;
    Status link(std::span<Work> some, const std::filesystem::path& folder, std::vector<Packed>& packed);
    [[nodiscard]] Result<ByteBuffer> make(Work& work, const std::filesystem::path& folder,
                                          std::vector<std::string>& notes) const;

    bitcode::Compiler& compiler_;
    const Libraries& libraries_;
    const std::vector<std::string>& dependencies_;
    std::string linked_with_;
    std::string made_by_;
    const PackageCache cache_;
    std::string why_not_kept_;
    std::map<Digest, std::shared_ptr<const ByteBuffer>> found_;  // by the digest of their bitcode
    mutable bitcode::SharedObjects shared_;
    KeptObjects kept_objects_;
};

}  // namespace rove::toolchain
