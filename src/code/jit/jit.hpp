// The face of librove-jit.so, the one library that links LLVM. It is opened on first use, so a node that only loads
// images, and a client that runs nothing, never pay for LLVM.
//
// This header includes nothing of LLVM; everything else in this folder may.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"

namespace rove::code::jit {

// Where one name may come later: they are written under the engine's lock, in a fraction of a millisecond.
inline constexpr std::size_t kPlacesMax = 65'536;

// Compiled bitcode. Destroying it frees the code (nobody may run it any more).
class CompiledModule {
public:
    virtual ~CompiledModule() = default;
    // Address of a name that the module defines, or null.
    [[nodiscard]] virtual void* find(std::string_view name) const = 0;
    [[nodiscard]] virtual std::size_t code_bytes() const = 0;
    [[nodiscard]] virtual bool has_constructors() const = 0;
    // Whether it has statics of the package that the image has not; they are lost with it.
    [[nodiscard]] virtual bool has_own_statics() const = 0;
    // Runs the module's constructors; exactly once, before any of its functions, and not at all when the statics are those
    // of an image that has been constructed already.
    virtual void run_constructors() = 0;
    // Whether put() can give the code a name that it lacks (CompileRequest::may_lack): not where it reaches the name by other means than an
    // address in memory, as assembly may, nor where it has the address in more than kPlacesMax places.
    [[nodiscard]] virtual bool can_put(std::string_view name) const = 0;
    // Gives the code names that it lacks, all of them or none; each name once. Nobody runs what needs them meanwhile. overloaded: the
    // machine has no memory for it now.
    [[nodiscard]] virtual Status put(const std::vector<std::pair<std::string_view, void*>>& names) = 0;
};

// What a compile may take.
struct Bounds {
    std::chrono::seconds processor_time{120};
    std::size_t memory = 2048UL << 20;    // bytes
    std::chrono::seconds standstill{10};  // without any processor time: it waits for something
};

// What a package's image has, by the names under which wire/image.hpp lists it.
using NamesInImage = std::unordered_map<std::string, void*>;

struct CompileRequest {
    std::string name;    // for messages
    std::string remedy;  // in that of names which are nowhere
    Bytes bitcode;       // one module; checked by LLVM's reader and verifier before it is believed
    // The address of an undefined name, or null when it is nowhere: compile fails then and lists every such name …
    std::function<void*(std::string_view)> resolve;
    // … but those of which this says that the code may lack them, until put(). Asked once for each that is nowhere.
    std::function<bool(std::string_view)> may_lack = [](std::string_view) { return false; };
    // Of the package's image, if it is loaded; of what is not there the module's own is used.
    NamesInImage in_image = {};
    Bounds bounds = {};  // beyond these it fails
};

// The object file of a function that several packages have.
struct SharedObject {
    Digest made_of;
    ByteBuffer object;
};

// Those of one program's packages, which hold about as much code as the program, and those of versions of it that were bundled before
// (toolchain/kept_objects.hpp). They are kept for as long as this. Thread-safe.
class SharedObjects {
public:
    // Null: none was made of that.
    [[nodiscard]] std::shared_ptr<const SharedObject> find(const Digest& made_of) const {
        const MutexLock lock(mutex_);
        const auto found = objects_.find(made_of);
        return found != objects_.end() ? found->second : nullptr;
    }
    // Or the one that another thread has kept.
    std::shared_ptr<const SharedObject> keep(SharedObject object) {
        auto kept = std::make_shared<const SharedObject>(std::move(object));
        const MutexLock lock(mutex_);
        return objects_.try_emplace(kept->made_of, kept).first->second;
    }
    [[nodiscard]] std::size_t count() const {
        const MutexLock lock(mutex_);
        return objects_.size();
    }
    [[nodiscard]] std::vector<std::shared_ptr<const SharedObject>> all() const {
        const MutexLock lock(mutex_);
        std::vector<std::shared_ptr<const SharedObject>> all;
        for (const auto& [made_of, object] : objects_) all.push_back(object);
        return all;
    }

private:
    mutable Mutex mutex_;
    std::map<Digest, std::shared_ptr<const SharedObject>> objects_ GUARDED_BY(mutex_);
};

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

// Functions that reach a static of their program in common travel together, so that there is one of it on each node.
struct Extracted {
    std::vector<std::string> keys;     // of the functions, sorted
    std::string name;                  // for people
    std::string obstacle;              // why it cannot travel; empty: it can
    Digest digest;                     // of its bitcode
    ByteBuffer bitcode;                // not optimised yet: for prepare(). Empty: a package has been made of it before
    std::vector<std::string> entries;  // theirs, in their order, and those of functions that they send
    std::vector<std::string>
        replaced;  // functions that allocate memory, of which the program has its own: these stay there
    std::vector<std::string> statics;  // that it reaches, by their names in the program
    std::vector<std::string>
        begin_anew;  // statics that have their first values on nodes, and may have others in the program; not with `only`
};

// What is known of a program's functions since they were last extracted, by fingerprints of what they were made of. Threads: one at a time.
class ExtractedBefore {
public:
    virtual ~ExtractedBefore() = default;
    // Without bitcode and keys. Null: nothing is known.
    [[nodiscard]] virtual const Extracted* find(const Digest& fingerprint) const = 0;
    virtual void keep(const Digest& fingerprint, const Extracted& extracted) = 0;
    // Of bitcode with that digest. If there is none, the bitcode is needed.
    [[nodiscard]] virtual bool has_package(const Digest& bitcode) = 0;
    // What was noted of the definitions in one of the program's modules, by a digest of all but its functions' bodies. Empty: nothing. Stays as long
    // as this.
    [[nodiscard]] virtual Bytes definitions(const Digest& module) const = 0;
    virtual void keep_definitions(const Digest& module, ByteBuffer notes) = 0;
};

// A function of a program, with all that it reaches, out of the bitcode that the program carries of itself (clang's
// -fembed-bitcode=all: section .llvmbc, one module per object file).
struct ExtractRequest {
    std::string program;  // for messages
    Bytes bitcode;        // the section; with `only` it must live, unchanged, as long as the process
    std::string
        only;  // a key (package/bundle.hpp); empty: all functions that the program can send; kNothing: none, for now
    // Whether the program's file has a definition of that name which takes the place of weak ones. Null: nobody knows. Where the bitcode has weak
    // ones only, it is one without bitcode.
    std::function<bool(std::string_view name)> is_strong = nullptr;
    ExtractedBefore* before = nullptr;  // without `only`: what has not changed since then is not taken again
};
inline constexpr std::string_view kNothing = "-";

struct Prepared {
    ByteBuffer bitcode;
    ByteBuffer object;                                        // ELF relocatable, for the image's linker script
    std::vector<std::shared_ptr<const SharedObject>> shared;  // others, to be linked with it
    std::vector<std::string> entries;                         // in source order
    std::vector<std::string> exports;
    std::vector<std::string> imports;
    // Those that the package as a whole cannot do without, then those of each entry.
    std::vector<std::vector<std::string>> needs;
    std::vector<std::string> replaced;  // as above
    std::size_t statics = 0;            // how many rove.static.n
    bool pinned = false;                // see wire::Manifest::pinned
    std::string image_obstacle;         // why no image can be made (assembly outside of functions); empty: none
};

class Engine {
public:
    virtual ~Engine() = default;
    // An address in each of the libraries whose code it is: librove-jit.so and LLVM's. Null: in none.
    [[nodiscard]] virtual std::array<const void*, 2> code() const { return {}; }
    // Compiles for the CPU that is there, in a process of its own (compiler/process.hpp), and links what that has made. Thread-safe.
    [[nodiscard]] virtual Result<std::unique_ptr<CompiledModule>> compile(const CompileRequest& request) = 0;
    [[nodiscard]] virtual Result<Prepared> prepare(const PrepareRequest& request) = 0;
    // Does some of all that once, so that the next time finds LLVM's code in memory: a cold one takes several milliseconds longer.
    virtual void warm_up() = 0;
    // Links ELF files with the arguments of ld.lld; one link at a time, while nothing is compiled, prepared or taken out. unsupported:
    // it cannot be linked; the message is the linker's first line.
    [[nodiscard]] virtual Status link(const std::vector<std::string>& arguments) = 0;
    // unsupported: the program carries no bitcode of what is asked for.
    [[nodiscard]] virtual Result<std::vector<Extracted>> extract(const ExtractRequest& request) = 0;
};

// The engine, loaded on first use and kept. unsupported: librove-jit.so (or LLVM) is not on this machine; the message
// names the Debian package.
[[nodiscard]] Result<Engine*> engine();

// What librove-jit.so exports under this name: `extern "C" rove::code::jit::Engine* rove_jit_engine()`.
inline constexpr const char* kEngineFactory = "rove_jit_engine";
// And under this one: `extern "C" void rove_jit_serve(int socket)`, which is the process that compiles (compiler/serve.hpp).
inline constexpr const char* kServe = "rove_jit_serve";

}  // namespace rove::code::jit
