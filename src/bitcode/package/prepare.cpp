#include "bitcode/package/prepare.hpp"

#include <llvm/IR/DebugInfo.h>
#include <llvm/Linker/Linker.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>

#include "bitcode/allocation.hpp"
#include "bitcode/anchors.hpp"
#include "bitcode/compilable.hpp"
#include "bitcode/emit.hpp"
#include "bitcode/guard.hpp"
#include "bitcode/initial_values.hpp"
#include "bitcode/instrumentation.hpp"
#include "bitcode/optimised.hpp"
#include "bitcode/package/contraction.hpp"
#include "bitcode/package/exit_handlers.hpp"
#include "bitcode/package/inline_early.hpp"
#include "bitcode/package/library_functions.hpp"
#include "bitcode/package/needs.hpp"
#include "bitcode/package/objects.hpp"
#include "bitcode/package/pinning.hpp"
#include "bitcode/package/shape.hpp"
#include "bitcode/package/thread_locals.hpp"
#include "bitcode/read_module.hpp"
#include "bitcode/runnable.hpp"

namespace rove::bitcode {
namespace {

// Joins all sources into one module, for the request's triple.
Result<std::unique_ptr<llvm::Module>> join(const PrepareRequest& request, llvm::LLVMContext& context,
                                           const llvm::TargetMachine& machine, const std::string& diagnostics) {
    const std::string triple = llvm::Triple::normalize(request.triple);
    const auto arch = llvm::Triple(triple).getArch();
    std::unique_ptr<llvm::Module> joined;
    std::size_t number = 0;
    for (const ByteBuffer& source : request.modules) {
        const std::string name =
            number < request.names.size() ? request.names[number] : fmt::format("module {}", number);
        ++number;
        ROVE_TRY(auto module, read_module(context, source, name, false));
        if (llvm::Triple(module->getTargetTriple()).getArch() != arch)
            return fail(ErrorCode::invalid, "{} is for {}, not for {}", name, module->getTargetTriple(),
                        request.triple);
        // Spellings of one triple (pc or unknown) would only make the linker warn.
        module->setTargetTriple(triple);
        module->setDataLayout(machine.createDataLayout());
        define_initial_values(*module);
        // Done before the modules are joined, which would add to these.
        llvm::StripDebugInfo(*module);
        if (auto* ident = module->getNamedMetadata("llvm.ident")) ident->eraseFromParent();
        if (!joined)
            joined = std::move(module);
        else if (llvm::Linker::linkModules(*joined, std::move(module)))
            return fail(ErrorCode::invalid, "{} does not link with those before it: {}", name, diagnostics);
    }
    // The receiver needs neither name, and paths would make packages of the same code differ between machines.
    joined->setModuleIdentifier("rove");
    joined->setSourceFileName("rove");
    return joined;
}

// Extensions of the CPU are imported by name, although no symbol has such a name.
void add_cpu_needs(Prepared& prepared, const std::vector<std::vector<std::string>>& needs) {
    for (std::size_t row = 0; row < needs.size(); ++row)
        for (const std::string& name : needs[row]) {
            prepared.needs[row].push_back(name);
            if (std::find(prepared.imports.begin(), prepared.imports.end(), name) == prepared.imports.end())
                prepared.imports.push_back(name);
        }
}

// An optimised module, and facts about it, from which its object file is made.
struct Optimised {
    llvm::Module& module;
    llvm::TargetMachine& machine;
    const std::vector<llvm::Function*> shared;  // functions with objects of their own, which other packages also have
    const std::set<std::string> defined;        // names that the sources define
    const std::vector<std::string> called;      // by the code generator (LibraryFunctions)
    const std::string& diagnostics;             // LLVM's, from all earlier steps
};

std::vector<std::string> declared_names(const llvm::Module& module) {
    std::vector<std::string> names;
    for (const llvm::GlobalObject& object : module.global_objects())
        if (object.isDeclaration() && !object.getName().starts_with("llvm.")) names.push_back(object.getName().str());
    return names;
}

// Determines the names that the code needs. Makes the object file if that is requested or needed for this, which changes the module.
Status find_needs(const PrepareRequest& request, const Optimised& code, Prepared& prepared) {
    // What the code generator calls may be needed by any entry.
    std::vector<std::string> by_all = prepared.exports;
    by_all.insert(by_all.end(), code.called.begin(), code.called.end());
    prepared.needs = needs_of(code.module, prepared.entries, by_all);
    std::vector<std::string> declared = declared_names(code.module);
    ROVE_CHECK(check_sanitizers(declared));
    const std::set<std::string> words = words_of_assembly(code.module);
    if (!request.object && words.empty()) {
        prepared.imports = std::move(declared);
        return {};
    }
    // Assembly may name a function, and expects it in its own object.
    if (request.object && request.shared != nullptr && words.empty()) {
        ROVE_TRY(prepared.shared, take_out(code.module, code.machine, code.shared, code.diagnostics, *request.shared));
    }
    ROVE_TRY(ByteBuffer object, write_object(code.module, code.machine));
    if (!code.diagnostics.empty()) return fail(ErrorCode::invalid, "{}", code.diagnostics);
    std::vector<Bytes> objects{object};
    for (const auto& each : prepared.shared) objects.emplace_back(each->object);
    ROVE_TRY(prepared.imports, undefined_names(objects));
    ROVE_CHECK(check_imports(prepared.imports, code.defined, declared, words));
    if (!request.object) {  // it was made only because of the names in assembly
        prepared.imports = std::move(declared);
        return {};
    }
    prepared.object = std::move(object);
    // The code generator's own calls (memcpy) count as needs of the whole package, whichever entry causes them.
    for (const std::string& name : prepared.imports)
        if (std::find(declared.begin(), declared.end(), name) == declared.end()) prepared.needs.front().push_back(name);
    return {};
}

Result<Prepared> prepare_here(const PrepareRequest& request) {
    if (request.modules.empty()) return fail(ErrorCode::invalid, "no modules to prepare");
    std::string diagnostics;
    llvm::LLVMContext context;
    set_up(context, diagnostics);
    ROVE_TRY(auto machine, target_machine(request.triple));
    ROVE_TRY(auto module, join(request, context, *machine, diagnostics));

    Prepared prepared;
    if (request.for_nodes) ROVE_CHECK(check_sections(*module));
    ROVE_TRY(prepared.entries, take_entries(*module));
    if (request.for_nodes) ROVE_CHECK(check_entries(*module, prepared.entries));
    if (!request.entries.empty()) prepared.entries = request.entries;
    if (prepared.entries.empty() && !request.interface)
        return fail(
            ErrorCode::invalid,
            "no entry point; mark one: ROVE_ENTRY void NAME(rove_here *here, const void *payload, size_t size)");
    prepared.replaced = leave_out_allocation(*module);
    std::set<std::string> defined = defined_names(*module);
    leave_out_instrumentation(*module);
    define_exit_handlers(*module);
    register_destructors(*module);
    use_library_statics(*module);
    LibraryFunctions library(*module);
    prepared.exports = restrict_to(*module, prepared.entries, request.interface);
    library.begin();
    leave_out_unreached(*module);
    ROVE_CHECK(check_runnable(*module));
    generalise_cpu(*module);
    keep_unwindable(*module);
    forget_norecurse(*module);
    Apart shared(*module);
    inline_early(*module, *machine);
    optimise(*module, *machine);
    library.end();
    shared.end();
    settle_contraction(*module);
    ROVE_CHECK(lower_thread_locals(*module));
    ROVE_CHECK(check_compilable(*module));  // while functions have the names that their authors know
    ROVE_CHECK(library.settle(*machine));
    if (!diagnostics.empty()) return fail(ErrorCode::invalid, "{}", diagnostics);
    free_statics(*module, prepared.exports, prepared.statics);
    name_anchors(*module);
    reach_through_got(*module);
    prepared.pinned = must_stay(*module);
    prepared.image_obstacle = image_obstacle(*module);

    std::string why;
    llvm::raw_string_ostream out(why);
    if (llvm::verifyModule(*module, &out)) return fail(ErrorCode::internal, "the prepared module is broken: {}", why);
    prepared.bitcode = write_bitcode(*module);
    const std::vector<std::vector<std::string>> of_cpu = cpu_needs_of(*module, prepared.entries, prepared.exports);
    const Optimised optimised{*module, *machine, shared.left(), std::move(defined), library.called(), diagnostics};
    ROVE_CHECK(find_needs(request, optimised, prepared));
    add_cpu_needs(prepared, of_cpu);
    return prepared;
}

}  // namespace

Result<Prepared> prepare(const PrepareRequest& request) {
    return guarded("the code", [&request] { return prepare_here(request); });
}

}  // namespace rove::bitcode
