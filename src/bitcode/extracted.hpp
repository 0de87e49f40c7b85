// Functions taken out of a program, with all that they reach, and facts about them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"

namespace rove::bitcode {

// Facts about functions that travel together. All of them follow from the fingerprint, so they can be kept from one bundling to the next.
struct Facts {
    std::string name;      // for messages
    std::string obstacle;  // why they cannot travel; empty: they can
    Digest digest;         // digest of their bitcode
    // Functions that allocate memory, which the program replaces by its own: these do not travel. Of other functions of the C library
    // rove bundle finds out (ProgramNames).
    std::vector<std::string> replaced;
    std::vector<std::string> statics;  // statics that they reach, by their names in the program

    friend bool operator==(const Facts&, const Facts&) = default;
};

// Functions that reach a static of their program in common travel together, so that there is one of it on each node.
struct Extracted {
    Facts facts;
    std::vector<std::string> keys;     // keys of the functions, sorted
    ByteBuffer bitcode;                // not optimised yet: for prepare(). Empty: a package has been made of it before
    std::vector<std::string> entries;  // entries of these functions, in their order, and of functions that they send
    // Statics that have their initial values on nodes, and may have others in the program. Set by extract_all() only.
    std::vector<std::string> changed_at_home;
};

// Facts about a program's functions from the last time that they were extracted, by fingerprints of their sources.
//
// Threads: one at a time. Invariant: facts are kept under the fingerprint that they follow from, so they are never out of date.
class KnownFacts {
public:
    virtual ~KnownFacts() = default;
    // Null: unknown.
    [[nodiscard]] virtual const Facts* find(const Digest& fingerprint) const = 0;
    virtual void keep(const Digest& fingerprint, const Facts& facts) = 0;
    // Whether there is a package of bitcode with that digest. If there is none, the bitcode is needed.
    [[nodiscard]] virtual bool has_package(const Digest& bitcode) = 0;
    // Notes on the definitions in one of the program's modules, by a digest of the module without its functions' bodies. Empty: there are none.
    // Valid for as long as this object exists.
    [[nodiscard]] virtual Bytes definitions(const Digest& module) const = 0;
    virtual void keep_definitions(const Digest& module, ByteBuffer notes) = 0;
};

// The bitcode that a program's file contains of itself (clang's -fembed-bitcode=all): section .llvmbc, one module per object file.
struct ProgramBitcode {
    std::string program;  // for messages
    Bytes section;
};

// All functions that a program can send.
struct ExtractRequest {
    ProgramBitcode from;
    // Whether the program's file has a definition of that name which replaces weak ones. Null: unknown. If the bitcode has only weak ones, that
    // definition has no bitcode.
    std::function<bool(std::string_view name)> is_strong = nullptr;
    KnownFacts* known =
        nullptr;  // functions unchanged since then are not taken again. Null: nothing is known, and nothing is kept
};

}  // namespace rove::bitcode
