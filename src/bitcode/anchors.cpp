#include "bitcode/anchors.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "bitcode/values.hpp"
#include "wire/image.hpp"

namespace rove::bitcode {
namespace {

// The prefix of the name that a function's address in the image has in a module with its own code for the function.
constexpr llvm::StringRef kAddressPrefix = "rove.address.";

// Whether a use takes the address. as_its_user: the uses of its user decide (address arithmetic, a part of an aggregate).
enum class Takes : std::uint8_t { yes, no, as_its_user };

// Each user is visited once, however many ways lead to it: constants are shared, and may be made of one another.
template <typename Look>
bool any_use(const llvm::User& user, const Look& look) {
    std::set<const llvm::User*> seen{&user};
    std::vector<const llvm::User*> rest{&user};
    while (!rest.empty()) {
        const llvm::User* const next = rest.back();
        rest.pop_back();
        for (const llvm::Use& use : next->uses()) {
            const Takes takes = look(use);
            if (takes == Takes::yes) return true;
            if (takes == Takes::as_its_user && seen.insert(use.getUser()).second) rest.push_back(use.getUser());
        }
    }
    return false;
}

template <typename Look>
bool is_taken(const llvm::Use& use, const Look& look) {
    const Takes takes = look(use);
    return takes == Takes::yes || (takes == Takes::as_its_user && any_use(*use.getUser(), look));
}

Takes taken_if(bool yes) {
    return yes ? Takes::yes : Takes::no;
}

// Any use but a call. Its further use is not followed: it may be compared in the next function, or the next call.
Takes look_at_function(const llvm::Use& use) {
    const llvm::User* user = use.getUser();
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(user)) return taken_if(!call->isCallee(&use));
    if (llvm::isa<llvm::Instruction>(user)) return Takes::yes;
    // A personality routine, a label of the function, or its second name, whose own uses name_anchors has made uses of the function.
    if (llvm::isa<llvm::Function, llvm::BlockAddress, llvm::GlobalAlias>(user)) return Takes::no;
    if (const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(user))
        return taken_if(!variable->getName().starts_with("llvm."));
    return Takes::as_its_user;
}

bool takes_function_address(const llvm::Use& use) {
    return is_taken(use, look_at_function);
}

// Any use but reading the value, by the code itself or by a callee that declares that it does not keep (or compare) the pointer.
Takes look_at_constant(const llvm::Use& use) {
    const llvm::User* user = use.getUser();
    if (llvm::isa<llvm::LoadInst>(user)) return Takes::no;
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(user))
        return taken_if(!call->isArgOperand(&use) || !call->doesNotCapture(call->getArgOperandNo(&use)));
    if (llvm::isa<llvm::Instruction>(user) && !llvm::isa<llvm::GetElementPtrInst>(user)) return Takes::yes;
    if (const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(user))
        return taken_if(!variable->getName().starts_with("llvm."));
    return Takes::as_its_user;
}

bool is_constant(const llvm::GlobalVariable& variable) {
    return !variable.isDeclaration() && variable.isConstant() && !variable.isThreadLocal() &&
           !variable.getName().starts_with("llvm.");
}

// Everything that contains the address of a label: functions, variables, and the constants between them. Not only the label's own function:
// the optimiser moves values read from a table of labels, or the difference of two, into its callers.
using LabelHolders = std::set<const llvm::Value*>;

void add_holders(const llvm::Value& of, LabelHolders& holders) {
    for (const llvm::User* user : of.users()) {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(user);
        const llvm::Value* holder = instruction != nullptr ? instruction->getFunction() : user;
        if (holders.insert(holder).second && !llvm::isa<llvm::GlobalValue>(holder)) add_holders(*holder, holders);
    }
}

LabelHolders label_holders(const llvm::Module& module) {
    LabelHolders holders;
    for (const llvm::Function& function : module) {
        if (!has_label_values(function)) continue;
        holders.insert(&function);
        for (const llvm::BasicBlock& block : function)
            if (const llvm::BlockAddress* label = llvm::BlockAddress::lookup(&block)) add_holders(*label, holders);
    }
    return holders;
}

// Gives the value a name by which the linker finds it in both forms.
void name(llvm::GlobalValue& value, std::size_t number) {
    value.setName(std::string(wire::kAnchorPrefix) + std::to_string(number));
    make_hidden(value);
}

