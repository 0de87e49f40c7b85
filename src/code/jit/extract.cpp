#include "code/jit/extract.hpp"

#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/Linker/IRMover.h>
#include <llvm/TargetParser/Triple.h>

#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "code/jit/emit.hpp"
#include "code/jit/read_module.hpp"
#include "package/bundle.hpp"

namespace rove::code::jit {
namespace {

// The body of rove::Offload<…> (rove/function.hpp).
constexpr llvm::StringRef kOffload = "_ZN4rove7OffloadI";
constexpr llvm::StringRef kRun = "E3runEP9rove_herePKvm";

bool is_offload(const llvm::Function& function) {
    return !function.isDeclaration() && function.getName().starts_with(kOffload) && function.getName().contains(kRun);
}

// A program's section holds the bitcode of its object files one behind the other, and LLVM's reader takes only one. A module is a
// magic number and blocks; each block says how many words it has.
std::vector<Bytes> cut_apart(Bytes section) {
    constexpr std::uint32_t kMagic = 0xDEC04342;
    const auto word = [&section](std::size_t at) {
        std::uint32_t value = 0;
        if (at + sizeof value <= section.size()) std::memcpy(&value, section.data() + at, sizeof value);
        return value;
    };
    std::vector<Bytes> modules;
    std::size_t at = 0;
    while (at + 8 <= section.size()) {
        if (word(at) != kMagic) {
            at += 4;  // what the linker fills with
            continue;
        }
        const std::size_t begin = at;
        at += 4;
        // ENTER_SUBBLOCK is 1 in two bits; the block's number and abbreviations' width fill the rest of the word.
        while (at + 8 <= section.size() && (word(at) & 3U) == 1) {
            const std::size_t bytes = std::size_t{word(at + 4)} * 4 + 8;
            if (bytes > section.size() - at) break;
            at += bytes;
        }
        modules.push_back(section.subspan(begin, at - begin));
    }
    return modules;
}

class Program {
public:
    explicit Program(std::string path) : path_(std::move(path)) {}

    Status read(Bytes section) {
        modules_ = cut_apart(section);
        for (std::size_t i = 0; i < modules_.size(); ++i) {
            llvm::LLVMContext context;
            ROVE_TRY(const auto module, load(context, i));
            for (const llvm::GlobalValue& value : module->global_values()) {
                if (value.isDeclaration() || value.hasLocalLinkage() || value.hasAvailableExternallyLinkage()) continue;
                const auto [known, added] = defined_in_.try_emplace(value.getName().str(), i);
                if (!added && value.isStrongDefinitionForLinker()) known->second = i;
            }
            for (const llvm::Function& function : *module)
                if (is_offload(function)) {
                    std::string key = Bundle::key_of_code(
                        to_view(function.getName()), to_view(module->getSourceFileName()), function.hasLocalLinkage());
                    offloads_.try_emplace(std::move(key), i, function.getName().str());
                }
        }
        return {};
    }

    [[nodiscard]] std::vector<std::string> keys() const {
        std::vector<std::string> keys;
        for (const auto& [key, where] : offloads_) keys.push_back(key);
        return keys;
    }

    Result<Extracted> extract(const std::string& key) const {
        Extracted extracted{.key = key};
        const auto found = offloads_.find(key);
        if (found == offloads_.end()) return fail(ErrorCode::unsupported, "{} carries no bitcode of it", path_);
        const auto& [index, symbol] = found->second;
        llvm::LLVMContext context;
        std::string diagnostics;
        collect_diagnostics(context, diagnostics);
        llvm::Module taken("rove", context);
        std::map<std::size_t, std::set<std::string>> wanted{{index, {symbol}}};
        std::set<std::string> asked{symbol};
        while (!wanted.empty()) {
            const auto [from, names] = *wanted.begin();
            wanted.erase(wanted.begin());
            ROVE_CHECK(move(taken, context, from, names, diagnostics));
            for (const llvm::GlobalValue& value : taken.global_values()) {
                if (!value.isDeclaration() || asked.contains(value.getName().str())) continue;
                const auto where = defined_in_.find(value.getName().str());
                if (where == defined_in_.end()) continue;
                asked.insert(where->first);
                wanted[where->second].insert(where->first);
            }
        }
        llvm::Function* run = taken.getFunction(symbol);
        if (run == nullptr) return fail(ErrorCode::internal, "{} was lost while it was taken out", symbol);
        extracted.name = name_of(symbol);
        extracted.obstacle = obstacle(taken);
        prepare_bodies(taken);
        extracted.entries.push_back(Bundle::entry_of(key));
        make_entry(*run, extracted.entries.front());
        // Other functions of the program that this one sends: their code must be found by its address, so they are entries, too.
        for (const auto& [other, where] : offloads_) {
            llvm::Function* function = other != key ? taken.getFunction(where.second) : nullptr;
            if (function == nullptr || function->isDeclaration()) continue;
            extracted.entries.push_back(Bundle::entry_of(other));
            make_entry(*function, extracted.entries.back());
        }
        extracted.bitcode = write_bitcode(taken);
        return extracted;
    }

private:
    static void make_entry(llvm::Function& function, const std::string& name) {
        function.setLinkage(llvm::GlobalValue::ExternalLinkage);
        function.setComdat(nullptr);
        function.setName(name);
    }
    static std::string_view to_view(llvm::StringRef text) { return {text.data(), text.size()}; }

