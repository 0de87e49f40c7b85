// The functions that a program can send, and taking them, with all that they reach, out of the bitcode that it carries of itself.
#pragma once

#include <llvm/IR/Module.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bitcode/extracted.hpp"
#include "bitcode/program/copy.hpp"
#include "bitcode/program/fingerprint.hpp"
#include "bitcode/program/modules.hpp"
#include "bitcode/program/shared.hpp"

namespace rove::bitcode {

// Functions are identified by their keys (package/bundle.hpp). Several keys are always sorted.
//
// Threads: one at a time; several threads each make their own. Invariant: what take() returns depends on the program and the keys, and not on
// what was taken before (SharedCode names the one exception).
class Program {
public:
    // share: what several functions reach is optimised once, before they are taken (SharedCode); for one alone that takes longer. section:
    // the program's, and stays as long as this.
    Program(std::string path, Bytes section, bool share, Modules::IsStrong is_strong = nullptr);

    // To be called before all else. invalid: it is no bitcode, or two of its functions cannot be told apart.
    Status read();
    // The keys of all functions that the program can send.
    [[nodiscard]] std::vector<std::string> keys() const;
    // The key of a function that the running program asks for. unsupported: it is not there.
    [[nodiscard]] Result<std::string> key_of(const std::string& asked) const;
    // The fingerprint of these functions together: while it stays the same, take() returns the same. nullopt: they have none (Fingerprints::of),
    // or something was taken or optimised before this was asked for the first time.
    [[nodiscard]] Result<std::optional<Digest>> fingerprint(const std::vector<std::string>& keys);
    // The notes of earlier runs, which make fingerprints quicker; they are kept for the next run.
    [[nodiscard]] Definitions& definitions() { return fingerprints_.definitions(); }
    // take() does this for its own functions. One call for many functions is quicker: each call takes time by the size of the program's modules.
    Status optimise_shared(const std::vector<std::string>& keys);
    // Takes these functions out, into one module. Other functions that they send may be unable to travel: then a stub takes their place, whose
    // calls succeed where the function is resident, and fail elsewhere.
    [[nodiscard]] Result<Extracted> take(const std::vector<std::string>& keys);
    // Fills in Extracted::changed_at_home. The program must be as it was written (share: false, and nothing taken): calls that were inlined no
    // longer show whether a pointer to const was passed.
    Status compare_statics(std::vector<Extracted>& all);

private:
    struct Taken {
        Extracted extracted;
        std::vector<std::string> others;  // that it sends
    };
    [[nodiscard]] std::string key_of(const llvm::Function& function) const;
    [[nodiscard]] Result<llvm::Function*> function_of(const std::string& key);
    [[nodiscard]] Result<Taken> take(const std::vector<std::string>& keys,
                                     const std::map<std::string, std::string>& left);
    // Why the function itself cannot be sent, whatever other functions it sends; empty: it can. So functions that send each other need no order.
    [[nodiscard]] Result<std::string> why_not(const std::string& key);
    // The copy, in the module of what was taken, of a function that other functions send. Null: none.
    [[nodiscard]] Result<llvm::Function*> taken_of(const std::string& key, llvm::Module& taken, const Copy& copy);

    Modules modules_;
    std::optional<SharedCode> shared_;
    Fingerprints fingerprints_;
    std::vector<std::string> sources_;                                     // of each module, for keys
    std::map<std::string, std::pair<std::size_t, std::string>> offloads_;  // by key: in which module, under which name
    std::map<std::string, std::string> obstacles_;                         // of those that were asked for
};

}  // namespace rove::bitcode