// Prepares a declaration whose definition may be at any distance in memory.
void make_far(llvm::GlobalObject& object) {
    object.setLinkage(llvm::GlobalValue::ExternalLinkage);
    object.setVisibility(llvm::GlobalValue::DefaultVisibility);
    object.setDSOLocal(false);
    object.setComdat(nullptr);
    object.setSection("");
    if (auto* function = llvm::dyn_cast<llvm::Function>(&object)) function->addFnAttr(llvm::Attribute::NonLazyBind);
}

// Definitions that other code may know by their names, so the image must know them, too.
bool is_known(const llvm::GlobalValue& value) {
    return !value.isDeclaration() && !value.hasLocalLinkage() && !value.isThreadLocal();
}

// If a function runs the image's code, its labels are in the image, and all variables that hold such labels must be the image's as well,
// because LLVM gives a label of a function without a body the address 1.
template <typename Test>
Status check_labels(const llvm::Module& module, const LabelHolders& holders, const Test& is_there) {
    const auto borrows = [&](const llvm::Function& each) { return holders.contains(&each) && is_there(each); };
    const auto lacks = [&](const llvm::GlobalObject& each) {
        return holders.contains(&each) && !each.isDeclaration() && !is_there(each);
    };
    const auto objects = module.global_objects();
    const auto lacking = std::find_if(objects.begin(), objects.end(), lacks);
    if (lacking == objects.end() || std::none_of(module.begin(), module.end(), borrows)) return {};
    return fail(ErrorCode::failed,
                "it has labels whose addresses '{}' holds, which its image has no name for; build it with this Rove",
                lacking->getName().str());
}

}  // namespace

bool has_label_values(const llvm::Function& function) {
    return std::any_of(function.begin(), function.end(),
                       [](const llvm::BasicBlock& block) { return block.hasAddressTaken(); });
}

void name_anchors(llvm::Module& module) {
    for (llvm::GlobalAlias& alias : module.aliases())
        if (auto* function = llvm::dyn_cast<llvm::Function>(alias.getAliasee()->stripPointerCasts()))
            alias.replaceUsesWithIf(function, takes_function_address);
    const LabelHolders holders = label_holders(module);
    std::size_t anchors = 0;
    for (llvm::Function& function : module)
        if (!function.isDeclaration() && function.hasLocalLinkage() &&
            (holders.contains(&function) || any_use(function, look_at_function)))
            name(function, anchors++);
    for (llvm::GlobalVariable& variable : module.globals())
        if (is_constant(variable) && variable.hasLocalLinkage() &&
            (holders.contains(&variable) || any_use(variable, look_at_constant)))
            name(variable, anchors++);
}

Status borrow_from_image(llvm::Module& module, const std::set<std::string_view>& in_image) {
    const auto is_there = [&in_image](const llvm::GlobalValue& value) {
        return is_known(value) && in_image.contains(value.getName());
    };
    const LabelHolders holders = label_holders(module);
    ROVE_CHECK(check_labels(module, holders, is_there));
    for (llvm::GlobalVariable& variable : module.globals()) {
        if (!is_there(variable)) continue;
        variable.setInitializer(nullptr);
        make_far(variable);
    }
    std::vector<llvm::Function*> functions;  // functions added at the end of the module by this are not among them
    for (llvm::Function& function : module)
        if (is_there(function)) functions.push_back(&function);
    for (llvm::Function* function : functions) {
        if (holders.contains(function)) {
            function->deleteBody();
            make_far(*function);
        } else if (any_use(*function, look_at_function)) {
            llvm::Function* address =
                llvm::Function::Create(function->getFunctionType(), llvm::GlobalValue::ExternalLinkage,
                                       kAddressPrefix + function->getName(), module);
            function->replaceUsesWithIf(address, takes_function_address);
        }
    }
    return {};
}

void* find_borrowed(std::string_view name, const NamesInImage& in_image) {
    llvm::StringRef of = name;
    (void)of.consume_front(kAddressPrefix);
    const auto found = in_image.find(std::string(of));
    return found != in_image.end() ? found->second : nullptr;
}

}  // namespace rove::bitcode
