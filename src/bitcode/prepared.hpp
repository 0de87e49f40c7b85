// The request to make a package's code, and its result.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "bitcode/shared_objects.hpp"

namespace rove::bitcode {

// What rove build does by LLVM: joins modules, keeps `ROVE_ENTRY` functions (and with `interface` every default-visible definition),
// optimises once, makes writable globals external as rove.static.n and anchors as rove.anchor.n, removes pinned CPUs, and returns both the
// bitcode to ship and an object file for the image.
struct PrepareRequest {
    std::string triple;
    std::vector<ByteBuffer> modules;  // bitcode of each source, compiled with -Xclang -disable-llvm-passes at -O2
    bool interface = false;
    std::vector<std::string> entries;  // empty: those marked ROVE_ENTRY
    bool object = true;                // false: only bitcode is needed, soon
    std::vector<std::string> names{};  // names of the sources, for messages; empty: "module 0" and so on
    bool for_nodes = false;            // an entry of a type that a node cannot call is refused
    // Finds and keeps the objects of functions that other packages also have; null: all code is in one object.
    SharedObjects* shared = nullptr;
};

struct Prepared {
    ByteBuffer bitcode;
    ByteBuffer object;                                        // ELF relocatable, for the image's linker script
    std::vector<std::shared_ptr<const SharedObject>> shared;  // other objects, to be linked with it
    std::vector<std::string> entries;                         // in source order
    std::vector<std::string> exports;
    std::vector<std::string> imports;
    // Imports that the package as a whole needs, then those of each entry.
    std::vector<std::vector<std::string>> needs;
    std::vector<std::string> replaced;  // see Facts::replaced
    std::size_t statics = 0;            // number of rove.static.n
    bool pinned = false;                // see wire::Manifest::pinned
    std::string image_obstacle;         // why no image can be made (assembly outside of functions); empty: none
};

}  // namespace rove::bitcode
