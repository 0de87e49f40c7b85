#include "bitcode/package/needs.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

#include <set>
#include <unordered_set>

#include "base/cpu.hpp"
#include "bitcode/listed.hpp"
#include "bitcode/values.hpp"

namespace rove::bitcode {
namespace {

// All values that are reached from those passed to from().
class Reach {
public:
    void from(const llvm::Value& value) {
        add(value);
        while (!open_.empty()) {
            const llvm::Value& next = *open_.back();
            open_.pop_back();
            if (const auto* function = llvm::dyn_cast<llvm::Function>(&next)) add_body(*function);
            // The operands of a global value or a constant: an initial value, an aliasee, a personality, the members of an aggregate.
            for (const llvm::Use& part : llvm::cast<llvm::User>(next).operands()) add(*part);
        }
    }
    [[nodiscard]] std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (const llvm::Value* each : seen_) {
            const auto* object = llvm::dyn_cast<llvm::GlobalObject>(each);
            if (object != nullptr && object->isDeclaration() && !object->hasExternalWeakLinkage())
                names.push_back(object->getName().str());
        }
        return names;
    }

private:
    void add(const llvm::Value& value) {
        if (const auto* block = llvm::dyn_cast<llvm::BlockAddress>(&value)) return add(*block->getFunction());
        if (llvm::isa<llvm::Constant>(value) && seen_.insert(&value).second) open_.push_back(&value);
    }
    void add_body(const llvm::Function& function) {
        for (const llvm::BasicBlock& block : function)
            for (const llvm::Instruction& instruction : block)
                for (const llvm::Use& operand : instruction.operands()) add(*operand);
    }

    std::unordered_set<const llvm::Value*> seen_;
    std::vector<const llvm::Value*> open_;
};

// The extensions of the CPU for which several functions together were compiled.
class OfCpu {
public:
    explicit OfCpu(const llvm::Module& module) : kind_(llvm::Triple(module.getTargetTriple()).getArchName().str()) {}
    void add(const llvm::Value* value) {
        const auto* function = value != nullptr ? llvm::dyn_cast<llvm::Function>(value->stripPointerCasts()) : nullptr;
        if (function == nullptr) return;
        for (llvm::StringRef feature : cpu_features(*function))
            if (feature.consume_front("+")) features_.insert(feature.str());
    }
    [[nodiscard]] std::vector<std::string> names() const {
        std::vector<std::string_view> extensions;
        for (const std::string_view each : cpu_extensions(kind_))
            if (features_.contains(each)) extensions.push_back(each);
        if (extensions.empty()) return {};
        return {cpu_import(kind_, extensions)};
    }

private:
    std::string kind_;
    std::set<std::string, std::less<>> features_;
};

}  // namespace

std::vector<std::vector<std::string>> cpu_needs_of(const llvm::Module& module, const std::vector<std::string>& entries,
                                                   const std::vector<std::string>& exports) {
    OfCpu whole(module);
    for (const std::string& name : exports) whole.add(module.getNamedValue(name));
    for (const llvm::StringRef list : {kConstructors, kDestructors})
        for (const Listed& each : listed(module, list)) whole.add(each.function);
    std::vector<std::vector<std::string>> needs{whole.names()};
    for (const std::string& name : entries) {
        OfCpu entry(module);
        entry.add(module.getNamedValue(name));
        needs.push_back(entry.names());
    }
    return needs;
}

std::vector<std::vector<std::string>> needs_of(const llvm::Module& module, const std::vector<std::string>& entries,
                                               const std::vector<std::string>& exports) {
    Reach whole;
    for (const std::string& name : exports)
        if (const llvm::GlobalValue* value = module.getNamedValue(name)) whole.from(*value);
    for (const llvm::GlobalVariable& variable : module.globals())
        // Constructors and destructors in their lists, and statics: these are initialised once, whichever entry is called first.
        if (variable.hasInitializer() && (!variable.isConstant() || variable.getName().starts_with("llvm.global_")))
            whole.from(variable);
    std::vector<std::vector<std::string>> needs{whole.names()};
    for (const std::string& name : entries) {
        Reach entry;
        if (const llvm::GlobalValue* value = module.getNamedValue(name)) entry.from(*value);
        needs.push_back(entry.names());
    }
    return needs;
}

}  // namespace rove::bitcode
