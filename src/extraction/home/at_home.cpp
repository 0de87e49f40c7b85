#include "extraction/home/at_home.hpp"

#include "extraction/home/constness.hpp"
#include "extraction/home/follow.hpp"
#include "extraction/home/own_code.hpp"

namespace rove::bitcode {

Result<std::set<std::string>> changed_at_home(Modules& program, const std::set<std::string>& statics,
                                              const std::function<bool(const llvm::Function&)>& is_sent) {
    std::set<std::string> changed;
    if (statics.empty()) return changed;
    OwnCode own(program, statics, is_sent);
    ROVE_CHECK(own.read());
    Constness constness;
    for (const auto& [met, definition] : own.definitions()) {
        const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(definition);
        // Every thread has its own in the program, too.
        if (variable == nullptr || variable->isThreadLocal()) continue;
        const std::string name = Modules::name_in_program(*variable);
        if (!statics.contains(name) || changed.contains(name)) continue;
        Making making(*variable);
        if (Follow(own, making, constness).is_changed(*met)) changed.insert(name);
    }
    return changed;
}

}  // namespace rove::bitcode
