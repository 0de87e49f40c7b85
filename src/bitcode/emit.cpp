#include "bitcode/emit.hpp"

#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/StandardInstrumentations.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/Scalar/LowerMatrixIntrinsics.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/made_once.hpp"
#include "base/targets.hpp"
#include "bitcode/analyses.hpp"
#include "bitcode/optimised.hpp"
#include "package/digest.hpp"

namespace rove::bitcode {
namespace {

void initialise_targets() {
    static constinit MadeOnce<const bool> done;
    (void)done.get([] {
        LLVMInitializeX86TargetInfo();
        LLVMInitializeX86Target();
        LLVMInitializeX86TargetMC();
        LLVMInitializeX86AsmPrinter();
        LLVMInitializeX86AsmParser();  // for inline assembly
        LLVMInitializeAArch64TargetInfo();
        LLVMInitializeAArch64Target();
        LLVMInitializeAArch64TargetMC();
        LLVMInitializeAArch64AsmPrinter();
        LLVMInitializeAArch64AsmParser();
        return new const bool(true);
    });
}

bool is_wide(const llvm::Instruction& each) {
    const llvm::Type* type = nullptr;
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&each); load != nullptr && load->isAtomic())
        type = load->getType();
    if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&each); store != nullptr && store->isAtomic())
        type = store->getValueOperand()->getType();
    if (const auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&each))
        type = exchange->getCompareOperand()->getType();
    if (const auto* change = llvm::dyn_cast<llvm::AtomicRMWInst>(&each)) type = change->getValOperand()->getType();
    return type != nullptr && each.getDataLayout().getTypeStoreSize(const_cast<llvm::Type*>(type)) == 16;
}

// The first x86-64 CPUs have no atomic operation on 16 bytes, so LLVM would call libatomic, which a node need not have, and which itself
// uses the instruction that every such CPU has had since 2006. A node that compiles the bitcode for its own CPU uses it as well.
void have_wide_atomics(llvm::Module& module) {
    if (llvm::Triple(module.getTargetTriple()).getArch() != llvm::Triple::x86_64) return;
    for (llvm::Function& function : module) {
        if (llvm::none_of(llvm::instructions(function), is_wide)) continue;
        const llvm::StringRef features = function.getFnAttribute("target-features").getValueAsString();
        function.addFnAttr("target-features", features.empty() ? "+cx16" : (features + ",+cx16").str());
    }
}

ByteBuffer to_buffer(llvm::StringRef text) {
    const Bytes bytes = as_bytes(std::string_view(text.data(), text.size()));
    return {bytes.begin(), bytes.end()};
}

}  // namespace

Result<std::unique_ptr<llvm::TargetMachine>> target_machine(const std::string& triple) {
    initialise_targets();
    // LLVM would read "x86_64-linux-gnu" as a vendor called linux and an unknown system.
    const std::string normal = llvm::Triple::normalize(triple);
    const llvm::Triple parsed(normal);
    const Target* const known = target_of_arch(std::string_view(parsed.getArchName()));
    if (known == nullptr || !parsed.isOSLinux())
        return fail(ErrorCode::unsupported, "no code can be made for {}", triple);
    std::string why;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(normal, why);
    if (target == nullptr) return fail(ErrorCode::unsupported, "no code can be made for {}: {}", triple, why);
    llvm::TargetOptions options;
    options.UseInitArray = true;  // an image has no .ctors
    // Statics in sections of their own: the rest of plain .data are the code generator's own constant pointers (type infos of exception
    // tables), which an image keeps with its code.
    options.DataSections = true;
    const auto model = known->is_tiny ? llvm::CodeModel::Tiny : llvm::CodeModel::Small;
    std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
        normal, known->cpu, "", options, llvm::Reloc::PIC_, model, llvm::CodeGenOptLevel::Default));
    if (!machine) return fail(ErrorCode::internal, "LLVM has no code generator for {}", triple);
    return machine;
}

