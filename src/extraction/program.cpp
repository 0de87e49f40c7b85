#include "extraction/program.hpp"

#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>

#include <algorithm>

#include "base/library_statics.hpp"
#include "base/mangled.hpp"
#include "bitcode/emit.hpp"
#include "bitcode/instrumentation.hpp"
#include "bitcode/runnable.hpp"
#include "bitcode/values.hpp"
#include "extraction/home/at_home.hpp"
#include "extraction/touched.hpp"
#include "package/bundle.hpp"
#include "package/digest.hpp"

namespace rove::bitcode {
namespace {

// The most bytes of a package's name that the joined names of its functions take: a name has 1024 at most.
constexpr std::size_t kNameShownMax = 200;

// The mark that rove/detail/offload.hpp writes. No other text begins with its first character.
constexpr llvm::StringLiteral kSourceMark = "\1rove source: ";

bool is_offload(const llvm::Function& function) {
    return !function.isDeclaration() && names_offload(function.getName());
}

std::string_view to_view(llvm::StringRef text) {
    return {text.data(), text.size()};
}

// The name of the module's source file, as the running program gives it (rove/detail/offload.hpp).
std::string source_of(const llvm::Module& module) {
    for (const llvm::GlobalVariable& variable : module.globals()) {
        const auto* text = variable.hasInitializer()
                               ? llvm::dyn_cast<llvm::ConstantDataSequential>(variable.getInitializer())
                               : nullptr;
        if (text == nullptr || !text->isCString()) continue;
        llvm::StringRef words = text->getAsCString();
        if (words.consume_front(kSourceMark)) return words.str();
    }
    return module.getSourceFileName();
}

std::string name_of(const std::string& symbol) {
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

void make_entry(llvm::Function& function, const std::string& name) {
    function.setLinkage(llvm::GlobalValue::ExternalLinkage);
    function.setComdat(nullptr);
    function.setName(name);
}

// Inline variables, templates' static members and the locks that OpenMP's `critical` names: every file that mentions them has them.
bool is_of_every_file(const llvm::GlobalVariable& variable) {
    return variable.hasLinkOnceODRLinkage() || variable.hasWeakODRLinkage() ||
           variable.getName().starts_with(".gomp_critical_user_");
}

// Variables of C++'s own library, tables of types that cereal fills in each process, and the compiler's guards of other variables.
bool is_of_library(llvm::StringRef name) {
    if (name.starts_with("_ZGV")) return true;
    if (!name.consume_front("_ZZ") && !name.consume_front("_Z")) return false;  // a static of a function, or another
    if (name.consume_front("N")) name.consume_front("K");
    return name.starts_with("St") || name.starts_with("9__gnu_cxx") || name.starts_with("11__gnu_debug") ||
           name.starts_with("6cereal6detail12StaticObject");
}

// Why nodes cannot run the copied code: mostly because it needs variables that belong to this program. Empty: they can.
std::string obstacle(const llvm::Module& module, const Copy& copy) {
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
        if (variable.isThreadLocal() && variable.isDeclaration() && !is_library_thread_local(name))
            return "it reaches the thread-local variable " + plain +
                   " of a library, which code that travels cannot; let a function of that library return its address";
        if (variable.isDeclaration() || variable.isConstant() || name.starts_with("llvm.")) continue;
        if (comes_into_being || !is_touched(variable)) continue;
        if (name.empty())  // like @0: place and type, for the report of a check that fails
            return "it reaches a variable without a name that the compiler added: made by -fsanitize=undefined, "
                   "most "
                   "likely; compile what travels without that option";
        return "it reaches the variable " + plain +
               ", which this program keeps for itself; pass what it needs as an argument, or let it ask its "
               "rove::Here";
    }
    return {};
}

// A package does not depend on how the program is observed: by counters, or by a debugger that needs frame pointers.
void prepare_bodies(llvm::Module& module) {
    leave_out_instrumentation(module);
    for (llvm::Function& function : module) function.removeFnAttr("frame-pointer");
}

}  // namespace

Program::Program(std::string path, Bytes section, bool share, Modules::IsStrong is_strong)
    : modules_(std::move(path), section, std::move(is_strong)),
      fingerprints_(modules_, [this](const llvm::Function& function) {
          return is_offload(function) ? key_of(function) : std::string();
      }) {
    if (share) shared_.emplace(modules_);
}

Status Program::read() {
    for (std::size_t i = 0; i < modules_.count(); ++i) {
        ROVE_TRY(const llvm::Module* module, modules_.get(i));
        const std::size_t known_offloads = offloads_.size();
        modules_.note_definitions(*module, i);
        sources_.push_back(source_of(*module));
        for (const llvm::Function& function : *module)
            if (is_offload(function)) {
                const std::string key = key_of(function);
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

std::vector<std::string> Program::keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, where] : offloads_) keys.push_back(key);
    return keys;
}

Result<std::string> Program::key_of(const std::string& asked) const {
    const auto found = Bundle::find_code(offloads_, asked);
    if (found == offloads_.end())
        return fail(ErrorCode::unsupported, "{} carries no bitcode of it: {}", modules_.path(), Bundle::kNotAmongThem);
    return found->first;
}

Result<std::optional<Digest>> Program::fingerprint(const std::vector<std::string>& keys) {
    std::vector<const llvm::Function*> functions;
    for (const std::string& key : keys) {
        ROVE_TRY(const llvm::Function* const function, function_of(key));
        functions.push_back(function);
    }
    return fingerprints_.of(functions);
}

Status Program::compare_statics(std::vector<Extracted>& all) {
    std::set<std::string> statics;
    for (const Extracted& each : all)
        if (each.facts.obstacle.empty())
            std::copy_if(each.facts.statics.begin(), each.facts.statics.end(), std::inserter(statics, statics.end()),
                         [](const std::string& name) { return !is_of_library(name); });
    if (statics.empty()) return {};
    ROVE_TRY(const std::set<std::string> changed, changed_at_home(modules_, statics, is_offload));
    for (Extracted& each : all)
        for (const std::string& name : each.facts.statics)
            if (changed.contains(name)) each.changed_at_home.push_back(llvm::demangle(name.substr(0, name.find('@'))));
    return {};
}

std::string Program::key_of(const llvm::Function& function) const {
    return Bundle::key_of_code(to_view(function.getName()), sources_[Modules::index_of(*function.getParent())],
                               function.hasLocalLinkage());
}

Result<llvm::Function*> Program::function_of(const std::string& key) {
    const auto& [index, symbol] = offloads_.at(key);
    ROVE_TRY(const llvm::Module* const module, modules_.get(index));
    return module->getFunction(symbol);
}

Result<Extracted> Program::take(const std::vector<std::string>& keys) {
    ROVE_TRY(Taken whole, take(keys, {}));
    if (whole.extracted.facts.obstacle.empty()) return std::move(whole.extracted);
    std::map<std::string, std::string> left;
    for (const std::string& other : whole.others) {
        ROVE_TRY(std::string why, why_not(other));
        if (!why.empty()) left.emplace(other, std::move(why));
    }
    if (!left.empty()) {
        ROVE_TRY(whole, take(keys, left));
    }
    return std::move(whole.extracted);
}

Result<std::string> Program::why_not(const std::string& key) {
    if (const auto known = obstacles_.find(key); known != obstacles_.end()) return known->second;
    ROVE_TRY(Taken taken, take({key}, {}));
    if (!taken.extracted.facts.obstacle.empty() && !taken.others.empty()) {
        std::map<std::string, std::string> left;
        for (const std::string& other : taken.others) left.emplace(other, "it is left out");
        ROVE_TRY(taken, take({key}, left));
    }
    return obstacles_[key] = taken.extracted.facts.obstacle;
}

Status Program::optimise_shared(const std::vector<std::string>& keys) {
    fingerprints_.close();
    if (!shared_) return {};
    std::vector<const llvm::Function*> functions;
    for (const std::string& key : keys) {
        ROVE_TRY(const llvm::Function* const function, function_of(key));
        functions.push_back(function);
    }
    return shared_->optimise(functions);
}

Result<llvm::Function*> Program::taken_of(const std::string& key, llvm::Module& taken, const Copy& copy) {
    if (!Bundle::is_of_file(key)) return taken.getFunction(offloads_.at(key).second);
    ROVE_TRY(const llvm::Function* const function, function_of(key));  // several files may have one of that name
    return copy.copy_of(*function);
}

Result<Program::Taken> Program::take(const std::vector<std::string>& keys,
                                     const std::map<std::string, std::string>& left) {
    ROVE_TRY(Taken whole, take_with(keys, left, true));
    if (whole.extracted.facts.obstacle.empty() || !whole.has_memory_functions) return whole;
    // The compiler calls memcpy() wherever bytes are copied, and the node's has the same meaning; rove bundle says that it is used.
    ROVE_TRY(Taken without, take_with(keys, left, false));
    return without.extracted.facts.obstacle.empty() ? std::move(without) : std::move(whole);
}

Result<Program::Taken> Program::take_with(const std::vector<std::string>& keys,
                                          const std::map<std::string, std::string>& left, bool memory_functions) {
    ROVE_CHECK(optimise_shared(keys));
    Taken result;
    Extracted& extracted = result.extracted;
    extracted.keys = keys;
    ROVE_TRY(const llvm::Module* const first, modules_.get(offloads_.at(keys.front()).first));
    llvm::Module taken("rove", modules_.context());
    describe_as(taken, *first);
    Copy copy(modules_, taken);
    if (!memory_functions) copy.leave_memory_functions();
    for (const auto& [other, why] : left) {
        ROVE_TRY(const llvm::Function* const met, function_of(other));
        ROVE_TRY(const llvm::GlobalValue* const function, modules_.definition_of(*met));
        copy.leave(*llvm::cast<llvm::Function>(function),
                   fmt::format("{} cannot be sent: {}", name_of(offloads_.at(other).second), why));
    }
    std::vector<llvm::Function*> bodies;
    for (const std::string& key : keys) {
        ROVE_TRY(llvm::Function* const function, function_of(key));
        ROVE_TRY(llvm::Function* const body, copy.take(*function));
        bodies.push_back(body);
        extracted.facts.name += (extracted.facts.name.empty() ? "" : "+") + name_of(offloads_.at(key).second);
    }
    copy.list_constructors();
    if (extracted.facts.name.size() > kNameShownMax) extracted.facts.name.resize(kNameShownMax);
    extracted.facts.obstacle = obstacle(taken, copy);
    extracted.facts.statics = copy.statics();
    result.has_memory_functions = copy.has_memory_functions();
    std::vector<llvm::Function*> others;  // taken before any gets another name
    for (const auto& [other, where] : offloads_) {
        if (std::binary_search(keys.begin(), keys.end(), other)) continue;
        ROVE_TRY(llvm::Function* const function, taken_of(other, taken, copy));
        if (function == nullptr || function->isDeclaration()) continue;
        result.others.push_back(other);
        others.push_back(function);
    }
    extracted.facts.replaced = std::move(copy.replaced());
    if (!extracted.facts.obstacle.empty()) return result;
    prepare_bodies(taken);
    const auto add_entry = [&](const std::string& key, llvm::Function& body) {
        const std::string name = name_of(offloads_.at(key).second);
        make_entry(body, extracted.entries.emplace_back(Bundle::entry_of(key, name, keys.size() + others.size())));
    };
    for (std::size_t i = 0; i < keys.size(); ++i) add_entry(keys[i], *bodies[i]);
    // Other functions of the program that these send: their code must be found by its address, so they are entries, too.
    for (std::size_t i = 0; i < others.size(); ++i) add_entry(result.others[i], *others[i]);
    leave_out_names_of_types(taken);
    extracted.bitcode = write_bitcode(taken);
    extracted.facts.digest = digest_of({as_text(extracted.bitcode)});
    return result;
}

}  // namespace rove::bitcode