    // With bodies still unread.
    Result<std::unique_ptr<llvm::Module>> load(llvm::LLVMContext& context, std::size_t index) const {
        const std::string_view text = as_text(modules_[index]);
        auto module = llvm::getLazyBitcodeModule(
            llvm::MemoryBufferRef(llvm::StringRef(text.data(), text.size()), path_), context, true);
        if (!module)
            return fail(ErrorCode::invalid, "{}: its bitcode cannot be read: {}", path_,
                        llvm::toString(module.takeError()));
        // What is said of types names functions, and would bring them along. What is materialised later comes without it, too.
        if (llvm::Error failed = (*module)->materializeMetadata())
            return fail(ErrorCode::invalid, "{}: its bitcode cannot be read: {}", path_,
                        llvm::toString(std::move(failed)));
        llvm::StripDebugInfo(**module);
        return std::move(*module);
    }

    Status move(llvm::Module& into, llvm::LLVMContext& context, std::size_t from, const std::set<std::string>& names,
                const std::string& diagnostics) const {
        ROVE_TRY(auto module, load(context, from));
        if (into.getTargetTriple().empty()) {
            into.setTargetTriple(module->getTargetTriple());
            into.setDataLayout(module->getDataLayout());
        }
        std::vector<llvm::GlobalValue*> values;
        for (const std::string& name : names)
            if (llvm::GlobalValue* value = module->getNamedValue(name)) values.push_back(value);
        llvm::IRMover mover(into);
        llvm::Error failed = mover.move(
            std::move(module), values,
            [](llvm::GlobalValue& value, const llvm::IRMover::ValueAdder& add) {
                if (!value.isDeclaration()) add(value);
            },
            false);
        if (failed)
            return fail(ErrorCode::invalid, "{}: its bitcode cannot be taken apart: {} {}", path_,
                        llvm::toString(std::move(failed)), diagnostics);
        return {};
    }

    static std::string name_of(const std::string& symbol) {
        // rove::Offload<F, …>::run(…)
        const std::string text = llvm::demangle(symbol);
        const std::size_t begin = text.find("rove::Offload<");
        if (begin == std::string::npos) return symbol.substr(0, 100);
        std::size_t at = begin + 14;
        const std::size_t first = at;
        for (int depth = 0; at < text.size(); ++at) {
            const char c = text[at];
            if (c == '<' || c == '(' || c == '{') ++depth;
            if (c == '>' || c == ')' || c == '}') --depth;
            if (depth == 0 && c == ',') break;
        }
        return Bundle::name_of(text.substr(first, at - first));
    }

    // What the node cannot have: variables that belong to this program.
    static std::string obstacle(const llvm::Module& module) {
        for (const llvm::GlobalVariable& variable : module.globals()) {
            const llvm::StringRef name = variable.getName();
            const std::string plain = llvm::demangle(name.str());
            if (variable.isThreadLocal() && !variable.isDeclaration())
                return "it reaches the thread-local variable " + plain +
                       ", and threads there have none; pass what it needs";
            if (variable.isDeclaration() || variable.isConstant() || name.starts_with("llvm.")) continue;
            // A function's own statics come into being wherever it runs.
            if (name.starts_with("_ZZ") || name.starts_with("_ZGVZ") || name.contains("E.")) continue;
            return "it reaches the variable " + plain +
                   ", which this program keeps for itself; pass what it needs as an argument, or let it ask its "
                   "rove::Here";
        }
        return {};
    }

    // As if compiled to be optimised later, wherever it came from.
    static void prepare_bodies(llvm::Module& module) {
        for (llvm::Function& function : module) {
            if (function.hasFnAttribute(llvm::Attribute::OptimizeNone)) {
                function.removeFnAttr(llvm::Attribute::OptimizeNone);
                function.removeFnAttr(llvm::Attribute::NoInline);
            }
            for (const auto attribute :
                 {llvm::Attribute::StackProtect, llvm::Attribute::StackProtectReq, llvm::Attribute::StackProtectStrong,
                  llvm::Attribute::SanitizeAddress, llvm::Attribute::SanitizeThread, llvm::Attribute::SanitizeMemory})
                function.removeFnAttr(attribute);
            function.removeFnAttr("stack-protector-buffer-size");
            function.removeFnAttr("frame-pointer");
        }
    }

    const std::string path_;
    std::vector<Bytes> modules_;
    std::unordered_map<std::string, std::size_t> defined_in_;
    std::map<std::string, std::pair<std::size_t, std::string>> offloads_;  // by key: in which module, under which name
};

}  // namespace

namespace {

// What a process takes out of itself, function by function, is read once.
Result<const Program*> own_program(const ExtractRequest& request) {
    static std::mutex mutex;
    static std::unique_ptr<Program> kept;
    static const std::byte* kept_of = nullptr;
    const std::lock_guard lock(mutex);
    if (kept_of == request.bitcode.data()) return kept.get();
    auto program = std::make_unique<Program>(request.program);
    ROVE_CHECK(program->read(request.bitcode));
    kept = std::move(program);
    kept_of = request.bitcode.data();
    return kept.get();
}

}  // namespace

Result<std::vector<Extracted>> extract(const ExtractRequest& request) {
    std::vector<Extracted> all;
    if (!request.only.empty()) {
        ROVE_TRY(const Program* own, own_program(request));
        if (request.only == kNothing) return all;
        ROVE_TRY(Extracted extracted, own->extract(request.only));
        all.push_back(std::move(extracted));
        return all;
    }
    Program program(request.program);
    ROVE_CHECK(program.read(request.bitcode));
    for (const std::string& key : program.keys()) {
        ROVE_TRY(Extracted extracted, program.extract(key));
        all.push_back(std::move(extracted));
    }
    return all;
}

}  // namespace rove::code::jit
