#include "jit/compile.hpp"

#include <llvm/ExecutionEngine/JITLink/EHFrameSupport.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <set>

#include "base/library_statics.hpp"
#include "base/made_once.hpp"
#include "base/mutex.hpp"
#include "base/quoted.hpp"
#include "bitcode/anchors.hpp"
#include "bitcode/guard.hpp"
#include "jit/lacks.hpp"
#include "jit/places.hpp"
#include "jit/process/generate.hpp"
#include "jit/process/process.hpp"
#include "wire/image.hpp"
#include "wire/unwind.hpp"

namespace rove::bitcode {
namespace {

namespace orc = llvm::orc;

// The code that has been linked into one library.
struct Linked {
    std::size_t bytes = 0;
    LackedNames lacks;
};

// Bitcode can put anything into the section of unwind tables. The graph is in memory at its final addresses, one section after another.
llvm::Error check_unwinding(llvm::jitlink::LinkGraph& graph) {
    const llvm::jitlink::Section* const section = graph.findSectionByName(".eh_frame");
    if (section == nullptr || section->blocks().empty()) return llvm::Error::success();
    const auto bounds_of = [](auto blocks) {
        std::pair<const std::byte*, const std::byte*> bounds{nullptr, nullptr};
        for (const llvm::jitlink::Block* block : blocks) {
            if (block->getSection().getMemLifetime() == llvm::orc::MemLifetime::NoAlloc) continue;
            const auto* begin = block->getAddress().toPtr<const std::byte*>();
            if (bounds.first == nullptr || begin < bounds.first) bounds.first = begin;
            bounds.second = std::max(bounds.second, begin + block->getSize());
        }
        return bounds;
    };
    const auto all = bounds_of(graph.blocks()), table = bounds_of(section->blocks());
    const Status can = wire::check_unwind_table({.block = Bytes(all.first, all.second),
                                                 .offset = static_cast<std::size_t>(table.first - all.first),
                                                 .bytes = static_cast<std::size_t>(table.second - table.first)});
    if (can) return llvm::Error::success();
    return llvm::make_error<llvm::StringError>(can.error().message(), llvm::inconvertibleErrorCode());
}

// Each table is one block, all of which is kept.
llvm::Error keep_unwinding(llvm::jitlink::LinkGraph& graph) {
    llvm::jitlink::Section* const section = graph.findSectionByName(".eh_frame");
    if (section == nullptr) return llvm::Error::success();
    for (llvm::jitlink::Block* block : section->blocks())
        graph.addAnonymousSymbol(*block, 0, block->getSize(), /*IsCallable=*/false, /*IsLive=*/true);
    return llvm::Error::success();
}

// JITLink divides the table into its records, so that the records of functions without callers can be removed. That takes time and memory by
// the square of their number (5 GiB for 20,000 functions, LLVM 19), and nothing linked here is ever removed. Its first two passes do that.
void leave_unwinding_whole(llvm::jitlink::PassConfiguration& config) {
    constexpr std::ptrdiff_t kPasses = 2;
    auto& passes = config.PrePrunePasses;
    if (passes.size() < kPasses) return;
    passes.erase(passes.begin(), passes.begin() + kPasses);
    passes.insert(passes.begin(), &keep_unwinding);
}

// Records the linked code of each library.
class LinkRecorder final : public orc::ObjectLinkingLayer::Plugin {
public:
    static LinkRecorder& instance() {
        static constinit MadeInEachProcess<LinkRecorder> recorder;
        return recorder.get([] { return new LinkRecorder; });
    }
    // Returns the record of a library into which nothing more will be linked.
    Linked take(const orc::JITDylib& library) {
        const MutexLock lock(mutex_);
        auto found = linked_.extract(&library);
        return found.empty() ? Linked{} : std::move(found.mapped());
    }
    void modifyPassConfig(orc::MaterializationResponsibility& made, llvm::jitlink::LinkGraph&,
                          llvm::jitlink::PassConfiguration& config) override {
        leave_unwinding_whole(config);
        config.PrePrunePasses.insert(config.PrePrunePasses.begin(), &check_places);
        // Checked again after the linker has shortened instructions, and moved their places.
        config.PreFixupPasses.push_back(&check_places);
        const orc::JITDylib* library = &made.getTargetJITDylib();
        // The last pass before addresses are written: the linker has shortened all that it can.
        config.PreFixupPasses.push_back([this, library](llvm::jitlink::LinkGraph& graph) {
            Linked linked;
            for (const llvm::jitlink::Block* block : graph.blocks()) linked.bytes += block->getSize();
            linked.lacks = find_lacks(graph);
            const MutexLock lock(mutex_);
            Linked& all = linked_[library];
            all.bytes += linked.bytes;
            all.lacks.merge(linked.lacks);  // one object in each library
            return llvm::Error::success();
        });
        // Before the process registers it, because every exception of the process searches a registered table.
        config.PostFixupPasses.push_back(&check_unwinding);
    }
    llvm::Error notifyFailed(orc::MaterializationResponsibility&) override { return llvm::Error::success(); }
    llvm::Error notifyRemovingResources(orc::JITDylib&, orc::ResourceKey) override { return llvm::Error::success(); }
    void notifyTransferringResources(orc::JITDylib&, orc::ResourceKey, orc::ResourceKey) override {}

private:
    Mutex mutex_;
    std::map<const orc::JITDylib*, Linked> linked_ GUARDED_BY(mutex_);
};

// ORC's reports while it links; a session links one module at a time. ORC's error names what was not made, its report has the reason.
class Reported {
public:
    static Reported& instance() {
        static constinit MadeInEachProcess<Reported> reported;
        return reported.get([] { return new Reported; });
    }
    void add(const std::string& words) {
        const MutexLock lock(mutex_);
        if (words_.size() < kBytesMax)
            words_ += (words_.empty() ? "" : "; ") + words.substr(0, kBytesMax);  // it may list a whole module
    }
    std::string take() {  // since it was last taken
        const MutexLock lock(mutex_);
        return std::exchange(words_, {});
    }

private:
    static constexpr std::size_t kBytesMax = 300;
    Mutex mutex_;
    std::string words_ GUARDED_BY(mutex_);
};

// LLVM's session, into which compiled code is linked.
Result<std::unique_ptr<orc::LLJIT>> make_session() {
    ROVE_TRY(orc::JITTargetMachineBuilder machine, machine_here());
    auto jit = orc::LLJITBuilder()
                   .setJITTargetMachineBuilder(std::move(machine))
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
    if (!jit)
        return fail(ErrorCode::unsupported, "LLVM cannot link for this machine: {}", llvm::toString(jit.takeError()));
    (*jit)->getExecutionSession().setErrorReporter(
        [](llvm::Error error) { Reported::instance().add(llvm::toString(std::move(error))); });
    return std::move(*jit);
}

// The libraries of one module in a session.
struct InSession {
    orc::JITDylib& library;
    std::map<std::string, void*> addresses;
    Linked linked;
};

// The session that links code. LLVM unwinds no locks: once it has given up in a session, or memory ran out there, the next thread to enter the
// session waits for ever. So a thread that enters it holds `working`, marks it as lost in these cases, and is never one for which others wait.
struct Session {
    explicit Session(std::unique_ptr<orc::LLJIT> made) : jit(std::move(made)) {}
    const std::unique_ptr<orc::LLJIT> jit;
    Mutex working;
    bool is_lost GUARDED_BY(working) = false;
    Mutex leaving;
    // Libraries of destroyed modules, until free_modules_in(): removing one from LLVM takes time by the number of names in the process.
    std::list<InSession> left GUARDED_BY(leaving);
};

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
    ROVE_TRY(auto made, make_session());
    shared.kept = new Session(std::move(made));
    return shared.kept;
}

// The next compile gets a new session. Code that was linked before keeps running, and stays in memory.
void leave_session(Session& session) REQUIRES(session.working) {
    session.is_lost = true;
    SharedSession& shared = SharedSession::of_process();
    const MutexLock lock(shared.mutex);
    if (shared.kept == &session) shared.kept = nullptr;
}

// The functions that a compile calls for names while it links; empty afterwards.
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
    OrcModule(Session& session, orc::JITDylib& library) : session_(session) {
        in_session_.push_back({.library = library, .addresses = {}, .linked = {}});
    }
    // Called under any lock of a node: so it enters no session, and needs no memory.
    ~OrcModule() override {
        const MutexLock lock(session_.leaving);
        session_.left.splice(session_.left.end(), in_session_);
    }

