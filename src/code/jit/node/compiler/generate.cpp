#include "code/jit/node/compiler/generate.hpp"

#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "code/jit/anchors.hpp"
#include "code/jit/compilable.hpp"
#include "code/jit/instrumentation.hpp"
#include "code/jit/read_module.hpp"
#include "wire/image.hpp"

namespace rove::code::jit {
namespace {

namespace orc = llvm::orc;

// A function that others find, which calls one that they do not.
llvm::Function* make_entrance(llvm::Function& hidden) {
    auto* const entrance =
        llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(hidden.getContext()), false),
                               llvm::GlobalValue::ExternalLinkage, "", *hidden.getParent());
    llvm::IRBuilder<> code(llvm::BasicBlock::Create(hidden.getContext(), "", entrance));
    code.CreateCall(llvm::FunctionType::get(code.getVoidTy(), false), &hidden);
    code.CreateRetVoid();
    return entrance;
}

// Gives the module's constructors names of their own, in the order in which they are to run.
std::vector<std::string> name_constructors(llvm::Module& module) {
    std::map<std::pair<std::uint64_t, unsigned>, std::string> found;  // by priority and place
    llvm::GlobalVariable* list = module.getNamedGlobal("llvm.global_ctors");
    const auto* array = list != nullptr && list->hasInitializer()
                            ? llvm::dyn_cast<llvm::ConstantArray>(list->getInitializer())
                            : nullptr;
    for (unsigned i = 0; array != nullptr && i < array->getNumOperands(); ++i) {
        const auto* entry = llvm::dyn_cast<llvm::ConstantStruct>(array->getOperand(i));
        auto* function =
            entry != nullptr ? llvm::dyn_cast<llvm::Function>(entry->getOperand(1)->stripPointerCasts()) : nullptr;
        const auto* priority = entry != nullptr ? llvm::dyn_cast<llvm::ConstantInt>(entry->getOperand(0)) : nullptr;
        if (function == nullptr || function->isDeclaration() || priority == nullptr) continue;
        if (function->hasHiddenVisibility() && !function->hasLocalLinkage())
            function = make_entrance(*function);  // an anchor
        if (function->hasLocalLinkage() ||
            !function->hasName()) {  // an entry that is a constructor as well keeps its name
            function->setName(fmt::format("rove.constructor.{:05}", i));
            function->setLinkage(llvm::GlobalValue::ExternalLinkage);
        }
        found.emplace(std::pair(priority->getZExtValue(), i), function->getName().str());
    }
    if (list != nullptr) list->eraseFromParent();
    std::vector<std::string> names;
    for (auto& [order, name] : found) names.push_back(std::move(name));
    return names;
}

std::vector<std::string> defined_names(const llvm::Module& module) {
    std::vector<std::string> names;
    for (const llvm::GlobalValue& value : module.global_values())
        if (!value.isDeclaration() && !value.hasLocalLinkage() && !value.hasHiddenVisibility() &&
            !value.isThreadLocal() && !value.getName().starts_with("llvm."))
            names.push_back(value.getName().str());
    return names;
}

// LLVM prints what it does not know of a function's CPU to stderr, in a peer's words.
void keep_known_features(llvm::Module& module, const llvm::TargetMachine& machine) {
    const llvm::ArrayRef<llvm::SubtargetFeatureKV> known = machine.getMCSubtargetInfo()->getAllProcessorFeatures();
    const auto is_known = [known](llvm::StringRef feature) {
        return (feature.consume_front("+") || feature.consume_front("-")) &&
               std::any_of(known.begin(), known.end(), [feature](const auto& each) { return each.Key == feature; });
    };
    for (llvm::Function& function : module) {
        function.removeFnAttr("target-cpu");  // it is compiled for the one that is here
        function.removeFnAttr("tune-cpu");
        llvm::SmallVector<llvm::StringRef, 16> all;
        function.getFnAttribute("target-features").getValueAsString().split(all, ',', -1, false);
        if (std::all_of(all.begin(), all.end(), is_known)) continue;
        std::string kept;
        for (const llvm::StringRef feature : all)
            if (is_known(feature)) kept += (kept.empty() ? "" : ",") + feature.str();
        function.removeFnAttr("target-features");
        if (!kept.empty()) function.addFnAttr("target-features", kept);
    }
}

bool has_own_statics(const llvm::Module& module, const std::set<std::string_view>& in_image) {
    return llvm::any_of(module.globals(), [&in_image](const llvm::GlobalVariable& each) {
        const std::string_view name = each.getName();
        return !each.isDeclaration() && name.starts_with(wire::kStaticPrefix) && !in_image.contains(name);
    });
}

// The linker gives each of them memory of its own, past the sections, where nothing counts it.
void place_common_variables(llvm::Module& module) {
    for (llvm::GlobalVariable& variable : module.globals())
        if (variable.hasCommonLinkage()) variable.setLinkage(llvm::GlobalValue::ExternalLinkage);
}

