// The request to make a package's code, and its result.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "bitcode/shared_objects.hpp"

namespace rove::bitcode {

// What rove build needs of LLVM: joins modules, keeps `ROVE_ENTRY` functions (and with `interface` every default-visible
// definition), optimises once, makes writable globals external as rove.static.n and anchors as rove.anchor.n, strips pinned
// CPUs, and gives both the bitcode to ship and an object file for the image.
struct PrepareRequest {
    std::string triple;
    std::vector<ByteBuffer> modules;  // bitcode of each source, compiled with -Xclang -disable-llvm-passes at -O2
    bool interface = false;
    std::vector<std::string> entries;  // empty: those that are marked ROVE_ENTRY
    bool object = true;                // false: bitcode alone is wanted, soon
    std::vector<std::string> names{};  // of the sources, for messages; empty: "module 0" and so on
    bool for_nodes = false;            // an entry that a node cannot call, because it is of another type, is refused
    // Where functions that other packages have too find their objects; null: all code is in one object.
    SharedObjects* shared = nullptr;
};

struct Prepared {
    ByteBuffer bitcode;
    ByteBuffer object;                                        // ELF relocatable, for the image's linker script
    std::vector<std::shared_ptr<const SharedObject>> shared;  // others, to be linked with it
    std::vector<std::string> entries;                         // in source order
    std::vector<std::string> exports;
    std::vector<std::string> imports;
    // Those that the package as a whole cannot do without, then those of each entry.
    std::vector<std::vector<std::string>> needs;
    std::vector<std::string> replaced;  // as Facts::replaced
    std::size_t statics = 0;            // how many rove.static.n
    bool pinned = false;                // see wire::Manifest::pinned
    std::string image_obstacle;         // why no image can be made (assembly outside of functions); empty: none
};

}  // namespace rove::bitcode