    void* find(std::string_view name) const override {
        const auto found = here().addresses.find(std::string(name));
        return found != here().addresses.end() ? found->second : nullptr;
    }
    std::size_t code_bytes() const override { return here().linked.bytes; }
    bool has_constructors() const override { return !constructors.empty(); }
    bool has_own_statics() const override { return own_statics; }
    void run_constructors() override {
        for (const std::string& name : constructors)
            if (void* address = find(name))  // without a program's arguments, as in an image
                reinterpret_cast<void (*)(int, char**, char**)>(address)(0, nullptr, nullptr);
        constructors.clear();
    }

    bool can_put(std::string_view name) const override {
        const LackedNames& lacks = here().linked.lacks;
        const auto lacked = lacks.find(name);
        return lacked == lacks.end() || !lacked->second.is_elsewhere;
    }
    Status put(const std::vector<std::pair<std::string_view, void*>>& names) override {
        return put_names(here().linked.lacks, names);
    }

    [[nodiscard]] InSession& here() { return in_session_.front(); }
    [[nodiscard]] const InSession& here() const { return in_session_.front(); }
    std::vector<std::string> constructors;  // in the order in which they run
    bool own_statics = false;

private:
    Session& session_;
    std::list<InSession> in_session_;  // one
};

// Removes from LLVM what modules had that have been destroyed since.
void free_modules_in(Session& session) REQUIRES(session.working) {
    std::list<InSession> left;
    {
        const MutexLock lock(session.leaving);
        left.swap(session.left);
    }
    if (left.empty()) return;
    orc::ExecutionSession& execution = session.jit->getExecutionSession();
    std::vector<orc::JITDylibSP> libraries;
    for (const InSession& each : left) {
        (void)LinkRecorder::instance().take(each.library);  // the record of a compile that failed after linking
        libraries.emplace_back(&each.library);
    }
    llvm::consumeError(execution.removeJITDylibs(std::move(libraries)));
    left.clear();
    execution.getSymbolStringPool()->clearDeadEntries();  // it keeps each name that was ever looked up
}

