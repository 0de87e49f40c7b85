// Compiler: the interface of Rove to LLVM. It is implemented in librove-jit.so, the one library that links LLVM and that is opened on first
// use, so a node that only loads images, and a client that runs nothing, have no cost by LLVM.
//
// The headers that Rove's other folders include from this one, including this header, include no header of LLVM.
//
// Threads: any, several at the same time. link() waits until LLVM does no other work in this process, and delays work that begins later.
//
// Invariants: there is one in a process, and it is never destroyed, because compiled code may run until the process ends. Bitcode on which LLVM
// crashes or gives up is an error of that call; the process continues (guard.hpp; for bitcode that peers have sent, jit/process/process.hpp).
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "bitcode/compiled.hpp"
#include "bitcode/extracted.hpp"
#include "bitcode/prepared.hpp"

namespace rove::bitcode {

class Compiler {
public:
    virtual ~Compiler() = default;
    // An address in each of the libraries that contain its code: librove-jit.so and LLVM's. Null: none.
    [[nodiscard]] virtual std::array<const void*, 2> code() const { return {}; }
    // Compiles for this machine's CPU in another process (jit/process/process.hpp), and links the object file from there into this one.
    [[nodiscard]] virtual Result<std::unique_ptr<CompiledModule>> compile(const CompileRequest& request) = 0;
    // Frees the memory that destroyed modules still have in LLVM. That takes longer the more names the process has, and a module may be
    // destroyed while others wait. So it is done here, and by the next compile.
    virtual void free_modules() {}
    [[nodiscard]] virtual Result<Prepared> prepare(const PrepareRequest& request) = 0;
    // Prepares and compiles one small function, which loads LLVM's code into memory: otherwise the first compile takes several milliseconds
    // longer.
    virtual void warm_up() = 0;
    // Links ELF files with the arguments of ld.lld; one link at a time, while nothing is compiled, prepared or taken out. unsupported:
    // it cannot be linked; the message is the linker's first line.
    [[nodiscard]] virtual Status link(const std::vector<std::string>& arguments) = 0;
    [[nodiscard]] virtual Result<std::vector<Extracted>> extract_all(const ExtractRequest& request) = 0;
    // Reads the bitcode of the running program, which must not change before the process ends. It is read once: by read_own(), otherwise by
    // the first extract_own(). These two take one lock.
    virtual Status read_own(const ProgramBitcode& own) = 0;
    // The function with that key (package/bundle.hpp), and those with which it shares statics. unsupported: there is no bitcode of it.
    [[nodiscard]] virtual Result<Extracted> extract_own(const ProgramBitcode& own, std::string_view key) = 0;
};

// The compiler, loaded on first use and kept. unsupported: librove-jit.so (or LLVM) is not on this machine; the message
// names the Debian package.
[[nodiscard]] Result<Compiler*> compiler();

// The name of a function that librove-jit.so exports: `extern "C" rove::bitcode::Compiler* rove_jit_compiler()`.
inline constexpr const char* kFactory = "rove_jit_compiler";
// The name of the other one: `extern "C" void rove_jit_serve(int socket)`, the body of the process that compiles (jit/process/serve.hpp).
inline constexpr const char* kServe = "rove_jit_serve";

}  // namespace rove::bitcode
