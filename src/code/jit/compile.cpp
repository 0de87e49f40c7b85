#include "code/jit/compile.hpp"

#include <llvm/ExecutionEngine/JITLink/EHFrameSupport.h>
#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/IR/Constants.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <tuple>

#include "base/made_once.hpp"
#include "base/mutex.hpp"
#include "base/quoted.hpp"
#include "code/jit/anchors.hpp"
#include "code/jit/guard.hpp"
#include "code/jit/instrumentation.hpp"
#include "code/jit/lacks.hpp"
#include "code/jit/read_module.hpp"

namespace rove::code::jit {
namespace {

namespace orc = llvm::orc;

// What has been linked into a library.
struct Linked {
    std::size_t bytes = 0;
    LackedNames lacks;
};

// Keeps what is linked into each library. Not by thread: ORC lets one thread's lookup link what another has asked for.
class LinkRecorder final : public orc::ObjectLinkingLayer::Plugin {
public:
    static LinkRecorder& instance() {
        static constinit MadeInEachProcess<LinkRecorder> recorder;
        return recorder.get([] { return new LinkRecorder; });
    }
    // Of a library that nothing more will be linked into.
    Linked take(const orc::JITDylib& library) {
        const MutexLock lock(mutex_);
        auto found = linked_.extract(&library);
        return found.empty() ? Linked{} : std::move(found.mapped());
    }
    void modifyPassConfig(orc::MaterializationResponsibility& made, llvm::jitlink::LinkGraph&,
                          llvm::jitlink::PassConfiguration& config) override {
        const orc::JITDylib* library = &made.getTargetJITDylib();
        // The last before addresses are written: what the linker makes shorter where it can has been made so.
        config.PreFixupPasses.push_back([this, library](llvm::jitlink::LinkGraph& graph) {
            Linked linked;
            for (const llvm::jitlink::Block* block : graph.blocks()) linked.bytes += block->getSize();
            linked.lacks = find_lacks(graph);
            const MutexLock lock(mutex_);
            Linked& all = linked_[library];
            all.bytes += linked.bytes;
            all.lacks.merge(linked.lacks);  // one object to a library
            return llvm::Error::success();
        });
    }
    llvm::Error notifyFailed(orc::MaterializationResponsibility&) override { return llvm::Error::success(); }
    llvm::Error notifyRemovingResources(orc::JITDylib&, orc::ResourceKey) override { return llvm::Error::success(); }
    void notifyTransferringResources(orc::JITDylib&, orc::ResourceKey, orc::ResourceKey) override {}

private:
    Mutex mutex_;
    std::map<const orc::JITDylib*, Linked> linked_ GUARDED_BY(mutex_);
};

// What ORC reports while it links, beside the error that it gives: that one says which names were not made, and this one why.
class Reported {
public:
    static Reported& instance() {
        static constinit MadeInEachProcess<Reported> reported;
        return reported.get([] { return new Reported; });
    }
    void add(std::string words) {
        const MutexLock lock(mutex_);
        if (words_.size() < kBytesMax)
            words_ += (words_.empty() ? "" : "; ") + words.substr(0, kBytesMax);  // it may list a whole module
    }
    // Since it was last taken: another link that runs at the same time may have a part in it.
    std::string take() {
        const MutexLock lock(mutex_);
        return std::exchange(words_, {});
    }

private:
    static constexpr std::size_t kBytesMax = 300;
    Mutex mutex_;
    std::string words_ GUARDED_BY(mutex_);
};

// Where compiled code is linked. Code is generated outside of it, so that a thread in which LLVM gives up holds nothing of it.
struct Session {
    Session(orc::JITTargetMachineBuilder for_this_cpu, std::unique_ptr<orc::LLJIT> linker)
        : machine(std::move(for_this_cpu)), jit(std::move(linker)) {}
    orc::JITTargetMachineBuilder machine;
    std::unique_ptr<orc::LLJIT> jit;
};

llvm::Expected<std::unique_ptr<Session>> make_session() {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    auto machine = orc::JITTargetMachineBuilder::detectHost();
    if (!machine) return machine.takeError();
    machine->getOptions().EmulatedTLS = true;  // real thread-locals would need ORC's runtime in the process
    machine->setRelocationModel(llvm::Reloc::PIC_);
    auto jit = orc::LLJITBuilder()
                   .setJITTargetMachineBuilder(*machine)
                   .setObjectLinkingLayerCreator([](orc::ExecutionSession& session, const llvm::Triple&) {
                       auto layer = std::make_unique<orc::ObjectLinkingLayer>(session);
                       layer->addPlugin(std::make_unique<orc::EHFrameRegistrationPlugin>(
                           session, std::make_unique<llvm::jitlink::InProcessEHFrameRegistrar>()));
                       layer->addPlugin(std::shared_ptr<LinkRecorder>(&LinkRecorder::instance(), [](LinkRecorder*) {}));
                       return llvm::Expected<std::unique_ptr<orc::ObjectLayer>>(std::move(layer));
                   })
                   .setPlatformSetUp(orc::setUpInactivePlatform)  // constructors are called by name below
                   .setLinkProcessSymbolsByDefault(false)
                   .create();
    if (!jit) return jit.takeError();
    (*jit)->getExecutionSession().setErrorReporter(
        [](llvm::Error error) { Reported::instance().add(llvm::toString(std::move(error))); });
    return std::make_unique<Session>(std::move(*machine), std::move(*jit));
}

struct SharedSession {
    Mutex mutex;
    Session* kept GUARDED_BY(mutex) = nullptr;

