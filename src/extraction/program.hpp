// The functions that a program can send, and taking them, with all that they reach, out of the bitcode that its file contains.
#pragma once

#include <llvm/IR/Module.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bitcode/extracted.hpp"
#include "extraction/copy.hpp"
#include "extraction/fingerprint.hpp"
#include "extraction/modules.hpp"
#include "extraction/shared.hpp"

namespace rove::bitcode {

// Functions are identified by their keys (package/bundle.hpp). Several keys are always sorted.
//
// Threads: one at a time; several threads each make their own. Invariant: the result of take() depends on the program and the keys, and not
// on what was taken before (SharedCode names the one exception).
class Program {
public:
    // share: code that several functions reach is optimised once, before they are taken (SharedCode); for one function alone that takes
    // longer. section: the program's; outlives this.
    Program(std::string path, Bytes section, bool share, Modules::IsStrong is_strong = nullptr);

    // To be called first. invalid: it is no bitcode, or two of its functions cannot be distinguished.
    Status read();
    // The keys of all functions that the program can send.
    [[nodiscard]] std::vector<std::string> keys() const;
    // The key of a function that the running program requests. unsupported: there is no such function.
    [[nodiscard]] Result<std::string> key_of(const std::string& asked) const;
    // The fingerprint of these functions together: while it stays the same, take() returns the same. nullopt: they have none (Fingerprints::of),
    // or something was taken or optimised before the first query.
    [[nodiscard]] Result<std::optional<Digest>> fingerprint(const std::vector<std::string>& keys);
    // The notes of earlier runs, which make fingerprints quicker; they are kept for the next run.
    [[nodiscard]] Definitions& definitions() { return fingerprints_.definitions(); }
    // take() does this for its own functions. One call for many functions is faster: each call takes time in proportion to the size of the
    // program's modules.
    Status optimise_shared(const std::vector<std::string>& keys);
    // Takes these functions out, into one module. Other functions that they send may be unable to travel: then a stub replaces them, whose
    // calls succeed if the function is resident, and fail elsewhere.
    [[nodiscard]] Result<Extracted> take(const std::vector<std::string>& keys);
    // Fills in Extracted::changed_at_home. The program must be as it was written (share: false, and nothing taken): calls that were inlined no
    // longer show whether a pointer to const was passed.
    Status compare_statics(std::vector<Extracted>& all);

private:
    struct Taken {
        Extracted extracted;
        std::vector<std::string> others;    // other functions that it sends
        bool has_memory_functions = false;  // see Copy
    };
    [[nodiscard]] std::string key_of(const llvm::Function& function) const;
    [[nodiscard]] Result<llvm::Function*> function_of(const std::string& key);
    [[nodiscard]] Result<Taken> take(const std::vector<std::string>& keys,
                                     const std::map<std::string, std::string>& left);
    // memory_functions: the program's own memcpy() and the like travel with code for which the compiler calls them.
    [[nodiscard]] Result<Taken> take_with(const std::vector<std::string>& keys,
                                          const std::map<std::string, std::string>& left, bool memory_functions);
    // Why the function itself cannot be sent, whatever other functions it sends; empty: it can. So functions that send each other need no order.
    [[nodiscard]] Result<std::string> why_not(const std::string& key);
    // The copy, in the module of taken functions, of a function that other functions send. Null: none.
    [[nodiscard]] Result<llvm::Function*> taken_of(const std::string& key, llvm::Module& taken, const Copy& copy);

    Modules modules_;
    std::optional<SharedCode> shared_;
    Fingerprints fingerprints_;
    std::vector<std::string> sources_;  // source of each module, for keys
    // By key: the module's index, and the function's name there.
    std::map<std::string, std::pair<std::size_t, std::string>> offloads_;
    // Reasons why functions cannot travel, as far as they were determined.
    std::map<std::string, std::string> obstacles_;
};

}  // namespace rove::bitcode