void leave_out_unreached(llvm::Module& module) {
    llvm::PassBuilder builder;
    Analyses analyses(builder);
    (void)llvm::GlobalDCEPass().run(module, analyses.modules);
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
    llvm::PipelineTuningOptions tuning;
    tuning.LoopVectorization = true;
    tuning.SLPVectorization = true;
    // Functions that are compiled with -O0 or marked `optnone` are not optimised: LLVM's passes do not check that themselves.
    llvm::PassInstrumentationCallbacks callbacks;
    llvm::OptNoneInstrumentation left_alone(/*DebugLogging=*/false);
    left_alone.registerCallbacks(callbacks);
    llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
    const LeaveOptimised optimised(callbacks, builder);
    Analyses analyses(builder);
    // The pipeline has this pass only under an option of LLVM's, which clang sets for -fenable-matrix. Code that needs it may be compiled here.
    if (llvm::any_of(module, [](const llvm::Function& each) { return each.getName().starts_with("llvm.matrix."); }))
        builder.registerOptimizerLastEPCallback([](llvm::ModulePassManager& passes, llvm::OptimizationLevel /*level*/) {
            passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::LowerMatrixIntrinsicsPass(/*Minimal=*/true)));
        });
    builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, analyses.modules);
    // For functions marked `optnone` the code generator would call memcpy() through a table that only a linker makes.
    for (llvm::Function& function : module) function.removeFnAttr(llvm::Attribute::OptimizeNone);
}

ByteBuffer write_bitcode(const llvm::Module& module) {
    llvm::SmallVector<char, 0> text;
    llvm::raw_svector_ostream out(text);
    llvm::WriteBitcodeToFile(module, out);
    return to_buffer({text.data(), text.size()});
}

Digest digest_of_bitcode(const llvm::Module& module) {
    llvm::SmallVector<char, 0> text;
    llvm::BitcodeWriter writer(text);
    writer.writeModule(module);  // without the table of symbols, which adds no information
    writer.writeStrtab();
    return digest_of({std::string_view(text.data(), text.size())});
}

Result<ByteBuffer> write_object(llvm::Module& module, llvm::TargetMachine& machine) {
    have_wide_atomics(module);
    llvm::SmallVector<char, 0> text;
    llvm::raw_svector_ostream out(text);
    llvm::legacy::PassManager passes;
    if (machine.addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile))
        return fail(ErrorCode::internal, "LLVM writes no object files for {}", module.getTargetTriple());
    passes.run(module);
    return to_buffer({text.data(), text.size()});
}

static Status add_names(Bytes object, std::set<std::string>& defined, std::set<std::string>& undefined) {
    const std::string_view text = as_text(object);
    auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef({text.data(), text.size()}, "object"));
    if (!file) return fail(ErrorCode::internal, "LLVM's own object: {}", llvm::toString(file.takeError()));
    for (const auto& symbol : (*file)->symbols()) {
        auto flags = symbol.getFlags();
        if (!flags) return fail(ErrorCode::internal, "LLVM's own object: {}", llvm::toString(flags.takeError()));
        if (!(*flags & llvm::object::BasicSymbolRef::SF_Global)) continue;
        auto name = symbol.getName();
        if (!name) return fail(ErrorCode::internal, "LLVM's own object: {}", llvm::toString(name.takeError()));
        if (name->empty() || *name == "_GLOBAL_OFFSET_TABLE_") continue;
        ((*flags & llvm::object::BasicSymbolRef::SF_Undefined) ? undefined : defined).insert(name->str());
    }
    return {};
}

Result<std::vector<std::string>> undefined_names(const std::vector<Bytes>& objects) {
    std::set<std::string> defined, undefined;
    for (const Bytes object : objects) ROVE_CHECK(add_names(object, defined, undefined));
    std::vector<std::string> names;
    std::ranges::set_difference(undefined, defined, std::back_inserter(names));
    return names;
}

}  // namespace rove::bitcode
