// The object files of functions that several packages of a program have, from one `rove bundle` to the next.
#pragma once

#include <filesystem>
#include <set>
#include <string_view>

#include "bitcode/shared_objects.hpp"
#include "package/kept_files.hpp"

namespace rove::toolchain {

// One file for each program, beside the packages. What is wrong with it is as if it were not there.
class KeptObjects {
public:
    // made_by: what makes them (code::made_by).
    KeptObjects(const std::filesystem::path& program, std::string_view made_by);
    // Adds those that are kept.
    void find(bitcode::SharedObjects& into);
    // Keeps all, if others have been made since find(); if these are more than 32 MiB, those that have been made since.
    void keep(const bitcode::SharedObjects& objects) const;

private:
    const KeptFiles files_;
    const Digest key_;
    std::set<Digest> found_;  // what they were made of
};

}  // namespace rove::toolchain
