#include "code/jit/program/fingerprint.hpp"

#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/Constants.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "code/jit/allocation.hpp"
#include "code/jit/anchors.hpp"
#include "package/pack.hpp"

namespace rove::code::jit {
namespace {

std::string_view as_text(const Digest& digest) {
    return rove::as_text(std::as_bytes(std::span(digest.bytes)));
}

Digest digest_of_bitcode(const llvm::Module& module) {
    leave_out_names_of_types(module);
    llvm::SmallVector<char, 0> text;
    llvm::BitcodeWriter writer(text);
    writer.writeModule(module);
    writer.writeStrtab();
    return PackageCache::key_of({std::string_view(text.data(), text.size())});
}

// A declaration with everything that the optimiser believes of the value where it does not see the definition.
llvm::GlobalValue* declare_in(llvm::Module& module, const llvm::GlobalValue& value) {
    const auto linkage = value.hasExternalWeakLinkage() ? value.getLinkage() : llvm::GlobalValue::ExternalLinkage;
    if (const auto* const function = llvm::dyn_cast<llvm::Function>(&value)) {
        auto* const twin = llvm::Function::Create(function->getFunctionType(), linkage, function->getAddressSpace(),
                                                  function->getName(), &module);
        twin->copyAttributesFrom(function);
        twin->deleteBody();  // what was copied with the attributes and is of the other module: a personality
        twin->setLinkage(linkage);
        return twin;
    }
    const auto* const variable = llvm::dyn_cast<llvm::GlobalVariable>(&value);
    auto* const twin = new llvm::GlobalVariable(
        module, value.getValueType(), variable != nullptr && variable->isConstant(), linkage, nullptr, value.getName(),
        nullptr, value.getThreadLocalMode(), value.getAddressSpace());
    if (variable != nullptr) twin->copyAttributesFrom(variable);
    return twin;
}

// A module with one value of the program. What that refers to is declared there by its name, but strings, which have none that lasts, are
// copied.
class Alone final : llvm::ValueMaterializer {
public:
    // body: false: as it would be declared.
    Alone(const llvm::GlobalValue& value, bool body) : module_("", value.getContext()) {
        if (const auto* const function = llvm::dyn_cast<llvm::Function>(&value); function != nullptr && body)
            define(*function);
        else if (const auto* const variable = llvm::dyn_cast<llvm::GlobalVariable>(&value); variable != nullptr && body)
            define(*variable, variable->getName());
        else if (const auto* const alias = llvm::dyn_cast<llvm::GlobalAlias>(&value); alias != nullptr && body)
            define(*alias);
        else
            (void)declare_in(module_, value);
    }
    [[nodiscard]] const llvm::Module& module() const { return module_; }
    // In the order in which they were met.
    [[nodiscard]] const std::vector<const llvm::GlobalValue*>& reaches() const { return reaches_; }

private:
    void define(const llvm::Function& function) {
        auto* const twin = llvm::Function::Create(function.getFunctionType(), function.getLinkage(),
                                                  function.getAddressSpace(), function.getName(), &module_);
        map_[&function] = twin;
        twin->copyAttributesFrom(&function);
        auto parameter = twin->arg_begin();
        for (const llvm::Argument& each : function.args()) map_[&each] = &*parameter++;
        llvm::SmallVector<llvm::ReturnInst*, 8> returns;
        llvm::CloneFunctionInto(twin, &function, map_, llvm::CloneFunctionChangeType::ClonedModule, returns, "",
                                nullptr, nullptr, this);
        if (function.hasPersonalityFn()) twin->setPersonalityFn(mapped(*function.getPersonalityFn()));
    }
    void define(const llvm::GlobalVariable& variable, llvm::StringRef name) {
        auto* const twin =
            new llvm::GlobalVariable(module_, variable.getValueType(), variable.isConstant(), variable.getLinkage(),
                                     nullptr, name, nullptr, variable.getThreadLocalMode(), variable.getAddressSpace());
        map_[&variable] = twin;
        twin->copyAttributesFrom(&variable);
        if (variable.hasInitializer()) twin->setInitializer(mapped(*variable.getInitializer()));
    }
    // As a pointer, because an alias must have what it stands for in its own module.
    void define(const llvm::GlobalAlias& alias) {
        auto* const twin = new llvm::GlobalVariable(module_, alias.getType(), true, alias.getLinkage(), nullptr,
                                                    alias.getName(), nullptr, alias.getThreadLocalMode());
        twin->setVisibility(alias.getVisibility());
        twin->setInitializer(mapped(*alias.getAliasee()));
    }
    llvm::Constant* mapped(const llvm::Constant& constant) {
        return llvm::MapValue(&constant, map_, llvm::RF_None, nullptr, this);
    }
    llvm::Value* materialize(llvm::Value* value) override {
        auto* const met = llvm::dyn_cast<llvm::GlobalValue>(value);
        if (met == nullptr || met->getParent() == &module_) return nullptr;
        // The compiler numbers them through a file. Nobody tells two that are alike apart.
        if (const auto* const variable = llvm::dyn_cast<llvm::GlobalVariable>(met);
            variable != nullptr && Modules::is_string(*variable)) {
            define(*variable, "");
            return map_[value];
        }
        reaches_.push_back(met);
        return map_[value] = declare_in(module_, *met);
    }

