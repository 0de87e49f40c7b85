#include "code/jit/extract.hpp"

#include <llvm/ADT/IntEqClasses.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>

#include <algorithm>
#include <future>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>

#include "base/made_once.hpp"
#include "base/mangled.hpp"
#include "base/mutex.hpp"
#include "code/jit/copy.hpp"
#include "code/jit/emit.hpp"
#include "code/jit/guard.hpp"
#include "code/jit/home/at_home.hpp"
#include "code/jit/instrumentation.hpp"
#include "code/jit/modules.hpp"
#include "code/jit/runnable.hpp"
#include "code/jit/shared.hpp"
#include "code/jit/touched.hpp"
#include "package/bundle.hpp"

namespace rove::code::jit {
namespace {

// Of the names of functions that travel together, joined: a package's name has 1024 bytes at most.
constexpr std::size_t kNameShownMax = 200;

bool is_offload(const llvm::Function& function) {
    return !function.isDeclaration() && names_offload(function.getName());
}

// Threads: one at a time.
class Program {
public:
    struct Taken {
        Extracted extracted;
        std::vector<std::string> statics;  // that it reaches
        std::vector<std::string> others;   // that it sends, by their keys
    };

    // share: what several functions reach is optimised once, before they are taken (SharedCode); for one alone that takes longer.
    Program(std::string path, Bytes section, bool share) : modules_(std::move(path), section) {
        if (share) shared_.emplace(modules_);
    }

    Status read() {
        for (std::size_t i = 0; i < modules_.count(); ++i) {
            ROVE_TRY(const llvm::Module* module, modules_.get(i));
            const std::size_t known_offloads = offloads_.size();
            modules_.note_definitions(*module, i);
            const std::string source = source_of(*module);
            for (const llvm::Function& function : *module)
                if (is_offload(function)) {
                    const std::string key =
                        Bundle::key_of_code(to_view(function.getName()), source, function.hasLocalLinkage());
                    const std::string symbol = function.getName().str();
                    if (!offloads_.try_emplace(key, i, symbol).second && Bundle::is_of_file(key))
                        return fail(ErrorCode::invalid,
                                    "{} would end at its start: several of its source files have a function that is "
                                    "called {}, and they cannot be told apart, because a precompiled header contains "
                                    "rove/rove.hpp or their paths end in the same two names; give one of them another "
                                    "name",
                                    modules_.path(), name_of(symbol));
                }
            if (offloads_.size() == known_offloads) modules_.drop(i);
        }
        return {};
    }

    // The function, and those that travel with it.
    Result<Extracted> extract(const std::string& asked) {
        const auto found = Bundle::find_code(offloads_, asked);
        if (found == offloads_.end())
            return fail(ErrorCode::unsupported, "{} carries no bitcode of it: {}", modules_.path(),
                        Bundle::kNotAmongThem);
        ROVE_TRY(Taken alone, take({found->first}));
        if (!alone.extracted.obstacle.empty() || alone.statics.empty()) return std::move(alone.extracted);
        ROVE_TRY(const std::vector<Extracted>* const all, extract_all());
        const auto with = std::find_if(all->begin(), all->end(), [&](const Extracted& each) {
            return std::binary_search(each.keys.begin(), each.keys.end(), found->first);
        });
        return *with;
    }

    // Every function, each once. Found out the first time.
    Result<const std::vector<Extracted>*> extract_all() {
        if (all_) return &*all_;
        std::vector<Taken> alone(count());
        ROVE_CHECK(take_some(0, 1, alone));
        ROVE_TRY(std::vector<Taken> joined, join(std::move(alone)));
        all_.emplace();
        for (Taken& each : joined) all_->push_back(std::move(each.extracted));
        return &*all_;
    }

    [[nodiscard]] std::size_t count() const { return offloads_.size(); }

    // Each by itself, into its place: from the one at `first` on every `step`th.
    Status take_some(std::size_t first, std::size_t step, std::vector<Taken>& alone) {
        std::vector<std::string> keys;
        auto at = offloads_.begin();
        for (std::size_t i = 0; i < count(); ++i, ++at)
            if (i % step == first) keys.push_back(at->first);
        ROVE_CHECK(optimise_shared(keys));  // at once: each time takes as long as its modules are large
        at = offloads_.begin();
        for (std::size_t i = 0; i < count(); ++i, ++at)
            if (i % step == first) {
                ROVE_TRY(alone[i], take({at->first}));
            }
        return {};
    }