tl::unexpected<Error> compile_failure(const CompileRequest& request, const Names& names, llvm::Error error) {
    const std::string reported = Reported::instance().take();
    const std::string given = llvm::toString(std::move(error));
    if (names.missing.empty())
        return fail(ErrorCode::failed, "{} does not compile: {}", request.name, reported.empty() ? given : reported);
    if (std::ranges::all_of(names.missing,
                            [](const std::string& each) { return each.starts_with(wire::kThreadLocalPrefix); }))
        return fail(ErrorCode::failed, "{} uses the thread-local variable '{}' {}", request.name,
                    names.missing.begin()->substr(wire::kThreadLocalPrefix.size()), kThreadLocalOfALibrary);
    return fail(ErrorCode::failed, "no symbol {} for {}; {}", quoted(names.missing), request.name, request.remedy);
}

Result<std::unique_ptr<CompiledModule>> link(const CompileRequest& request, Session& session, Generated generated) {
    orc::LLJIT& jit = *session.jit;
    static constinit std::atomic<unsigned> number{0};
    (void)Reported::instance().take();
    orc::ExecutionSession& execution = jit.getExecutionSession();
    orc::JITDylib& library = execution.createBareJITDylib(fmt::format("{}.{}", request.name, number++));
    auto compiled = std::make_unique<OrcModule>(session, library);
    InSession& in_session = compiled->here();
    compiled->constructors = std::move(generated.constructors);
    compiled->own_statics = generated.own_statics;
    orc::SymbolLookupSet wanted;
    for (const std::string& name : generated.names) wanted.add(jit.mangleAndIntern(name));

    const auto names = std::make_shared<Names>();
    names->request = &request;
    library.addGenerator(std::make_unique<Resolver>(names));
    const std::string_view object = as_text(generated.object);
    if (llvm::Error error = jit.addObjectFile(library, llvm::MemoryBuffer::getMemBufferCopy(object, request.name)))
        return compile_failure(request, *names, std::move(error));
    auto found = execution.lookup(orc::makeJITDylibSearchOrder(&library), std::move(wanted));
    names->request = nullptr;
    if (!found) return compile_failure(request, *names, found.takeError());
    for (const auto& [name, symbol] : *found) in_session.addresses[(*name).str()] = symbol.getAddress().toPtr<void*>();
    in_session.linked = LinkRecorder::instance().take(library);
    for (const std::string& each : compiled->constructors)
        if (request.in_image.empty() && compiled->find(each) == nullptr)
            return fail(ErrorCode::internal, "a constructor of {} is not among its symbols", request.name);
    // Names are stored here and by ORC, twice, with some words each (measured: 260 bytes for one of 10 letters).
    for (const std::string& name : generated.names) in_session.linked.bytes += 3 * name.size() + 230;
    for (const auto& [name, lacked] : in_session.linked.lacks)
        in_session.linked.bytes += lacked.places.size() * sizeof(LackedName::Place);
    return compiled;
}

