#include "extraction/definitions.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "bitcode/anchors.hpp"
#include "bitcode/emit.hpp"
#include "bitcode/values.hpp"
#include "package/digest.hpp"

namespace rove::bitcode {
namespace {

Digest digest_without_names_of_types(const llvm::Module& module) {
    leave_out_names_of_types(module);
    return digest_of_bitcode(module);
}

// A declaration with all attributes on which the optimiser relies if it does not see the definition.
llvm::GlobalValue* declare_in(llvm::Module& module, const llvm::GlobalValue& value) {
    const auto linkage = value.hasExternalWeakLinkage() ? value.getLinkage() : llvm::GlobalValue::ExternalLinkage;
    if (const auto* const function = llvm::dyn_cast<llvm::Function>(&value)) {
        auto* const twin = llvm::Function::Create(function->getFunctionType(), linkage, function->getAddressSpace(),
                                                  function->getName(), &module);
        twin->copyAttributesFrom(function);
        // Removes what was copied with the attributes and belongs to the other module: a personality.
        twin->deleteBody();
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

// A module with one value of the program. Values to which it refers are declared there by their names; string literals, whose names change
// with the file, are copied.
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
    // Values in the order in which they were met.
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
    // Defines a pointer instead of an alias, because the object of an alias must be in the same module.
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
        // The compiler numbers them through a file. Two equal ones are interchangeable.
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

// Whether notes can identify the value in its module.
bool has_lasting_name(const llvm::GlobalValue& value) {
    return value.hasName() && value.getName().size() <= std::numeric_limits<std::uint16_t>::max();
}

}  // namespace

void Definitions::recall(const KnownFacts& known) {
    for (std::size_t i = 0; i < program_.count(); ++i) {
        std::optional<Outline> outline = outline_of(program_.bitcode(i));
        if (!outline) continue;
        Notes notes = Notes::decode(known.definitions(outline->surroundings));
        noted_[i] = {.outline = std::move(*outline), .notes = std::move(notes), .bodies = {}};
    }
}

void Definitions::note(KnownFacts& known) const {
    for (const auto& [index, module] : noted_)
        known.keep_definitions(module.outline.surroundings, module.notes.encode());
}

Definitions::NotedModule* Definitions::noted_of(const llvm::GlobalValue& value) {
    const std::size_t index = Modules::index_of(*value.getParent());
    const auto known = noted_.find(index);
    if (known == noted_.end()) return nullptr;
    NotedModule& module = known->second;
    const std::vector<const llvm::Function*>& functions = program_.bodies(index);
    if (module.bodies.empty() && functions.size() == module.outline.bodies.size())
        for (std::size_t i = 0; i < functions.size(); ++i)
            module.bodies.emplace(functions[i], module.outline.bodies[i]);
    return module.bodies.size() == functions.size() ? &module : nullptr;
}

Result<Definitions::Definition> Definitions::of(const llvm::GlobalValue& value) {
    // Notes describe bitcode, and not the linker's choices.
    NotedModule* const module = program_.is_without_bitcode(value) ? nullptr : noted_of(value);
    Definition definition;
    if (module != nullptr && find(*module, value, definition)) return definition;
    const auto* const function = llvm::dyn_cast<llvm::Function>(&value);
    if (function != nullptr) ROVE_CHECK(program_.read_body(const_cast<llvm::Function&>(*function)));
    definition.is_known = value.hasName() && !llvm::isa<llvm::GlobalIFunc>(value) &&
                          (function == nullptr || !has_label_values(*function));
    if (definition.is_known) {
        const Alone alone(value, !value.isDeclaration());
        definition.digest = digest_without_names_of_types(alone.module());
        definition.reaches = alone.reaches();
    }
    if (module != nullptr) add(*module, value, definition);
    return definition;
}

Digest Definitions::declaration_of(const llvm::GlobalValue& value) {
    return digest_without_names_of_types(Alone(value, false).module());
}

const Digest& Definitions::of_module(const llvm::Module& module) {
    const auto [at, is_new] = modules_.try_emplace(&module);
    if (is_new) {
        llvm::Module empty("", module.getContext());
        describe_as(empty, module);
        // The optimiser's result for a call depends on which functions of the C library the file declares, and how (isLibFuncEmittable).
        for (const llvm::GlobalValue& value : module.global_values())
            if (value.isDeclaration() && program_.is_of_library(value)) (void)declare_in(empty, value);
        at->second = digest_of({digest_without_names_of_types(empty).hex(),
                                FunctionSimplifier::without_exceptions(module) ? "without exceptions" : "",
                                program_.is_unoptimised(module) ? "without optimising" : ""});
    }
    return at->second;
}

bool Definitions::find(const NotedModule& module, const llvm::GlobalValue& value, Definition& definition) {
    const Notes& notes = module.notes;
    const auto place = notes.places.find(value.getName().str());
    const auto noted = place != notes.places.end() ? notes.definitions.find(place->second) : notes.definitions.end();
    if (noted == notes.definitions.end() || noted->second.body != module.body_of(value)) return false;
    Definition found{.is_known = noted->second.is_known, .digest = noted->second.digest, .reaches = {}};
    for (const Notes::Index each : noted->second.reaches) {
        found.reaches.push_back(value.getParent()->getNamedValue(notes.names[each]));
        if (found.reaches.back() == nullptr) return false;  // LLVM's reader replaces it while it reads the body
    }
    definition = std::move(found);
    return true;
}

void Definitions::add(NotedModule& module, const llvm::GlobalValue& value, const Definition& definition) {
    if (!has_lasting_name(value) ||
        !std::ranges::all_of(definition.reaches, [](const auto* each) { return has_lasting_name(*each); }))
        return;
    Notes& notes = module.notes;
    Notes::Entry noted{
        .body = module.body_of(value), .is_known = definition.is_known, .digest = definition.digest, .reaches = {}};
    for (const llvm::GlobalValue* each : definition.reaches)
        noted.reaches.push_back(notes.place_of(each->getName().str()));
    notes.definitions[notes.place_of(value.getName().str())] = std::move(noted);
}

Definitions::Notes::Index Definitions::Notes::place_of(const std::string& name) {
    const auto [at, is_new] = places.try_emplace(name, static_cast<Index>(names.size()));
    if (is_new) names.push_back(name);
    return at->second;
}

ByteBuffer Definitions::Notes::encode() const {
    Writer all;
    all.number(static_cast<Index>(names.size()));
    for (const std::string& each : names) all.text(each);
    for (const auto& [name, noted] : definitions) {
        all.number(name);
        all.bytes(std::as_bytes(std::span(noted.body.bytes)));
        all.number(static_cast<std::uint8_t>(noted.is_known));
        all.bytes(std::as_bytes(std::span(noted.digest.bytes)));
        all.number(static_cast<std::uint32_t>(noted.reaches.size()));
        for (const Index each : noted.reaches) all.number(each);
    }
    return all.take();
}

Definitions::Notes Definitions::Notes::decode(Bytes encoded) {
    Notes notes;
    Reader all(encoded);
    for (auto left = all.number<Index>(); left > 0 && all.ok(); --left) (void)notes.place_of(std::string(all.text()));
    const auto place = [&] {
        const auto read = all.number<Index>();
        if (read >= notes.names.size()) all.fail();
        return read;
    };
    while (all.ok() && !all.done()) {
        Entry& noted = notes.definitions[place()];
        noted.body = all.id<Digest>();
        noted.is_known = all.number<std::uint8_t>() != 0;
        noted.digest = all.id<Digest>();
        for (auto left = all.number<std::uint32_t>(); left > 0 && all.ok(); --left) noted.reaches.push_back(place());
    }
    return all.ok() ? std::move(notes) : Notes();
}

}  // namespace rove::bitcode