    // Of all functions, each by itself, those that travel.
    Result<std::vector<Taken>> join(std::vector<Taken> alone) {
        std::vector<Taken> all;
        for (const std::vector<std::size_t>& group : by_common_statics(alone)) {
            if (group.size() == 1) {
                all.push_back(std::move(alone[group.front()]));
                continue;
            }
            std::vector<std::string> keys;
            for (const std::size_t each : group) keys.push_back(alone[each].extracted.keys.front());
            ROVE_TRY(Taken together, take(keys));
            all.push_back(std::move(together));
        }
        return all;
    }

    // Those that nodes begin with their first values.
    static std::set<std::string> statics_of(const std::vector<Taken>& all) {
        std::set<std::string> statics;
        for (const Taken& each : all)
            if (each.extracted.obstacle.empty())
                std::copy_if(each.statics.begin(), each.statics.end(), std::inserter(statics, statics.end()),
                             [](const std::string& name) { return !is_of_library(name); });
        return statics;
    }
    // Of each those that may have other values here. The program is as it was written: whether a pointer to const is believed depends on calls.
    Status compare_statics(const std::set<std::string>& statics, std::vector<Taken>& all) {
        ROVE_TRY(const std::set<std::string> changed, changed_at_home(modules_, statics, is_offload));
        for (Taken& each : all)
            for (const std::string& name : each.statics)
                if (changed.contains(name))
                    each.extracted.begin_anew.push_back(llvm::demangle(name.substr(0, name.find('@'))));
        return {};
    }

private:
    // As the running program gives it (rove/detail/offload.hpp).
    static std::string source_of(const llvm::Module& module) {
        for (const llvm::GlobalVariable& variable : module.globals()) {
            const auto* text = variable.hasInitializer()
                                   ? llvm::dyn_cast<llvm::ConstantDataSequential>(variable.getInitializer())
                                   : nullptr;
            if (text == nullptr || !text->isCString()) continue;
            llvm::StringRef words = text->getAsCString();
            if (words.consume_front("rove source: ")) return words.str();
        }
        return module.getSourceFileName();
    }

    // Which of them belong together, by their places; what cannot travel belongs to nobody.
    static std::vector<std::vector<std::size_t>> by_common_statics(const std::vector<Taken>& all) {
        llvm::IntEqClasses classes(static_cast<unsigned>(all.size()));
        std::unordered_map<std::string, unsigned> first;  // that reaches a static
        for (unsigned i = 0; i < all.size(); ++i) {
            if (!all[i].extracted.obstacle.empty()) continue;
            for (const std::string& name : all[i].statics) classes.join(first.try_emplace(name, i).first->second, i);
        }
        classes.compress();
        std::vector<std::vector<std::size_t>> groups(classes.getNumClasses());
        for (unsigned i = 0; i < all.size(); ++i) groups[classes[i]].push_back(i);
        return groups;
    }

