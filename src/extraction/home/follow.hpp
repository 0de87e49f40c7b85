// Follows the pointers to a static through a program's own code, to find a write through one of them.
#pragma once

#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "extraction/home/constness.hpp"
#include "extraction/home/own_code.hpp"

namespace rove::bitcode {

// Follows a pointer, and those that are read through it, through the program's own code; also in the places where they are kept: a local
// variable, or an iterator in one, whose address is passed on.
//
// The code is not optimised. So each parameter is stored into a local variable and loaded from there, and an iterator's operator is a call. One
// such function serves all iterators of its type. Therefore each state includes the calls that led to it, and what a function returns is
// followed to the last of them only.
//
// In a function that has received a pointer to const, and those that it calls, only a write that is seen is a change. Elsewhere a use that
// cannot be followed counts as a change, too.
//
// Threads: one at a time. Invariants: one object answers one question, because it follows no state twice. It errs on one side only: `false`
// means that no write was found and, outside of const, that every use was followed.
class Follow {
public:
    Follow(const OwnCode& own, Making& making, Constness& constness)
        : own_(own), making_(making), constness_(constness) {}

    [[nodiscard]] bool is_changed(const llvm::Value& pointer);

private:
    // What a pointer points to: the static's memory; a place where such a pointer is kept; a place where the address of one is kept; …
    using Level = unsigned;
    static constexpr Level kInto = 0, kLevelMax = 5;
    // The calls that led into a function, the last of them here; kAnyCall: it began in this function, or got there by a return.
    struct Entered {
        std::size_t from;  // how its caller was entered
        const llvm::CallBase* call;
        bool is_const;  // a pointer to const was passed, here or in a caller
        unsigned depth;
    };
    using Context = std::size_t;  // an index of entered_
    static constexpr Context kAnyCall = 0;
    static constexpr unsigned kDepthMax = 24;          // std::sort is 10 calls deep
    static constexpr std::size_t kStatesMax = 50'000;  // some 50 ms; programs here have at most some 1,000

    // Each of these is true if there is a change, or there may be one.
    bool follow(const llvm::Value& pointer, Level level, Context context);
    bool follow_result(const llvm::Value& result, Level level, Context context);
    bool follow_read(const llvm::Value& read, Level level, Context context);
    bool keep(const llvm::Value& place, Level level, Context context);
    bool follow_kept_in(const llvm::GlobalVariable& variable, Level level);
    bool keep_in_callers(const llvm::Argument& parameter, Level level, Context context);
    bool give_back(const llvm::Function& function, Level level, Context context);
    bool changes(const llvm::Use& use, Level level, Context context);
    bool changes(const llvm::StoreInst& store, const llvm::Use& use, Level level, Context context);
    bool changes(const llvm::AnyMemTransferInst& copy, const llvm::Use& use, Level level, Context context);
    bool changes(const llvm::CallBase& call, const llvm::Use& use, Level level, Context context);
    bool enter(const llvm::Function& callee, const llvm::CallBase& call, unsigned argument, Level level,
               Context context);

    // Whether a use that cannot be followed counts as a change.
    [[nodiscard]] bool unknown(Context context) const { return !entered_[context].is_const; }
    // Visits the calls in all of the program's own code.
    template <typename Does>
    bool for_each_call(const llvm::Function& function, Does does);
    [[nodiscard]] const llvm::Function* callee_of(const llvm::CallBase& call) const;
    [[nodiscard]] bool is_seen(const llvm::Function& callee) const { return own_.has(callee) && !callee.empty(); }
    [[nodiscard]] const llvm::Value& base_of(const llvm::Value& place) const;
    [[nodiscard]] const llvm::Value* argument_returned(const llvm::CallBase& call, unsigned more) const;
    [[nodiscard]] const llvm::Value& base_of(const llvm::Value& place, unsigned more) const;

    struct State {
        const llvm::Value* pointer;
        Level level;
        Context context;
        friend auto operator<=>(const State&, const State&) = default;
    };
    const OwnCode& own_;
    Making& making_;
    Constness& constness_;
    std::vector<Entered> entered_{{kAnyCall, nullptr, false, 0}};
    std::map<std::tuple<Context, const llvm::CallBase*, bool>, Context> contexts_;
    std::set<State> seen_, kept_;
    std::vector<State> unseen_;
};

}  // namespace rove::bitcode
