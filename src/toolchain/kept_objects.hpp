// The object files of functions that several packages of a program have, from one `rove bundle` to the next.
//
// Threads: one at a time. Invariant: keep() writes only if there are more objects than find() has left.
#pragma once

#include <filesystem>
#include <set>
#include <string_view>

#include "bitcode/shared_objects.hpp"
#include "package/kept_files.hpp"

namespace rove::toolchain {

// One file for each program, in the folder of cached packages. A file that is missing or damaged holds nothing.
class KeptObjects {
public:
    // made_by: identifies what makes the objects (code::made_by).
    KeptObjects(const std::filesystem::path& program, std::string_view made_by);
    // Adds the objects that are in the file.
    void find(bitcode::SharedObjects& into);
    // Writes all objects, if some were made since find(). If all of them exceed 32 MiB, writes only those that were made since.
    void keep(const bitcode::SharedObjects& objects) const;

private:
    const KeptFiles files_;
    const Digest key_;
    std::set<Digest> found_;  // SharedObject::made_of of the objects that find() added
};

}  // namespace rove::toolchain