    // These functions in one module. Keys: sorted. Others that they send need not travel: a stub takes the place of one that cannot. Calls of it
    // succeed where it is resident, and fail elsewhere.
    Result<Taken> take(const std::vector<std::string>& keys) {
        ROVE_TRY(Taken whole, take(keys, {}));
        if (whole.extracted.obstacle.empty()) return whole;
        std::map<std::string, std::string> left;
        for (const std::string& other : whole.others) {
            ROVE_TRY(std::string why, why_not(other));
            if (!why.empty()) left.emplace(other, std::move(why));
        }
        return left.empty() ? std::move(whole) : take(keys, left);
    }
    // Why the function cannot be sent, whichever others it sends; empty: it can. So two that send one another are told apart.
    Result<std::string> why_not(const std::string& key) {
        if (const auto known = obstacles_.find(key); known != obstacles_.end()) return known->second;
        ROVE_TRY(Taken taken, take({key}, {}));
        if (!taken.extracted.obstacle.empty() && !taken.others.empty()) {
            std::map<std::string, std::string> left;
            for (const std::string& other : taken.others) left.emplace(other, "it is left out");
            ROVE_TRY(taken, take({key}, left));
        }
        return obstacles_[key] = taken.extracted.obstacle;
    }
    Status optimise_shared(const std::vector<std::string>& keys) {
        if (!shared_) return {};
        std::vector<const llvm::Function*> functions;
        for (const std::string& key : keys) {
            const auto& [index, symbol] = offloads_.at(key);
            ROVE_TRY(const llvm::Module* const module, modules_.get(index));
            functions.push_back(module->getFunction(symbol));
        }
        return shared_->optimise(functions);
    }
    // Of a function that others send: what was taken of it. Null: nothing.
    Result<llvm::Function*> taken_of(const std::string& key, llvm::Module& taken, const Copy& copy) {
        const auto& [index, symbol] = offloads_.at(key);
        if (!Bundle::is_of_file(key)) return taken.getFunction(symbol);
        ROVE_TRY(const llvm::Module* const its, modules_.get(index));  // several files may have one of that name
        return copy.copy_of(*its->getFunction(symbol));
    }
    Result<Taken> take(const std::vector<std::string>& keys, const std::map<std::string, std::string>& left) {
        ROVE_CHECK(optimise_shared(keys));
        Taken result;
        Extracted& extracted = result.extracted;
        extracted.keys = keys;
        ROVE_TRY(const llvm::Module* const first, modules_.get(offloads_.at(keys.front()).first));
        llvm::Module taken("rove", modules_.context());
        taken.setTargetTriple(first->getTargetTriple());
        taken.setDataLayout(first->getDataLayout());
        const llvm::NamedMDNode* flags = first->getModuleFlagsMetadata();
        for (unsigned i = 0; flags != nullptr && i < flags->getNumOperands(); ++i)
            taken.getOrInsertModuleFlagsMetadata()->addOperand(flags->getOperand(i));
        Copy copy(modules_, taken);
        for (const auto& [other, why] : left) {
            const auto& [index, symbol] = offloads_.at(other);
            ROVE_TRY(const llvm::Module* const module, modules_.get(index));
            ROVE_TRY(const llvm::GlobalValue* const function, modules_.definition_of(*module->getFunction(symbol)));
            copy.leave(*llvm::cast<llvm::Function>(function),
                       fmt::format("{} cannot be sent: {}", name_of(symbol), why));
        }
        std::vector<llvm::Function*> bodies;
        for (const std::string& key : keys) {
            const auto& [index, symbol] = offloads_.at(key);
            ROVE_TRY(llvm::Module* const module, modules_.get(index));
            ROVE_TRY(llvm::Function* const body, copy.take(*module->getFunction(symbol)));
            bodies.push_back(body);
            extracted.name += (extracted.name.empty() ? "" : "+") + name_of(symbol);
        }
        copy.list_constructors();
        if (extracted.name.size() > kNameShownMax) extracted.name.resize(kNameShownMax);
        extracted.obstacle = obstacle(taken, copy);
        result.statics = copy.statics();
        std::vector<llvm::Function*> others;  // before any has another name
        for (const auto& [other, where] : offloads_) {
            if (std::binary_search(keys.begin(), keys.end(), other)) continue;
            ROVE_TRY(llvm::Function* const function, taken_of(other, taken, copy));
            if (function == nullptr || function->isDeclaration()) continue;
            result.others.push_back(other);
            others.push_back(function);
        }
        extracted.replaced = std::move(copy.replaced());
        if (!extracted.obstacle.empty()) return result;
        prepare_bodies(taken);
        for (std::size_t i = 0; i < keys.size(); ++i)
            make_entry(*bodies[i], extracted.entries.emplace_back(
                                       Bundle::entry_of(keys[i], name_of(offloads_.at(keys[i]).second))));
        // Other functions of the program that these send: their code must be found by its address, so they are entries, too.
        for (std::size_t i = 0; i < others.size(); ++i) {
            const std::string& other = result.others[i];
            make_entry(*others[i],
                       extracted.entries.emplace_back(Bundle::entry_of(other, name_of(offloads_.at(other).second))));
        }
        extracted.bitcode = write_bitcode(taken);
        return result;
    }