    static SharedSession& of_process() {
        static constinit MadeInEachProcess<SharedSession> made;
        return made.get([] { return new SharedSession; });
    }
};

// One session for the process; never destroyed, because code may run until its end.
Result<Session*> shared_session() {
    SharedSession& shared = SharedSession::of_process();
    const MutexLock lock(shared.mutex);
    if (shared.kept != nullptr) return shared.kept;
    auto made = make_session();
    if (!made)
        return fail(ErrorCode::unsupported, "LLVM cannot compile for this machine: {}",
                    llvm::toString(made.takeError()));
    shared.kept = made->release();
    return shared.kept;
}

// LLVM has given up while it linked in this session and may hold its locks: the next compile gets a new one. Code that was linked
// before goes on.
void leave_session(const Session* session) {
    SharedSession& shared = SharedSession::of_process();
    const MutexLock lock(shared.mutex);
    if (shared.kept == session) shared.kept = nullptr;
}

// What a compile asks for while it links; empty afterwards.
struct Names {
    const CompileRequest* request = nullptr;
    std::set<std::string> missing;
};

class Resolver final : public orc::DefinitionGenerator {
public:
    explicit Resolver(std::shared_ptr<Names> names) : names_(std::move(names)) {}

    llvm::Error tryToGenerate(orc::LookupState&, orc::LookupKind, orc::JITDylib& library, orc::JITDylibLookupFlags,
                              const orc::SymbolLookupSet& wanted) override {
        if (names_->request == nullptr) return llvm::Error::success();
        orc::SymbolMap found;
        for (const auto& [name, flags] : wanted) {
            const std::string text = (*name).str();
            if (void* address = find(text))
                found[name] = {orc::ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported};
            else if (flags != orc::SymbolLookupFlags::RequiredSymbol)
                continue;
            else if (names_->request->may_lack(text))
                found[name] = {orc::ExecutorAddr(kNowhere), llvm::JITSymbolFlags::Exported};
            else
                names_->missing.insert(text);
        }
        return found.empty() ? llvm::Error::success() : library.define(orc::absoluteSymbols(std::move(found)));
    }

private:
    [[nodiscard]] void* find(const std::string& name) const {
        void* borrowed = find_borrowed(name, names_->request->in_image);
        return borrowed != nullptr ? borrowed : names_->request->resolve(name);
    }
    std::shared_ptr<Names> names_;
};

class OrcModule final : public CompiledModule {
public:
    OrcModule(orc::LLJIT& jit, orc::JITDylib& library) : jit_(jit), library_(library) {}
    ~OrcModule() override {
        (void)LinkRecorder::instance().take(library_);  // of a compile that failed after linking
        llvm::consumeError(jit_.getExecutionSession().removeJITDylib(library_));
    }

    void* find(std::string_view name) const override {
        const auto found = addresses.find(std::string(name));
        return found != addresses.end() ? found->second : nullptr;
    }
    std::size_t code_bytes() const override { return linked.bytes; }
    bool has_constructors() const override { return !constructors.empty(); }
    void run_constructors() override {
        for (const std::string& name : constructors)
            if (void* address = find(name)) reinterpret_cast<void (*)()>(address)();
        constructors.clear();
    }

    bool can_put(std::string_view name) const override {
        const auto lacked = linked.lacks.find(name);
        return lacked == linked.lacks.end() || !lacked->second.is_elsewhere;
    }
    Status put(const std::vector<std::pair<std::string_view, void*>>& names) override {
        return put_names(linked.lacks, names);
    }

