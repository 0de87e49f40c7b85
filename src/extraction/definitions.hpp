// A digest of each of a program's definitions.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "bitcode/extracted.hpp"
#include "extraction/modules.hpp"
#include "extraction/outline.hpp"

namespace rove::bitcode {

// Digests definitions as the compiler wrote them. Definitions whose bitcode has not changed since the last time (Outline) are unchanged, and
// are not even read: 3000 definitions take 0.28 s otherwise.
//
// Threads: one at a time. Invariant: the notes only save time: a definition whose bitcode has changed is digested again.
class Definitions {
public:
    struct Definition {
        bool is_known = true;                           // false: it has no digest
        Digest digest;                                  // digest of itself and of the names that it reaches
        std::vector<const llvm::GlobalValue*> reaches;  // values in its own module, in the order in which they are met
    };

    // The program outlives this.
    explicit Definitions(Modules& program) : program_(program) {}
    // Takes over the notes of the last time. To be called before of().
    void recall(const KnownFacts& known);
    // Keeps the notes for the next time.
    void note(KnownFacts& known) const;

    // Precondition: the value is as the compiler wrote it, neither simplified nor optimised. invalid: its bitcode is malformed.
    [[nodiscard]] Result<Definition> of(const llvm::GlobalValue& value);
    // A digest of its declaration, which other code sees.
    [[nodiscard]] static Digest declaration_of(const llvm::GlobalValue& value);
    // A digest of the module's own properties, which concern everything in it.
    [[nodiscard]] const Digest& of_module(const llvm::Module& module);

private:
    // The notes of modules with the same surroundings. Names are identified by their places in the list: each is listed once.
    struct Notes {
        using Index = std::uint32_t;
        struct Entry {
            Digest body;  // digest of the body in the bitcode; zeros: it has none
            bool is_known = true;
            Digest digest;
            std::vector<Index> reaches;
        };
        std::vector<std::string> names;
        std::unordered_map<std::string, Index> places;
        std::map<Index, Entry> definitions;

        Index place_of(const std::string& name);
        [[nodiscard]] ByteBuffer encode() const;
        // Nothing: the bytes are not what encode() writes.
        static Notes decode(Bytes encoded);
    };
    struct NotedModule {
        Outline outline;
        Notes notes;
        std::unordered_map<const llvm::GlobalValue*, Digest> bodies;  // filled in at the first query

        [[nodiscard]] Digest body_of(const llvm::GlobalValue& value) const {
            const auto body = bodies.find(&value);
            return body != bodies.end() ? body->second : Digest();
        }
    };
    // The notes of a value's module. Null: there are none, because the module has no outline, or recall() was not called.
    [[nodiscard]] NotedModule* noted_of(const llvm::GlobalValue& value);
    // Whether the value's definition has been noted: writes it into `definition`.
    [[nodiscard]] static bool find(const NotedModule& module, const llvm::GlobalValue& value, Definition& definition);
    static void add(NotedModule& module, const llvm::GlobalValue& value, const Definition& definition);

    Modules& program_;
    std::map<std::size_t, NotedModule> noted_;  // by the module's index
    std::unordered_map<const llvm::Module*, Digest> modules_;
};

}  // namespace rove::bitcode