    static void make_entry(llvm::Function& function, const std::string& name) {
        function.setLinkage(llvm::GlobalValue::ExternalLinkage);
        function.setComdat(nullptr);
        function.setName(name);
    }
    static std::string_view to_view(llvm::StringRef text) { return {text.data(), text.size()}; }

    static std::string name_of(const std::string& symbol) {
        // rove::detail::Offload<F, …>::run(…)
        const std::string text = llvm::demangle(symbol);
        constexpr std::string_view kBegin = "rove::detail::Offload<";
        const std::size_t begin = text.find(kBegin);
        if (begin == std::string::npos) return symbol.substr(0, 100);
        std::size_t at = begin + kBegin.size();
        const std::size_t first = at;
        for (int depth = 0; at < text.size(); ++at) {
            const char c = text[at];
            if (c == '<' || c == '(' || c == '{') ++depth;
            if (c == '>' || c == ')' || c == '}') --depth;
            if (depth == 0 && c == ',') break;
        }
        return Bundle::name_of(text.substr(first, at - first));
    }

    // Inline variables and templates' static members: any file that mentions them has them.
    static bool is_of_every_file(const llvm::GlobalVariable& variable) {
        return variable.hasLinkOnceODRLinkage() || variable.hasWeakODRLinkage();
    }
    // Of C++'s own library, a table of types that cereal fills wherever its code is, or the compiler's guard of another variable.
    static bool is_of_library(llvm::StringRef name) {
        if (name.starts_with("_ZGV")) return true;
        if (!name.consume_front("_ZZ") && !name.consume_front("_Z"))
            return false;  // a static of a function, or another
        if (name.consume_front("N")) name.consume_front("K");
        return name.starts_with("St") || name.starts_with("9__gnu_cxx") ||
               name.starts_with("6cereal6detail12StaticObject");
    }
    // What the node cannot have: variables that belong to this program.
    static std::string obstacle(const llvm::Module& module, const Copy& copy) {
        if (const Status runs = check_runnable(module); !runs) return runs.error().message();
        if (const std::string& name = copy.made_by_priority(); !name.empty())
            return "it reaches the inline variable " + llvm::demangle(name) +
                   ", which has an init_priority, and nodes make inline variables in the order of the program's files; "
                   "leave the priority out, or make it a static variable of a function";
        for (const llvm::GlobalVariable& variable : module.globals()) {
            const llvm::StringRef name = variable.getName();
            const std::string plain = llvm::demangle(name.str());
            const bool comes_into_being = copy.is_of_function(variable) || is_of_every_file(variable);
            if (name.starts_with("__tls_guard") && variable.isThreadLocal())
                return "it reaches an inline thread_local variable that code initialises, and such are made "
                       "together with all others of their source file; make it a static thread_local variable "
                       "of a function";
            if (variable.isThreadLocal() && !variable.isDeclaration() && !comes_into_being)
                return "it reaches the thread-local variable " + plain +
                       ", and threads there have none; pass what it needs, or make it a variable of the function";
            if (variable.isDeclaration() || variable.isConstant() || name.starts_with("llvm.")) continue;
            if (comes_into_being || !is_touched(variable)) continue;
            if (name.empty())  // as @0: where and what type, for the report of a check that fails
                return "it reaches a variable without a name that the compiler added: made by -fsanitize=undefined, "
                       "most "
                       "likely; compile what travels without that option";
            return "it reaches the variable " + plain +
                   ", which this program keeps for itself; pass what it needs as an argument, or let it ask its "
                   "rove::Here";
        }
        return {};
    }

    // As if compiled to be optimised later, wherever it came from.
    static void prepare_bodies(llvm::Module& module) {
        leave_out_instrumentation(module);
        for (llvm::Function& function : module) {
            if (function.hasFnAttribute(llvm::Attribute::OptimizeNone)) {
                function.removeFnAttr(llvm::Attribute::OptimizeNone);
                function.removeFnAttr(llvm::Attribute::NoInline);
            }
            function.removeFnAttr("frame-pointer");
        }
    }

