#include "bitcode/package/objects.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include <string_view>

#include "bitcode/anchors.hpp"
#include "bitcode/emit.hpp"
#include "bitcode/values.hpp"

namespace rove::bitcode {
namespace {

// Precedes a function's name in objects: a function that the program calls like the C library's (an inline memcpy) is not the library's.
constexpr llvm::StringLiteral kPrefix = "rove.shared.";

// A module of one function. What the function reaches is declared there, except that constants whose addresses are not known elsewhere are
// copied.
class Unit final : llvm::ValueMaterializer {
public:
    explicit Unit(llvm::Function& function) : unit_("rove", function.getContext()) {
        const llvm::Module& from = *function.getParent();
        describe_as(unit_, from);
        auto* twin = llvm::cast<llvm::Function>(mapped(function));
        auto parameter = twin->arg_begin();
        for (const llvm::Argument& each : function.args()) map_[&each] = &*parameter++;
        llvm::SmallVector<llvm::ReturnInst*, 8> returns;
        llvm::CloneFunctionInto(twin, &function, map_, llvm::CloneFunctionChangeType::ClonedModule, returns, "",
                                nullptr, nullptr, this);
        // The code generator calls it by an existing declaration (reach_through_got()).
        if (const llvm::Function* const resume = from.getFunction("_Unwind_Resume");
            resume != nullptr && function.hasPersonalityFn())
            (void)mapped(*resume);
    }
    // Whether the function can have a separate object.
    [[nodiscard]] bool is_whole() const { return whole_; }
    [[nodiscard]] llvm::Module& module() { return unit_; }

private:
    llvm::Constant* mapped(const llvm::Constant& constant) {
        return llvm::MapValue(&constant, map_, llvm::RF_None, nullptr, this);
    }
    llvm::Value* materialize(llvm::Value* value) override {
        auto* const met = llvm::dyn_cast<llvm::GlobalValue>(value);
        if (met == nullptr || met->getParent() == &unit_) return nullptr;
        if (const auto* const function = llvm::dyn_cast<llvm::Function>(met)) {
            auto* const twin = llvm::Function::Create(function->getFunctionType(), llvm::GlobalValue::ExternalLinkage,
                                                      function->getAddressSpace(), function->getName(), &unit_);
            twin->copyAttributesFrom(function);
            // Removes what was copied with the attributes and belongs to the other module: a personality.
            twin->deleteBody();
            return map_[value] = twin;
        }
        const auto* const variable = llvm::dyn_cast<llvm::GlobalVariable>(met);
        if (variable == nullptr || (variable->hasLocalLinkage() && !variable->isConstant())) {
            whole_ = false;
            return map_[value] = llvm::PoisonValue::get(value->getType());
        }
        const bool own = variable->hasLocalLinkage();
        auto* const twin =
            new llvm::GlobalVariable(unit_, variable->getValueType(), variable->isConstant(),
                                     own ? llvm::GlobalValue::PrivateLinkage : llvm::GlobalValue::ExternalLinkage,
                                     nullptr, own ? llvm::StringRef() : variable->getName(), nullptr,
                                     variable->getThreadLocalMode(), variable->getAddressSpace());
        map_[value] = twin;
        twin->copyAttributesFrom(variable);
        if (own && variable->hasInitializer()) twin->setInitializer(mapped(*variable->getInitializer()));
        return twin;
    }

    llvm::Module unit_;
    llvm::ValueToValueMapTy map_;
    bool whole_ = true;
};

// Removes constants that only functions in other objects used. Declarations stay, unlike with GlobalDCE: the code generator looks for some.
void leave_out_unused_constants(llvm::Module& module) {
    for (llvm::GlobalVariable& variable : llvm::make_early_inc_range(module.globals())) {
        variable.removeDeadConstantUsers();
        if (variable.hasLocalLinkage() && variable.use_empty() && !variable.getName().starts_with("llvm."))
            variable.eraseFromParent();
    }
}

}  // namespace

Result<std::vector<std::shared_ptr<const SharedObject>>> take_out(llvm::Module& module, llvm::TargetMachine& machine,
                                                                  const std::vector<llvm::Function*>& functions,
                                                                  const std::string& diagnostics, SharedObjects& made) {
    std::vector<llvm::Function*> own;
    for (llvm::Function* function : functions)
        if (function->hasLocalLinkage() && !has_label_values(*function)) own.push_back(function);
    for (llvm::Function& function : module) {
        if (function.isDeclaration() || !function.hasLocalLinkage()) continue;
        function.setName(kPrefix + function.getName());
        make_hidden(function);
    }
    std::vector<std::shared_ptr<const SharedObject>> objects;
    for (llvm::Function* function : own) {
        Unit unit(*function);
        if (!unit.is_whole()) continue;
        const Digest made_of = digest_of_bitcode(unit.module());  // covers everything on which the object depends
        std::shared_ptr<const SharedObject> object = made.find(made_of);
        if (!object) {
            ROVE_TRY(ByteBuffer bytes, write_object(unit.module(), machine));
            // Otherwise another package that uses this object would not get the error.
            if (!diagnostics.empty()) return fail(ErrorCode::invalid, "{}", diagnostics);
            object = made.keep({.made_of = made_of, .object = std::move(bytes)});
        }
        objects.push_back(std::move(object));
        function->deleteBody();
        make_hidden(*function);
    }
    leave_out_unused_constants(module);
    return objects;
}

}  // namespace rove::bitcode
