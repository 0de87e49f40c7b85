// Whether everything that functions reach is unchanged since they were last taken out of their program.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "extraction/definitions.hpp"
#include "extraction/modules.hpp"

namespace rove::bitcode {

// Digests all that Copy would take along with functions. Each definition is digested once (Definitions), and not for each function that reaches
// it: 100 functions with containers take 0.3 s, where optimising and copying what they reach takes 0.9 s on two cores.
//
// Threads: one at a time. Invariant: each digest is of a definition as the compiler wrote it, because none is made after close().
class Fingerprints {
public:
    // Further facts that change what Copy makes of a function; empty: there are none.
    using More = std::function<std::string(const llvm::Function&)>;
    // The program outlives this.
    Fingerprints(Modules& program, More more) : program_(program), written_(program), more_(std::move(more)) {}
    [[nodiscard]] Definitions& definitions() { return written_; }
    // The fingerprint of these functions together. Nothing: they reach something without a name; or addresses of labels, which have a meaning in
    // whole modules only; or a definition that was not digested before close(); or the program defines a function of the C library, which the
    // optimiser may call where the source does not. invalid: the program's bitcode is malformed.
    [[nodiscard]] Result<std::optional<Digest>> of(const std::vector<const llvm::Function*>& functions);

    // From here on the program is simplified and optimised. Nothing more is digested, because it would no longer be as the compiler wrote
    // it.
    void close() { is_closed_ = true; }

private:
    using Index = std::uint32_t;
    struct Definition {
        Digest digest;         // digest of itself, and of what this program makes of it
        bool is_known = true;  // false: it has no digest
        std::vector<Index> reaches;
    };
    // Resolves the value; if it is met for the first time, notes that it is to be digested.
    Result<Index> index_of(const llvm::GlobalValue& met);
    Status define(Index index);
    [[nodiscard]] std::string facts_of(const llvm::GlobalValue& value) const;

    Modules& program_;
    Definitions written_;
    const More more_;
    bool is_closed_ = false;
    std::unordered_map<const llvm::GlobalValue*, Index> indices_;
    std::vector<const llvm::GlobalValue*> values_;
    std::vector<std::optional<Definition>> definitions_;  // digest of each value
};

}  // namespace rove::bitcode