    std::map<std::string, void*> addresses;
    std::vector<std::string> constructors;  // in the order in which they run
    Linked linked;

private:
    orc::LLJIT& jit_;
    orc::JITDylib& library_;
};

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
        if (function->hasLocalLinkage()) {  // an entry that is a constructor as well keeps its name
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

tl::unexpected<Error> compile_failure(const CompileRequest& request, const Names& names, llvm::Error error) {
    const std::string reported = Reported::instance().take();
    const std::string given = llvm::toString(std::move(error));
    if (names.missing.empty())
        return fail(ErrorCode::failed, "{} does not compile: {}", request.name, reported.empty() ? given : reported);
    return fail(ErrorCode::failed, "no symbol {} for {}; {}", quoted(names.missing), request.name, request.remedy);
}

// What is left of a module when its code has been generated.
struct Generated {
    std::unique_ptr<llvm::MemoryBuffer> object;
    std::vector<std::string> constructors, names;
};

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

Result<Generated> generate(const CompileRequest& request, const Session& session) {
    llvm::LLVMContext context;
    std::string diagnostics;
    set_up(context, diagnostics);
    ROVE_TRY(std::unique_ptr<llvm::Module> module, read_module(context, request.bitcode, request.name, true));
    const llvm::Triple& here = session.jit->getTargetTriple();
    if (llvm::Triple(module->getTargetTriple()).getArch() != here.getArch())
        return fail(ErrorCode::unsupported, "{}: its bitcode is for {}, not for this machine", request.name,
                    module->getTargetTriple());
    module->setTargetTriple(here.str());
    module->setDataLayout(session.jit->getDataLayout());
    leave_out_instrumentation(*module);
    if (const Status can = check_compilable(*module); !can) return prefixed(can.error(), request.name);
    if (const Status can = check_zeros(*module); !can) return prefixed(can.error(), request.name);
    Generated generated;
    generated.constructors = name_constructors(*module);
    if (const Status can = borrow_from_image(*module, request.in_image); !can)
        return prefixed(can.error(), request.name);
    generated.names = defined_names(*module);
    orc::JITTargetMachineBuilder builder = session.machine;
    auto machine = builder.createTargetMachine();  // one for each compile, so that threads may compile at once
    if (!machine)
        return fail(ErrorCode::unsupported, "LLVM cannot compile for this machine: {}",
                    llvm::toString(machine.takeError()));
    keep_known_features(*module, **machine);
    auto object = orc::SimpleCompiler(**machine)(*module);
    if (!object)
        return fail(ErrorCode::failed, "{} does not compile: {}", request.name, llvm::toString(object.takeError()));
    if (!diagnostics.empty()) return fail(ErrorCode::failed, "{} does not compile: {}", request.name, diagnostics);
    generated.object = std::move(*object);
    return generated;
}

Result<std::unique_ptr<CompiledModule>> link(const CompileRequest& request, const Session& session,
                                             Generated generated) {
    static constinit std::atomic<unsigned> number{0};
    (void)Reported::instance().take();
    orc::LLJIT& jit = *session.jit;
    orc::ExecutionSession& execution = jit.getExecutionSession();
    orc::JITDylib& library = execution.createBareJITDylib(fmt::format("{}.{}", request.name, number++));
    auto compiled = std::make_unique<OrcModule>(jit, library);
    compiled->constructors = std::move(generated.constructors);
    orc::SymbolLookupSet wanted;
    for (const std::string& name : generated.names) wanted.add(jit.mangleAndIntern(name));

    const auto names = std::make_shared<Names>();
    names->request = &request;
    library.addGenerator(std::make_unique<Resolver>(names));
    if (llvm::Error error = jit.addObjectFile(library, std::move(generated.object)))
        return compile_failure(request, *names, std::move(error));
    auto found = execution.lookup(orc::makeJITDylibSearchOrder(&library), std::move(wanted));
    names->request = nullptr;
    if (!found) return compile_failure(request, *names, found.takeError());
    for (const auto& [name, symbol] : *found) compiled->addresses[(*name).str()] = symbol.getAddress().toPtr<void*>();
    compiled->linked = LinkRecorder::instance().take(library);
    for (const auto& [name, lacked] : compiled->linked.lacks)
        compiled->linked.bytes += lacked.places.size() * sizeof(LackedName::Place);
    return compiled;
}

}  // namespace

Result<std::unique_ptr<CompiledModule>> compile(const CompileRequest& request) {
    const Session* used = nullptr;  // set when linking begins
    std::optional<Result<std::unique_ptr<CompiledModule>>> compiled;
    const Status ended = run_guarded(
        request.name,
        [&] {
            compiled.emplace([&]() -> Result<std::unique_ptr<CompiledModule>> {
                ROVE_TRY(const Session* const session, shared_session());
                ROVE_TRY(Generated generated, generate(request, *session));
                used = session;
                return link(request, *session, std::move(generated));
            }());
        },
        request.bounds);
    if (ended) return std::move(*compiled);
    if (used != nullptr) leave_session(used);
    return tl::unexpected<Error>(ended.error());
}

}  // namespace rove::code::jit
