#include "jit/process/generate.hpp"

#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "bitcode/anchors.hpp"
#include "bitcode/compilable.hpp"
#include "bitcode/instrumentation.hpp"
#include "bitcode/listed.hpp"
#include "bitcode/read_module.hpp"
#include "bitcode/values.hpp"
#include "wire/image.hpp"

namespace rove::bitcode {
namespace {

namespace orc = llvm::orc;

// An external function that calls a hidden one, so that the node can look it up by name.
llvm::Function* make_entrance(llvm::Function& hidden, const std::string& name) {
    auto* const entrance =
        llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(hidden.getContext()), false),
                               llvm::GlobalValue::ExternalLinkage, name, *hidden.getParent());
    llvm::IRBuilder<> code(llvm::BasicBlock::Create(hidden.getContext(), "", entrance));
    llvm::SmallVector<llvm::Value*, 3> nothing;  // instead of a program's arguments and environment
    for (llvm::Type* const type : hidden.getFunctionType()->params())
        nothing.push_back(llvm::Constant::getNullValue(type));
    code.CreateCall(&hidden, nothing);
    code.CreateRetVoid();
    return entrance;
}

// Gives the module's constructors names of their own, in the order in which they are to run.
std::vector<std::string> name_constructors(llvm::Module& module) {
    std::map<std::pair<std::uint64_t, unsigned>, std::string> found;  // by priority and place
    for (const Listed& each : listed(module, kConstructors)) {
        auto* function = llvm::dyn_cast<llvm::Function>(each.function);
        if (function == nullptr || function->isDeclaration()) continue;
        const std::string name = fmt::format("rove.constructor.{:05}", each.place);
        if (function->hasLocalLinkage()) {
            function->setName(name);
            function->setLinkage(llvm::GlobalValue::ExternalLinkage);
        } else if (function->hasHiddenVisibility()) {  // an anchor: both forms know it by its name
            function = make_entrance(*function, name);
        }  // otherwise it is an entry as well, and has a name that can be looked up
        found.emplace(std::pair(each.priority, each.place), function->getName().str());
    }
    if (llvm::GlobalVariable* const list = module.getNamedGlobal(kConstructors)) list->eraseFromParent();
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

// LLVM prints unknown features of a function's CPU to stderr, in the words of a peer.
void keep_known_features(llvm::Module& module, const llvm::TargetMachine& machine) {
    const llvm::ArrayRef<llvm::SubtargetFeatureKV> known = machine.getMCSubtargetInfo()->getAllProcessorFeatures();
    const auto is_known = [known](llvm::StringRef feature) {
        return (feature.consume_front("+") || feature.consume_front("-")) &&
               std::any_of(known.begin(), known.end(), [feature](const auto& each) { return each.Key == feature; });
    };
    for (llvm::Function& function : module) {
        function.removeFnAttr("target-cpu");  // it is compiled for this machine's CPU
        function.removeFnAttr("tune-cpu");
        keep_cpu_features(function, is_known);
    }
}

bool has_own_statics(const llvm::Module& module, const std::set<std::string_view>& in_image) {
    return llvm::any_of(module.globals(), [&in_image](const llvm::GlobalVariable& each) {
        const std::string_view name = each.getName();
        return !each.isDeclaration() && name.starts_with(wire::kStaticPrefix) && !in_image.contains(name);
    });
}

// The linker allocates separate memory for each of them, after the sections, which no bound counts.
void place_common_variables(llvm::Module& module) {
    for (llvm::GlobalVariable& variable : module.globals())
        if (variable.hasCommonLinkage()) variable.setLinkage(llvm::GlobalValue::ExternalLinkage);
}

// The code generator for this machine, made again for each module, because it keeps what a module says (the alignment of the stack, what its
// list llvm.used names). What a thread keeps is this machine's description: the CPU is asked for its features once, which takes 0.1 ms where
// a hypervisor answers.
Result<std::unique_ptr<llvm::TargetMachine>> code_generator() {
    thread_local std::optional<orc::JITTargetMachineBuilder> here;
    if (!here) {
        ROVE_TRY(orc::JITTargetMachineBuilder found, machine_here());
        here.emplace(std::move(found));
    }
    auto machine = here->createTargetMachine();
    if (!machine)
        return fail(ErrorCode::unsupported, "LLVM cannot compile for this machine: {}",
                    llvm::toString(machine.takeError()));
    return std::move(*machine);
}

// Bounds the names that others may ask for, because the node's process, which links the object, keeps all of them.
Status check_names(const std::vector<std::string>& names) {
    std::size_t bytes = 0;
    for (const std::string& name : names) bytes += name.size();
    if (names.size() <= kNamesMax && bytes <= kNameBytesMax) return {};
    return fail(ErrorCode::unsupported, "it defines {} names of {} bytes, and {} names of {} bytes are the most",
                names.size(), bytes, kNamesMax, kNameBytesMax);
}

// The linker trusts what an object states, in the node's process.
Status check_object(llvm::MemoryBufferRef object) {
    if (object.getBufferSize() > kObjectBytesMax)
        return fail(ErrorCode::failed, "its code has {} MiB, and {} are the most; divide it",
                    object.getBufferSize() >> 20U, kObjectBytesMax >> 20U);
    auto file = llvm::object::ObjectFile::createObjectFile(object);
    if (!file) return fail(ErrorCode::internal, "LLVM's own object: {}", llvm::toString(file.takeError()));
    // A variable of zeros takes no room in the file, and as much as its alignment when it is loaded.
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
    ROVE_TRY(const std::unique_ptr<llvm::TargetMachine> machine, code_generator());
    const llvm::Triple& here = machine->getTargetTriple();
    if (llvm::Triple(module->getTargetTriple()).getArch() != here.getArch())
        return fail(ErrorCode::unsupported, "{}: its bitcode is for {}, not for this machine", request.name,
                    module->getTargetTriple());
    module->setTargetTriple(here.str());
    module->setDataLayout(machine->createDataLayout());
    leave_out_instrumentation(*module);
    place_common_variables(*module);
    if (const Status can = check_compilable(*module); !can) return prefixed(can.error(), request.name);
    if (const Status can = check_zeros(*module); !can) return prefixed(can.error(), request.name);
    Generated generated;
    generated.constructors = name_constructors(*module);
    if (const Status can = check_names(generated.constructors); !can) return prefixed(can.error(), request.name);
    const std::set<std::string_view> in_image(request.in_image.begin(), request.in_image.end());
    generated.own_statics = has_own_statics(*module, in_image);
    if (const Status can = borrow_from_image(*module, in_image); !can) return prefixed(can.error(), request.name);
    generated.names = defined_names(*module);
    if (const Status can = check_names(generated.names); !can) return prefixed(can.error(), request.name);
    keep_known_features(*module, *machine);
    auto object = orc::SimpleCompiler(*machine)(*module);
    if (!object)
        return fail(ErrorCode::failed, "{} does not compile: {}", request.name, llvm::toString(object.takeError()));
    if (!diagnostics.empty()) return fail(ErrorCode::failed, "{} does not compile: {}", request.name, diagnostics);
    if (const Status can = check_object((*object)->getMemBufferRef()); !can)
        return prefixed(can.error(), request.name + " does not compile");
    const Bytes made = as_bytes({(*object)->getBufferStart(), (*object)->getBufferSize()});
    generated.object.assign(made.begin(), made.end());
    return generated;
}

}  // namespace rove::bitcode