// Works in a session, which is abandoned if LLVM gives up or memory runs out in it (overloaded).
Status in_session(Session& session, const std::string& what, const std::function<void()>& work)
    REQUIRES(session.working) {
    try {
        Status done = run_guarded(what, work);
        if (!done && done.error().code() == ErrorCode::failed) leave_session(session);  // otherwise nothing has begun
        return done;
    } catch (const std::bad_alloc&) {
        leave_session(session);
        return fail(ErrorCode::overloaded, "{} is not compiled: memory ran out while it was linked; try it again later",
                    what);
    }
}

}  // namespace

Result<std::unique_ptr<CompiledModule>> compile(const CompileRequest& request) {
    GenerateRequest generates{.name = request.name, .bitcode = request.bitcode, .in_image = {}};
    for (const auto& [name, address] : request.in_image) generates.in_image.push_back(name);
    ROVE_TRY(Generated generated, CompilerProcesses::of_process().generate(generates, request.bounds));
    for (;;) {
        ROVE_TRY(Session* const session, shared_session());
        const MutexLock lock(session->working);
        if (session->is_lost) continue;  // while this one waited for it
        std::optional<Result<std::unique_ptr<CompiledModule>>> compiled;
        ROVE_CHECK(in_session(*session, request.name, [&]() REQUIRES(session->working) {
            free_modules_in(*session);
            compiled.emplace(link(request, *session, std::move(generated)));
        }));
        return std::move(*compiled);
    }
}

void free_modules() {
    SharedSession& shared = SharedSession::of_process();
    Session* const session = [&shared] {
        const MutexLock lock(shared.mutex);
        return shared.kept;
    }();
    if (session == nullptr) return;
    const MutexLock lock(session->working);
    if (session->is_lost) return;
    const auto free = [session]() REQUIRES(session->working) { free_modules_in(*session); };
    try {
        // If LLVM has given up too often, or the machine has no thread, they would never be freed. In a lost session they are not.
        if (!in_session(*session, "code that was evicted", free) && !session->is_lost) free();
    } catch (const std::bad_alloc&) {  // no memory for the message
        leave_session(*session);
    }
}

}  // namespace rove::bitcode
