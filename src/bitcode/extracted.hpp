// Functions taken out of a program, with all that they reach, and what is known of them.
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
    std::string name;      // for people
    std::string obstacle;  // why they cannot travel; empty: they can
    Digest digest;         // of their bitcode
    // Functions that allocate memory, of which the program has its own: these stay there.
    std::vector<std::string> replaced;
    std::vector<std::string> statics;  // that they reach, by their names in the program

    friend bool operator==(const Facts&, const Facts&) = default;
};

// Functions that reach a static of their program in common travel together, so that there is one of it on each node.
struct Extracted {
    Facts facts;
    std::vector<std::string> keys;     // of the functions, sorted
    ByteBuffer bitcode;                // not optimised yet: for prepare(). Empty: a package has been made of it before
    std::vector<std::string> entries;  // theirs, in their order, and those of functions that they send
    // Statics that have their first values on nodes, and may have others in the program. Of extract_all() only.
    std::vector<std::string> changed_at_home;
};

// Facts about a program's functions from the last time that they were extracted, by fingerprints of their sources. Threads: one at a time.
class KnownFacts {
public:
    virtual ~KnownFacts() = default;
    // Null: nothing is known.
    [[nodiscard]] virtual const Facts* find(const Digest& fingerprint) const = 0;
    virtual void keep(const Digest& fingerprint, const Facts& facts) = 0;
    // Whether there is a package of bitcode with that digest. If there is none, the bitcode is needed.
    [[nodiscard]] virtual bool has_package(const Digest& bitcode) = 0;
    // Notes on the definitions in one of the program's modules, by a digest of the module without its functions' bodies. Empty: there are none.
    // Valid for as long as this object.
    [[nodiscard]] virtual Bytes definitions(const Digest& module) const = 0;
    virtual void keep_definitions(const Digest& module, ByteBuffer notes) = 0;
};

// The bitcode that a program carries of itself (clang's -fembed-bitcode=all): section .llvmbc, one module per object file.
struct ProgramBitcode {
    std::string program;  // for messages
    Bytes section;
};

// All functions that a program can send.
struct ExtractRequest {
    ProgramBitcode from;
    // Whether the program's file has a definition of that name which takes the place of weak ones. Null: nobody knows. Where the bitcode has weak
    // ones only, it is one without bitcode.
    std::function<bool(std::string_view name)> is_strong = nullptr;
    KnownFacts* known =
        nullptr;  // what has not changed since then is not taken again. Null: nothing is known, and nothing is kept
};

}  // namespace rove::bitcode