    llvm::Module module_;
    llvm::ValueToValueMapTy map_;
    std::vector<const llvm::GlobalValue*> reaches_;
};

// Which of the program's values it is.
std::string name_of(const llvm::GlobalValue& value) {
    return value.getName().str() + "@" + value.getParent()->getModuleIdentifier();
}

}  // namespace

Result<std::optional<Digest>> Fingerprints::of(const std::vector<const llvm::Function*>& functions) {
    if (program_.defines_of_library()) return std::nullopt;
    std::string all = program_.defines("malloc") ? "its own malloc\n" : "";
    std::vector<Index> rest;
    for (const llvm::Function* each : functions) {
        ROVE_TRY(rest.emplace_back(), index_of(*each));
        all += name_of(*each) + '\n';
    }
    std::vector<Digest> reached;
    std::vector<bool> is_reached;
    while (!rest.empty()) {
        const Index next = rest.back();
        rest.pop_back();
        is_reached.resize(values_.size());
        if (is_reached[next]) continue;
        is_reached[next] = true;
        if (!definitions_[next]) ROVE_CHECK(define(next));
        const Definition& definition = *definitions_[next];
        if (!definition.is_known) return std::nullopt;
        reached.push_back(definition.digest);
        rest.insert(rest.end(), definition.reaches.begin(), definition.reaches.end());
    }
    std::ranges::sort(reached);
    for (const Digest& each : reached) all += as_text(each);
    return PackageCache::key_of({all});
}

Result<Fingerprints::Index> Fingerprints::index_of(const llvm::GlobalValue& met) {
    ROVE_TRY(const llvm::GlobalValue* const value, program_.definition_of(met));
    const auto [at, is_new] = indices_.try_emplace(value, static_cast<Index>(values_.size()));
    if (is_new) {
        values_.push_back(value);
        definitions_.emplace_back();
    }
    return at->second;
}

Status Fingerprints::define(Index index) {
    const llvm::GlobalValue& value = *values_[index];
    const auto* const function = llvm::dyn_cast<llvm::Function>(&value);
    // Copy leaves it where it is, and so must SharedCode, which inlines what has been read.
    const bool stays = replaces_allocation(value, program_.defines("malloc"));
    if (function != nullptr && !stays) ROVE_CHECK(program_.read_body(const_cast<llvm::Function&>(*function)));
    Definition definition;
    definition.is_known = value.hasName() && !llvm::isa<llvm::GlobalIFunc>(value) &&
                          (function == nullptr || !has_label_values(*function));
    if (definition.is_known) {
        const std::string name = name_of(value);
        std::string facts = facts_of(value);
        const Alone alone(value, !stays && !value.isDeclaration());
        const Digest own = digest_of_bitcode(alone.module());
        if (stays) {
            facts += "stays\n";
        } else {
            std::vector<const llvm::GlobalValue*> reaches = alone.reaches();
            if (const auto* const variable = llvm::dyn_cast<llvm::GlobalVariable>(&value))
                for (const Modules::Constructor& each : program_.constructors_of(*variable))
                    reaches.push_back(llvm::cast<llvm::Function>(each.function));
            for (const llvm::GlobalValue* each : reaches) {
                ROVE_TRY(definition.reaches.emplace_back(), index_of(*each));
                facts += name_of(*values_[definition.reaches.back()]) + '\n';
            }
        }
        definition.digest = PackageCache::key_of({name, facts, as_text(own), as_text(digest_of(*value.getParent()))});
    }
    definitions_[index] = std::move(definition);
    return {};
}

const Digest& Fingerprints::digest_of(const llvm::Module& module) {
    const auto [at, is_new] = modules_.try_emplace(&module);
    if (is_new) {
        llvm::Module empty("", module.getContext());
        empty.setTargetTriple(module.getTargetTriple());
        empty.setDataLayout(module.getDataLayout());
        const llvm::NamedMDNode* flags = module.getModuleFlagsMetadata();
        for (unsigned i = 0; flags != nullptr && i < flags->getNumOperands(); ++i)
            empty.getOrInsertModuleFlagsMetadata()->addOperand(flags->getOperand(i));
        // What the optimiser makes of a call depends on which of C's library's functions the file declares, and how (isLibFuncEmittable).
        for (const llvm::GlobalValue& value : module.global_values())
            if (value.isDeclaration() && program_.is_of_library(value)) (void)declare_in(empty, value);
        at->second = PackageCache::key_of({as_text(digest_of_bitcode(empty)),
                                           FunctionSimplifier::without_exceptions(module) ? "without exceptions" : ""});
    }
    return at->second;
}

// What Copy finds out about the value from its module, beside its definition.
std::string Fingerprints::facts_of(const llvm::GlobalValue& value) const {
    if (const auto* const function = llvm::dyn_cast<llvm::Function>(&value)) return more_(*function) + '\n';
    const auto* const variable = llvm::dyn_cast<llvm::GlobalVariable>(&value);
    if (variable == nullptr) return {};
    std::string facts = Modules::is_static_of_function(*variable) ? "static of a function\n" : "";
    if (program_.is_made_by_priority(*variable)) facts += "made by priority\n";
    for (const Modules::Constructor& each : program_.constructors_of(*variable))
        facts += fmt::format("made {} {} {}\n", each.priority, each.making.module, each.making.place);
    return facts;
}

}  // namespace rove::code::jit
