// Bundle: the packages of a program's own functions, in a section of its file that rove_add_executable() has added. A program
// needs no toolchain and no LLVM to send them. docs/bundle-format.md shows the bytes.
//
// Threads: any.
//
// Invariant: the program's bundle is read once, and constant from then on, but for the slices of its packages.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "package/package.hpp"

namespace rove {

class Bundle {
public:
    // The section's name.
    static constexpr std::string_view kSection = ".rove";

    // A function's code is stored under the mangled name of its rove::detail::Offload<…>::run, and, if only one source file knows that name
    // (its linkage is internal), with '@' and that file appended.
    [[nodiscard]] static std::string key_of_code(std::string_view symbol, std::string_view source, bool internal);
    // The key that the running program looks up, from the name of the type. The program does not know which linkage the compiler gave to the
    // function (for a lambda it depends on what encloses it), so this key always names the file; find_code() finds it with or without.
    [[nodiscard]] static std::string key_of(std::string_view offload_type, std::string_view source);
    [[nodiscard]] static bool is_of_file(std::string_view key) { return key.find('@') != std::string_view::npos; }
    [[nodiscard]] static std::string without_file(std::string_view key) {
        return std::string(key.substr(0, key.find('@')));
    }
    // Finds code in a map by such keys: the file's own, else the whole program's. No name is both in one program.
    template <typename Map>
    [[nodiscard]] static auto find_code(const Map& codes, const std::string& key) {
        const auto own = codes.find(key);
        return own != codes.end() ? own : codes.find(without_file(key));
    }
    // The entry's name in a package: a part that is the same for a function wherever it is packed, and after a '.' a readable name of the
    // function, which is shortened if the package has many entries. It is a valid name for assemblers: other characters are written as a
    // '$' and two hexadecimal digits.
    [[nodiscard]] static std::string entry_of(std::string_view key, std::string_view name, std::size_t entries);
    // The part before the '.'.
    [[nodiscard]] static std::string entry_of(std::string_view key);
    [[nodiscard]] static std::string_view without_name(std::string_view entry) {
        return entry.substr(0, entry.find('.'));
    }
    // The readable name; empty: the entry has none.
    [[nodiscard]] static std::string name_in(std::string_view entry);
    // The entry of a function in its package, by the key that the running program uses.
    [[nodiscard]] static std::optional<std::size_t> place_in(const PackageStore& package, const std::string& key);
    // The part of a source file's path that is in keys: the last two names, because the rest differs between machines.
    [[nodiscard]] static std::string file_of(std::string_view path);

    // A readable name: "square" of a function type that is written "rove::detail::Fn<&(square(int))>"; a lambda's stays as it is.
    [[nodiscard]] static std::string name_of(std::string function_type);

    // Why a program that carries code has no code of one of its functions, and the remedy.
    static constexpr std::string_view kNotAmongThem =
        "it comes from a static library without bitcode (add it with rove_embed()), from a shared library (call it "
        "from "
        "a function of the program), or from a program that embeds the bitcode of its libraries alone (build it with "
        "rove_add_executable(), and not with SHIP nothing)";

    struct Entry {
        std::string key;
        std::shared_ptr<const ByteBuffer>
            package;          // a package file, perhaps of several functions; null: it does not travel …
        std::string why_not;  // … because
        friend bool operator==(const Entry& one, const Entry& other) {
            const bool same =
                one.package == other.package || (one.package && other.package && *one.package == *other.package);
            return same && one.key == other.key && one.why_not == other.why_not;
        }
    };
    // unsupported: its name is too long for a bundle.
    [[nodiscard]] static Status check_key(const std::string& key);
    // Precondition: their keys have passed check_key(). unsupported: more functions than decode() accepts.
    [[nodiscard]] static Result<ByteBuffer> encode(const std::vector<Entry>& entries);
    // Checks every length. The packages are checked when they are used.
    [[nodiscard]] static Result<std::vector<Entry>> decode(Bytes bytes);

    // The bundle of the running program; empty if it has none. The first call of this reads it, with all its packages (some 10 us each).
    // code::expect_to_send makes that call early, so that no call of a function waits for it.
    [[nodiscard]] static const Bundle& of_program();
    [[nodiscard]] bool empty() const { return found_.empty(); }
    // Why the program's bundle could not be read; empty: it was, or there is none.
    [[nodiscard]] const std::string& why_unreadable() const { return why_unreadable_; }
    struct Found {
        std::shared_ptr<PackageStore> package;  // null: it does not travel …
        std::string why_not;                    // … because; empty: nothing is known of it
    };
    [[nodiscard]] Found find(const std::string& key) const;

private:
    std::unordered_map<std::string, Found> found_;
    std::string why_unreadable_;
};

}  // namespace rove
