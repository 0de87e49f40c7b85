#include "extraction/copy.hpp"

#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "bitcode/allocation.hpp"
#include "extraction/touched.hpp"

namespace rove::bitcode {

Result<llvm::Function*> Copy::take(llvm::Function& function) {
    auto* taken = llvm::cast<llvm::Function>(materialize(&function));
    // Bodies before values: a table of labels is a value that needs its function's body.
    while (!failed_ && !(bodies_.empty() && values_.empty())) {
        if (bodies_.empty()) {
            const llvm::GlobalValue* value = values_.front();
            values_.pop_front();
            copy_value(*value);
        } else {
            llvm::Function* body = bodies_.front();
            bodies_.pop_front();
            copy_body(*body);
        }
    }
    if (failed_) return tl::unexpected<Error>(*failed_);
    return taken;
}

std::vector<std::string> Copy::statics() const {
    std::vector<std::string> names;
    for (const auto& [source, twin] : twins_) {
        const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(source);
        if (variable == nullptr || variable->isDeclaration() || variable->isConstant() ||
            !is_touched(*llvm::cast<llvm::GlobalVariable>(twin)))
            continue;
        names.push_back(Modules::name_in_program(*variable));
    }
    return names;
}

llvm::Function* Copy::copy_of(const llvm::Function& function) const {
    const auto twin = twins_.find(&function);
    return twin != twins_.end() ? llvm::dyn_cast<llvm::Function>(twin->second) : nullptr;
}

// Makes the twin of a value that is met for the first time, still empty.
llvm::Value* Copy::materialize(llvm::Value* value) {
    auto* met = llvm::dyn_cast<llvm::GlobalValue>(value);
    if (met == nullptr || met->getParent() == &into_) return nullptr;
    const llvm::GlobalValue* source = met;
    if (const Result<const llvm::GlobalValue*> found = from_.definition_of(*met))
        source = *found;
    else
        failed_ = found.error();
    llvm::GlobalValue*& twin = twins_[source];
    if (twin == nullptr) twin = declare(*source);
    return map_[value] = twin;
}

llvm::GlobalValue* Copy::declare(const llvm::GlobalValue& source) {
    const llvm::StringRef name = source.getName();
    // A name that is known in one file only is changed.
    if (llvm::GlobalValue* other = into_.getNamedValue(name); other != nullptr && !name.empty()) {
        if (!source.hasLocalLinkage() && !other->hasLocalLinkage()) return other;
        if (!source.hasLocalLinkage()) other->setName(name + ".other");
    }
    const bool defined = !source.isDeclaration();
    if (replaces_allocation(source, from_.replaces_malloc())) {
        replaced_.push_back(llvm::demangle(name.str()));
        return declare_allocation(source, into_);
    }
    const auto linkage = source.getLinkage();
    const unsigned space = source.getAddressSpace();
    if (const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(&source)) {
        // The compiler numbers strings through a file, and a package must not depend on other functions of its file.
        const llvm::StringRef lasting = Modules::is_string(*variable) ? "" : name;
        auto* twin = new llvm::GlobalVariable(into_, source.getValueType(), variable->isConstant(), linkage, nullptr,
                                              lasting, nullptr, source.getThreadLocalMode(), space);
        twin->copyAttributesFrom(variable);
        if (defined) values_.push_back(&source);
        if (Modules::is_static_of_function(*variable)) of_functions_.insert(twin);
        return twin;
    }
    if (const auto* alias = llvm::dyn_cast<llvm::GlobalAlias>(&source)) {
        auto* twin = llvm::GlobalAlias::create(source.getValueType(), space, linkage, name, &into_);
        twin->copyAttributesFrom(alias);
        values_.push_back(&source);
        return twin;
    }
    // Code that reaches it does not travel (obstacle()), so its own code is not needed.
    if (llvm::isa<llvm::GlobalIFunc>(source))
        return llvm::GlobalIFunc::create(source.getValueType(), space, llvm::GlobalValue::ExternalLinkage, name,
                                         nullptr, &into_);
    const auto* function = llvm::cast<llvm::Function>(&source);
    if (const auto left = left_.find(function); left != left_.end()) return declare_left(*function, left->second);
    auto* twin = llvm::Function::Create(function->getFunctionType(), linkage, space, name, &into_);
    twin->copyAttributesFrom(function);
    if (defined) bodies_.push_back(const_cast<llvm::Function*>(function));  // its body is read now
    return twin;
}

llvm::Function* Copy::declare_left(const llvm::Function& source, const std::string& why) {
    auto* twin = llvm::Function::Create(source.getFunctionType(), source.getLinkage(), source.getAddressSpace(),
                                        source.getName(), &into_);
    llvm::IRBuilder<> code(llvm::BasicBlock::Create(into_.getContext(), "", twin));
    llvm::Type* const pointer = code.getPtrTy();
    const llvm::FunctionCallee fail =
        into_.getOrInsertFunction("rove_fail_as", code.getInt32Ty(), pointer, code.getInt32Ty(), pointer);
    code.CreateCall(fail, {twin->getArg(0), code.getInt32(static_cast<std::uint32_t>(ErrorCode::unsupported)),
                           code.CreateGlobalString(why)});
    code.CreateRetVoid();
    return twin;
}

void Copy::copy_body(llvm::Function& source) {
    if (Status read = from_.read_body(source); !read) {
        failed_ = std::move(read.error());
        return;
    }
    from_.simplify(source);
    auto* twin = llvm::cast<llvm::Function>(twins_[&source]);
    auto parameter = twin->arg_begin();
    for (const llvm::Argument& each : source.args()) {
        parameter->setName(each.getName());
        map_[&each] = &*parameter++;
    }
    llvm::SmallVector<llvm::ReturnInst*, 8> returns;
    llvm::CloneFunctionInto(twin, &source, map_, llvm::CloneFunctionChangeType::ClonedModule, returns, "", nullptr,
                            nullptr, this);
    if (source.hasPersonalityFn()) twin->setPersonalityFn(mapped(*source.getPersonalityFn()));
    copy_called(source);
    if (source.hasOptNone() && from_.is_unoptimised(*source.getParent())) {  // it is optimised before it travels
        twin->removeFnAttr(llvm::Attribute::OptimizeNone);
        twin->removeFnAttr(llvm::Attribute::NoInline);
    }
}

void Copy::copy_called(const llvm::Function& source) {
    for (const llvm::Instruction& each : llvm::instructions(source)) {
        const Result<const llvm::GlobalValue*> called = from_.called_for(each);
        if (!called) {
            failed_ = called.error();
            return;
        }
        if (*called == nullptr) continue;
        if (llvm::isa<llvm::MemIntrinsic>(each)) {
            if (leaves_memory_functions_) continue;
            has_memory_functions_ = true;
        }
        (void)mapped(**called);
    }
}

void Copy::copy_value(const llvm::GlobalValue& source) {
    llvm::GlobalValue* twin = twins_[&source];
    if (const auto* alias = llvm::dyn_cast<llvm::GlobalAlias>(&source))
        llvm::cast<llvm::GlobalAlias>(twin)->setAliasee(mapped(*alias->getAliasee()));
    else if (const auto* variable = llvm::cast<llvm::GlobalVariable>(&source); variable->hasInitializer()) {
        llvm::cast<llvm::GlobalVariable>(twin)->setInitializer(mapped(*variable->getInitializer()));
        copy_constructor(*variable);
    }
}

void Copy::copy_constructor(const llvm::GlobalVariable& variable) {
    if (from_.is_made_by_priority(variable)) made_by_priority_ = variable.getName().str();
    for (const Modules::Constructor& each : from_.constructors_of(variable))
        constructors_.push_back({.priority = each.priority,
                                 .making = each.making,
                                 .taken = llvm::cast<llvm::Function>(mapped(*each.function))});
}

// In the program's order: it runs the lists of its files in the order in which these are linked, each from its beginning.
void Copy::list_constructors() {
    std::ranges::sort(constructors_, {},
                      [](const Constructor& each) { return std::tuple(each.priority, each.making); });
    for (const Constructor& each : constructors_)
        llvm::appendToGlobalCtors(into_, each.taken, static_cast<int>(each.priority));
    constructors_.clear();
}

}  // namespace rove::bitcode
