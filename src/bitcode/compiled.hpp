// CompiledModule: bitcode that was compiled for this process. CompileRequest: the input of a compile.
//
// Threads: a module has no lock. The code cache calls put() under its own, and run_constructors() in one thread, once, without that lock. A
// module may be destroyed in any thread and under any lock, because that calls no function of LLVM.
//
// Invariants: an address that find() has returned stays the same, and valid, until the module is destroyed. A name that the code lacks has an
// address that cannot be called (jit/lacks.hpp) until put() has written all places of all its names.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace rove::bitcode {

// The places into which one name may be written later: they are written under the code cache's lock, in a fraction of a millisecond.
inline constexpr std::size_t kPlacesMax = 65'536;

// Precondition of its destruction: no thread runs the code any more. The memory is freed by Compiler::free_modules() or the next compile.
class CompiledModule {
public:
    virtual ~CompiledModule() = default;
    // Address of a name that the module defines, or null.
    [[nodiscard]] virtual void* find(std::string_view name) const = 0;
    [[nodiscard]] virtual std::size_t code_bytes() const = 0;
    [[nodiscard]] virtual bool has_constructors() const = 0;
    // Whether it has statics of the package that the image lacks; they are lost with it.
    [[nodiscard]] virtual bool has_own_statics() const = 0;
    // Runs the module's constructors; exactly once, before any of its functions, and not at all when the statics are those
    // of an image that has been constructed already.
    virtual void run_constructors() = 0;
    // Whether put() can give the code a name that it lacks (CompileRequest::may_lack): not if the code reaches the name other than by an
    // address in memory, as assembly may, nor if it has the address in more than kPlacesMax places.
    [[nodiscard]] virtual bool can_put(std::string_view name) const = 0;
    // Gives the code names that it lacks, all of them or none; each name once. Precondition: no thread runs code that needs them.
    // overloaded: the machine has no memory for it now.
    [[nodiscard]] virtual Status put(const std::vector<std::pair<std::string_view, void*>>& names) = 0;
};

// The resources that a compile may use.
struct Bounds {
    std::chrono::seconds processor_time{120};
    std::size_t memory = 2048UL << 20;    // bytes
    std::chrono::seconds standstill{10};  // without any processor time: it is blocked
};

// The addresses of a package's image, by the names that wire/image.hpp gives them.
using NamesInImage = std::unordered_map<std::string, void*>;

struct CompileRequest {
    std::string name;    // for messages
    std::string remedy;  // the remedy in messages about missing names
    Bytes bitcode;       // one module; checked by LLVM's reader and verifier before it is used
    // The address of an undefined name, or null if it does not exist: then compile fails and lists every such name …
    std::function<void*(std::string_view)> resolve;
    // … except for names that the code may lack until put(), as this function decides. It is called once for each missing name.
    std::function<bool(std::string_view)> may_lack = [](std::string_view) { return false; };
    // The addresses of the package's image, if it is loaded; for names that it lacks the module's own definitions are used.
    NamesInImage in_image = {};
    Bounds bounds = {};  // if these are exceeded it fails
};

}  // namespace rove::bitcode