    Modules modules_;
    std::optional<SharedCode> shared_;
    std::map<std::string, std::pair<std::size_t, std::string>> offloads_;  // by key: in which module, under which name
    std::map<std::string, std::string> obstacles_;                         // of those that were asked for
    std::optional<std::vector<Extracted>> all_;
};

}  // namespace

namespace {

// What a process takes out of itself, function by function, is read once.
struct Own {
    Mutex mutex;
    std::unique_ptr<Program> program GUARDED_BY(mutex);
    const std::byte* of GUARDED_BY(mutex) = nullptr;

    Result<std::vector<Extracted>> extract(const ExtractRequest& request) REQUIRES(mutex) {
        if (of != request.bitcode.data()) {
            auto read = std::make_unique<Program>(request.program, request.bitcode, false);
            ROVE_CHECK(read->read());
            program = std::move(read);
            of = request.bitcode.data();
        }
        std::vector<Extracted> all;
        if (request.only == kNothing) return all;
        ROVE_TRY(Extracted extracted, program->extract(request.only));
        all.push_back(std::move(extracted));
        return all;
    }
};

Result<std::vector<Extracted>> extract_own(const ExtractRequest& request) {
    static constinit MadeInEachProcess<Own> made;  // threads may be here when the process ends
    Own& own = made.get([] { return new Own; });
    const MutexLock lock(own.mutex);
    std::optional<Result<std::vector<Extracted>>> result;
    // In another thread, for which this one holds the lock.
    const Status ended =
        run_guarded(request.program, [&]() REQUIRES(own.mutex) { result.emplace(own.extract(request)); });
    if (ended) return std::move(*result);
    [[maybe_unused]] const Program* const lost = own.program.release();  // LLVM has given up in the middle of it
    own.of = nullptr;
    return tl::unexpected<Error>(ended.error());
}

// Reading a program takes as long as taking out ten functions.
constexpr std::size_t kFunctionsOfAThread = 25;

// Every function that a program can send, on all cores. Each thread reads the program for itself: what LLVM has read is one thread's.
Result<std::vector<Extracted>> extract_every(const ExtractRequest& request) {
    std::vector<std::vector<Program::Taken>> parts;
    std::vector<std::future<Status>> others;
    const auto take_part = [&](std::size_t number, std::size_t of) {
        return guarded(request.program, [&, number, of]() -> Status {
            Program program(request.program, request.bitcode, true);
            ROVE_CHECK(program.read());
            return program.take_some(number, of, parts[number]);
        });
    };
    Result<std::vector<Extracted>> all = guarded(request.program, [&]() -> Result<std::vector<Extracted>> {
        Program program(request.program, request.bitcode, true);
        ROVE_CHECK(program.read());
        const std::size_t threads =
            std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 1 + program.count() / kFunctionsOfAThread);
        parts.assign(threads, std::vector<Program::Taken>(program.count()));
        for (std::size_t i = 1; i < threads; ++i) try {
                others.push_back(std::async(std::launch::async, take_part, i, threads));
            } catch (const std::system_error&) {  // no thread to be had: this one does it
                break;
            }
        std::vector<Program::Taken>& alone = parts.front();
        ROVE_CHECK(program.take_some(0, threads, alone));
        for (std::size_t i = others.size() + 1; i < threads; ++i) ROVE_CHECK(program.take_some(i, threads, alone));
        for (std::size_t i = 1; i <= others.size(); ++i) {
            ROVE_CHECK(others[i - 1].get());
            for (std::size_t place = i; place < alone.size(); place += threads)
                alone[place] = std::move(parts[i][place]);
        }
        ROVE_TRY(std::vector<Program::Taken> joined, program.join(std::move(alone)));
        if (const std::set<std::string> statics = Program::statics_of(joined); !statics.empty()) {
            Program as_written(request.program, request.bitcode, false);
            ROVE_CHECK(as_written.read());
            ROVE_CHECK(as_written.compare_statics(statics, joined));
        }
        std::vector<Extracted> extracted;
        for (Program::Taken& each : joined) extracted.push_back(std::move(each.extracted));
        return extracted;
    });
    for (const std::future<Status>& each : others)  // where it went wrong before they were asked
        if (each.valid()) each.wait();
    return all;
}

}  // namespace

Result<std::vector<Extracted>> extract(const ExtractRequest& request) {
    if (!request.only.empty()) return extract_own(request);
    return extract_every(request);
}

}  // namespace rove::code::jit
