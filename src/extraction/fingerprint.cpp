#include "extraction/fingerprint.hpp"

#include <llvm/IR/Constants.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "bitcode/allocation.hpp"
#include "package/digest.hpp"

namespace rove::bitcode {
namespace {

std::string_view as_text(const Digest& digest) {
    return rove::as_text(std::as_bytes(std::span(digest.bytes)));
}

// Identifies a value of the program.
std::string name_of(const llvm::GlobalValue& value) {
    return value.getName().str() + "@" + value.getParent()->getModuleIdentifier();
}

}  // namespace

Result<std::optional<Digest>> Fingerprints::of(const std::vector<const llvm::Function*>& functions) {
    if (program_.defines_of_library()) return std::nullopt;
    std::string all = program_.replaces_malloc() ? "its own malloc\n" : "";
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
        if (!definitions_[next] && is_closed_) return std::nullopt;
        if (!definitions_[next]) ROVE_CHECK(define(next));
        const Definition& definition = *definitions_[next];
        if (!definition.is_known) return std::nullopt;
        reached.push_back(definition.digest);
        rest.insert(rest.end(), definition.reaches.begin(), definition.reaches.end());
    }
    std::ranges::sort(reached);
    for (const Digest& each : reached) all += as_text(each);
    return digest_of({all});
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
    std::string facts = facts_of(value);
    Definition definition;
    // Copy does not copy it, and so must SharedCode not, which inlines functions that have been read.
    if (replaces_allocation(value, program_.replaces_malloc())) {
        facts += "stays\n";
        definition.digest = Definitions::declaration_of(value);
    } else {
        ROVE_TRY(Definitions::Definition own, written_.of(value));
        definition.is_known = own.is_known;
        definition.digest = own.digest;
        if (const auto* const variable = llvm::dyn_cast<llvm::GlobalVariable>(&value))
            for (const Modules::Constructor& each : program_.constructors_of(*variable))
                own.reaches.push_back(llvm::cast<llvm::Function>(each.function));
        for (const llvm::GlobalValue* each : own.reaches) {
            ROVE_TRY(definition.reaches.emplace_back(), index_of(*each));
            facts += name_of(*values_[definition.reaches.back()]) + '\n';
        }
    }
    definition.digest =
        digest_of({name_of(value), facts, as_text(definition.digest), as_text(written_.of_module(*value.getParent()))});
    definitions_[index] = std::move(definition);
    return {};
}

// What Copy determines about the value from its module, in addition to its definition.
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

}  // namespace rove::bitcode