// What others may ask for is held by the process that links it, by name.
Status check_names(const std::vector<std::string>& names) {
    std::size_t bytes = 0;
    for (const std::string& name : names) bytes += name.size();
    if (names.size() <= kNamesMax && bytes <= kNameBytesMax) return {};
    return fail(ErrorCode::unsupported, "it defines {} names of {} bytes, and {} names of {} bytes are the most",
                names.size(), bytes, kNamesMax, kNameBytesMax);
}

// The linker takes what an object says as it is, in the node's process.
Status check_object(llvm::MemoryBufferRef object) {
    if (object.getBufferSize() > kObjectBytesMax)
        return fail(ErrorCode::failed, "its code has {} MiB, and {} are the most; divide it",
                    object.getBufferSize() >> 20U, kObjectBytesMax >> 20U);
    auto file = llvm::object::ObjectFile::createObjectFile(object);
    if (!file) return fail(ErrorCode::internal, "LLVM's own object: {}", llvm::toString(file.takeError()));
    // A variable of zeros takes none in the file, and as much as it is aligned to when it is loaded.
    std::uint64_t bytes = 0;
    std::size_t sections = 0;
    for (const llvm::object::ELFSectionRef section : (*file)->sections()) {
        ++sections;
        if ((section.getFlags() & llvm::ELF::SHF_ALLOC) != 0)
            bytes = llvm::alignTo(bytes, section.getAlignment()) + section.getSize();
    }
    if (bytes > kLoadedBytesMax)
        return fail(ErrorCode::failed, "it takes {} MiB of memory with what it is aligned to, and {} are the most",
                    bytes >> 20U, kLoadedBytesMax >> 20U);
    if (sections > kSectionsMax)
        return fail(ErrorCode::unsupported, "it has {} sections, and {} are the most", sections, kSectionsMax);
    const auto symbols = static_cast<std::size_t>(std::distance((*file)->symbol_begin(), (*file)->symbol_end()));
    if (symbols > kSymbolsMax)
        return fail(ErrorCode::unsupported, "it has {} symbols, and {} are the most; divide it", symbols, kSymbolsMax);
    return {};
}

}  // namespace

Result<orc::JITTargetMachineBuilder> machine_here() {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    auto machine = orc::JITTargetMachineBuilder::detectHost();
    if (!machine)
        return fail(ErrorCode::unsupported, "LLVM cannot compile for this machine: {}",
                    llvm::toString(machine.takeError()));
    machine->getOptions().EmulatedTLS = true;  // real thread-locals would need ORC's runtime in the process
    machine->setRelocationModel(llvm::Reloc::PIC_);
    return std::move(*machine);
}

Result<Generated> generate(const GenerateRequest& request) {
    llvm::LLVMContext context;
    std::string diagnostics;
    set_up(context, diagnostics);
    ROVE_TRY(std::unique_ptr<llvm::Module> module, read_module(context, request.bitcode, request.name, true));
    ROVE_TRY(orc::JITTargetMachineBuilder builder, machine_here());
    auto machine = builder.createTargetMachine();
    if (!machine)
        return fail(ErrorCode::unsupported, "LLVM cannot compile for this machine: {}",
                    llvm::toString(machine.takeError()));
    const llvm::Triple& here = builder.getTargetTriple();
    if (llvm::Triple(module->getTargetTriple()).getArch() != here.getArch())
        return fail(ErrorCode::unsupported, "{}: its bitcode is for {}, not for this machine", request.name,
                    module->getTargetTriple());
    module->setTargetTriple(here.str());
    module->setDataLayout((*machine)->createDataLayout());
    leave_out_instrumentation(*module);
    place_common_variables(*module);
    if (const Status can = check_compilable(*module); !can) return prefixed(can.error(), request.name);
    if (const Status can = check_zeros(*module); !can) return prefixed(can.error(), request.name);
    Generated generated;
    generated.constructors = name_constructors(*module);
    const std::set<std::string_view> in_image(request.in_image.begin(), request.in_image.end());
    generated.own_statics = has_own_statics(*module, in_image);
    if (const Status can = borrow_from_image(*module, in_image); !can) return prefixed(can.error(), request.name);
    generated.names = defined_names(*module);
    if (const Status can = check_names(generated.names); !can) return prefixed(can.error(), request.name);
    keep_known_features(*module, **machine);
    auto object = orc::SimpleCompiler(**machine)(*module);
    if (!object)
        return fail(ErrorCode::failed, "{} does not compile: {}", request.name, llvm::toString(object.takeError()));
    if (!diagnostics.empty()) return fail(ErrorCode::failed, "{} does not compile: {}", request.name, diagnostics);
    if (const Status can = check_object((*object)->getMemBufferRef()); !can)
        return prefixed(can.error(), request.name + " does not compile");
    const Bytes made = as_bytes({(*object)->getBufferStart(), (*object)->getBufferSize()});
    generated.object.assign(made.begin(), made.end());
    return generated;
}

}  // namespace rove::code::jit
