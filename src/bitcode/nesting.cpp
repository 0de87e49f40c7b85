#include "bitcode/nesting.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Bitcode/LLVMBitCodes.h>
#include <llvm/Bitstream/BitstreamReader.h>
#include <llvm/IR/Attributes.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rove::bitcode {
namespace {

constexpr std::size_t kTooDeep = kNestingMax + 1, kOpen = kTooDeep;

// How deep the parts of a thing nest, 0 for none; kTooDeep or more: too deep, or it contains itself. `known` is kept between calls.
template <typename Thing, typename PartsOf>
std::size_t nesting_of(Thing outermost, const PartsOf& parts_of, llvm::DenseMap<Thing, std::size_t>& known) {
    struct Step {
        Thing thing;
        llvm::SmallVector<Thing, 4> parts;
        std::size_t next = 0, nesting = 0;
    };
    std::vector<Step> steps;
    std::size_t last = 0;  // index of the last part visited
    const auto look_at = [&](Thing thing) {
        const auto [at, is_new] = known.try_emplace(thing, kOpen);
        if (is_new) steps.push_back({thing, parts_of(thing)});
        last = at->second;
        return is_new;
    };
    if (!look_at(outermost)) return last;
    while (steps.size() <= kNestingMax) {
        Step& step = steps.back();
        if (step.next < step.parts.size()) {
            const std::size_t number = steps.size() - 1;
            if (look_at(step.parts[step.next++])) continue;
            if (last >= kTooDeep) return kTooDeep;
            steps[number].nesting = std::max(steps[number].nesting, last + 1);
            continue;
        }
        const std::size_t nesting = step.nesting;
        known[step.thing] = nesting;
        steps.pop_back();
        if (steps.empty()) return nesting;
        steps.back().nesting = std::max(steps.back().nesting, nesting + 1);
    }
    return kTooDeep;
}

tl::unexpected<Error> too_deep(const std::string& name, const char* what) {
    return fail(ErrorCode::invalid, "{}: its bitcode has {} that nest more than {} deep", name, what, kNestingMax);
}

tl::unexpected<Error> no_bitcode(const std::string& name, llvm::Error why) {
    return fail(ErrorCode::invalid, "{}: not bitcode: {}", name, llvm::toString(std::move(why)));
}

using Types = llvm::SmallVector<unsigned, 4>;

// The types that a type's record names. Pointers name none that count, because LLVM no longer records what they point to.
Types types_in(unsigned code, llvm::ArrayRef<std::uint64_t> record) {
    std::size_t first = record.size();
    switch (code) {
        case llvm::bitc::TYPE_CODE_ARRAY:
        case llvm::bitc::TYPE_CODE_VECTOR:
        case llvm::bitc::TYPE_CODE_STRUCT_ANON:
        case llvm::bitc::TYPE_CODE_STRUCT_NAMED:
        case llvm::bitc::TYPE_CODE_FUNCTION:
        case llvm::bitc::TYPE_CODE_TARGET_TYPE: first = 1; break;
        case llvm::bitc::TYPE_CODE_FUNCTION_OLD: first = 2; break;
        default: break;
    }
    Types types;
    for (const std::uint64_t type : record.drop_front(std::min(first, record.size())))
        types.push_back(static_cast<unsigned>(std::min<std::uint64_t>(type, 1U << 31)));
    return types;
}

// Reads a file's blocks as LLVM's reader does, and keeps what counts.
class Scan {
public:
    Scan(Bytes bitcode, const std::string& name, bool of_peer) : name_(name), of_peer_(of_peer), end_(bitcode.size()) {
        const auto* begin = reinterpret_cast<const unsigned char*>(bitcode.data());
        const auto* end = begin + bitcode.size();
        if (llvm::isBitcodeWrapper(begin, end) && llvm::SkipBitcodeWrapperHeader(begin, end, true)) begin = end;
        end_ = static_cast<std::size_t>(end - begin);
        stream_ = llvm::BitstreamCursor(llvm::ArrayRef<std::uint8_t>(begin, end));
        stream_.setBlockInfo(&info_);
    }

    Status run() {
        if (end_ < 4) return fail(ErrorCode::invalid, "{}: not bitcode: it has {} bytes", name_, end_);
        if (llvm::Error failed = stream_.JumpToBit(32))
            return no_bitcode(name_, std::move(failed));  // the magic number
        // LLVM ignores less than 8 bytes at the end, too.
        while (!blocks_.empty() || stream_.getCurrentByteNo() + 8 < end_) {
            llvm::Expected<llvm::BitstreamEntry> entry = stream_.advance();
            if (!entry) return no_bitcode(name_, entry.takeError());
            switch (entry->Kind) {
                case llvm::BitstreamEntry::SubBlock: ROVE_CHECK(enter(entry->ID)); break;
                case llvm::BitstreamEntry::EndBlock: ROVE_CHECK(leave()); break;
                case llvm::BitstreamEntry::Record: ROVE_CHECK(take(entry->ID)); break;
                case llvm::BitstreamEntry::Error:
                    return fail(ErrorCode::invalid, "{}: not bitcode: malformed block", name_);
            }
        }
        return {};
    }

private:
    Status enter(unsigned block) {
        if (block == llvm::bitc::BLOCKINFO_BLOCK_ID && !blocks_.empty()) {
            llvm::Expected<std::optional<llvm::BitstreamBlockInfo>> info = stream_.ReadBlockInfoBlock();
            if (!info) return no_bitcode(name_, info.takeError());
            if (!*info) return fail(ErrorCode::invalid, "{}: not bitcode: malformed block", name_);
            info_ = std::move(**info);
            return {};
        }
        if (block != llvm::bitc::MODULE_BLOCK_ID && block != llvm::bitc::FUNCTION_BLOCK_ID &&
            block != llvm::bitc::TYPE_BLOCK_ID_NEW && block != llvm::bitc::METADATA_BLOCK_ID &&
            block != llvm::bitc::PARAMATTR_GROUP_BLOCK_ID && block != llvm::bitc::PARAMATTR_BLOCK_ID) {
            if (llvm::Error failed = stream_.SkipBlock()) return no_bitcode(name_, std::move(failed));
            return {};
        }
        if (llvm::Error failed = stream_.EnterSubBlock(block)) return no_bitcode(name_, std::move(failed));
        blocks_.push_back(block);
        return {};
    }

    Status leave() {
        if (blocks_.empty()) return fail(ErrorCode::invalid, "{}: not bitcode: malformed block", name_);
        const bool of_types = blocks_.back() == llvm::bitc::TYPE_BLOCK_ID_NEW;
        blocks_.pop_back();
        if (!of_types) return {};
        llvm::DenseMap<unsigned, std::size_t> known;
        for (unsigned type = 0; type < types_.size(); ++type)
            if (nesting_of(type, [this](unsigned of) { return parts_of(of); }, known) >= kTooDeep)
                return too_deep(name_, "types");
        types_.clear();
        return {};
    }
    // LLVM's reader refuses types that name one that does not exist.
    [[nodiscard]] Types parts_of(unsigned type) const {
        Types parts;
        for (const unsigned part : types_[type])
            if (part < types_.size()) parts.push_back(part);
        return parts;
    }

    Status take(unsigned abbreviation) {
        const unsigned block = blocks_.empty() ? 0 : blocks_.back();
        if (block == llvm::bitc::METADATA_BLOCK_ID && of_peer_ && ++metadata_ > kMetadataMax)
            return fail(ErrorCode::invalid,
                        "{}: its bitcode has more than {} pieces of metadata; leave out debug information", name_,
                        kMetadataMax);
        if (block == llvm::bitc::PARAMATTR_GROUP_BLOCK_ID) return take_attributes(abbreviation);
        if (block != llvm::bitc::TYPE_BLOCK_ID_NEW) {
            llvm::Expected<unsigned> code = stream_.skipRecord(abbreviation);
            if (!code) return no_bitcode(name_, code.takeError());
            // These name parameters themselves, by any number. LLVM has not written them since 3.2, and the reader trusts them.
            if (block == llvm::bitc::PARAMATTR_BLOCK_ID && *code == llvm::bitc::PARAMATTR_CODE_ENTRY_OLD)
                return fail(ErrorCode::invalid, "{}: its bitcode lists attributes as LLVM did before 3.3", name_);
            return {};
        }
        llvm::SmallVector<std::uint64_t, 64> record;
        llvm::Expected<unsigned> code = stream_.readRecord(abbreviation, record);
        if (!code) return no_bitcode(name_, code.takeError());
        if (*code != llvm::bitc::TYPE_CODE_NUMENTRY && *code != llvm::bitc::TYPE_CODE_STRUCT_NAME)
            types_.push_back(types_in(*code, record));
        return {};
    }

    // A group of attributes belongs to a parameter, the result or the function. LLVM's reader allocates as many places as the group's number.
    Status take_attributes(unsigned abbreviation) {
        llvm::SmallVector<std::uint64_t, 64> record;
        llvm::Expected<unsigned> code = stream_.readRecord(abbreviation, record);
        if (!code) return no_bitcode(name_, code.takeError());
        if (*code != llvm::bitc::PARAMATTR_GRP_CODE_ENTRY || record.size() < 2) return {};
        const auto of = static_cast<std::uint32_t>(record[1]);
        if (of <= kParametersMax || of == llvm::AttributeList::FunctionIndex) return {};
        return fail(ErrorCode::invalid, "{}: its bitcode has attributes of a parameter number {}; {} is the most",
                    name_, of, kParametersMax);
    }

    const std::string& name_;
    const bool of_peer_;
    std::size_t end_;  // position in bytes
    llvm::BitstreamBlockInfo info_;
    llvm::BitstreamCursor stream_;
    std::vector<unsigned> blocks_;  // blocks that are open
    std::vector<Types> types_;      // by number: the types that it holds
    std::size_t metadata_ = 0;
};

// Variables and functions end the nesting: an address of another one within them adds no depth. An alias counts as its object.
bool may_nest(const llvm::Value* value) {
    const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
    return constant != nullptr && constant->getNumOperands() > 0 && !llvm::isa<llvm::GlobalObject>(constant);
}

llvm::SmallVector<const llvm::Constant*, 4> constants_in(const llvm::Constant* constant) {
    llvm::SmallVector<const llvm::Constant*, 4> parts;
    for (const llvm::Use& use : constant->operands())
        if (may_nest(use.get())) parts.push_back(llvm::cast<llvm::Constant>(use.get()));
    return parts;
}

// Whether one has more than kConstantPartsMax parts. `nesting`: of all constants, none of which contains itself.
bool has_too_many_parts(const llvm::DenseMap<const llvm::Constant*, std::size_t>& nesting) {
    std::vector<std::pair<std::size_t, const llvm::Constant*>> inner_first;
    for (const auto& [constant, depth] : nesting) inner_first.emplace_back(depth, constant);
    std::ranges::sort(inner_first);
    llvm::DenseMap<const llvm::Constant*, std::size_t> parts;
    for (const auto& [depth, constant] : inner_first) {
        std::size_t count = 1;
        for (const llvm::Constant* part : constants_in(constant)) {
            count += parts.lookup(part);
            if (count > kConstantPartsMax) return true;
        }
        parts[constant] = count;
    }
    return false;
}

// Reverse post-order, so that a block follows its predecessors, except along a loop's back edge; unreachable blocks last.
std::vector<const llvm::BasicBlock*> blocks_of(const llvm::Function& function) {
    const llvm::ReversePostOrderTraversal<const llvm::Function*> order(&function);
    std::vector<const llvm::BasicBlock*> blocks(order.begin(), order.end());
    const llvm::SmallPtrSet<const llvm::BasicBlock*, 32> reached(blocks.begin(), blocks.end());
    for (const llvm::BasicBlock& block : function)
        if (!reached.contains(&block)) blocks.push_back(&block);
    return blocks;
}

// Whether a chain of operands, each the result of the next, is longer than kChainMax, across blocks. A loop's back edge is not followed; if
// LLVM follows it and exhausts its stack, the guard handles the fault.
bool has_long_chain(const llvm::Function& function) {
    if (function.getInstructionCount() <= kChainMax) return false;
    llvm::DenseMap<const llvm::Value*, std::size_t> chain_length;
    for (const llvm::BasicBlock* block : blocks_of(function))
        for (const llvm::Instruction& each : *block) {
            std::size_t longest = 0;
            for (const llvm::Use& use : each.operands())
                if (const auto before = chain_length.find(use.get()); before != chain_length.end())
                    longest = std::max(longest, before->second);
            if (longest >= kChainMax) return true;
            chain_length[&each] = longest + 1;
        }
    return false;
}

// Whether more than kLoopsNestedMax loops are nested. LLVM's LoopInfo would determine that as well, but with memory by the square of their
// number.
class Loops {
public:
    explicit Loops(const llvm::Function& function) : dominators_(const_cast<llvm::Function&>(function)) {}

    bool nest_too_deep() {
        dominators_.updateDFSNumbers();
        // Inner ones before the outer ones.
        for (const llvm::DomTreeNode* node : llvm::post_order(dominators_.getRootNode()))
            if (find(*node->getBlock()) > kLoopsNestedMax) return true;
        return false;
    }

private:
    struct Loop {
        const llvm::BasicBlock* around = nullptr;  // the head of the loop around it
        std::size_t nesting = 1;
    };

    // How deep the loop with that head nests; 0: no loop.
    std::size_t find(const llvm::BasicBlock& head) {
        std::vector<const llvm::BasicBlock*> unseen;
        for (const llvm::BasicBlock* before : llvm::predecessors(&head))
            if (dominators_.isReachableFromEntry(before) && dominators_.dominates(&head, before))
                unseen.push_back(before);
        if (unseen.empty()) return 0;
        Loop& loop = loops_[&head];
        while (!unseen.empty()) {
            const llvm::BasicBlock* block = unseen.back();
            unseen.pop_back();
            if (!dominators_.isReachableFromEntry(block)) continue;
            const auto [innermost, is_new] = innermost_.try_emplace(block, &head);
            if (!is_new) {
                const llvm::BasicBlock* outermost = innermost->second;
                while (const llvm::BasicBlock* around = loops_[outermost].around) outermost = around;
                if (outermost == &head) continue;
                Loop& within = loops_[outermost];
                within.around = &head;
                loop.nesting = std::max(loop.nesting, within.nesting + 1);
                if (loop.nesting > kLoopsNestedMax) break;
                block = outermost;
            }
            if (block == &head) continue;
            for (const llvm::BasicBlock* before : llvm::predecessors(block)) unseen.push_back(before);
        }
        return loop.nesting;
    }

    llvm::DominatorTree dominators_;
    std::unordered_map<const llvm::BasicBlock*, Loop> loops_;                         // by head
    std::unordered_map<const llvm::BasicBlock*, const llvm::BasicBlock*> innermost_;  // by block: the head of its loop
};

}  // namespace

Status check_nesting(Bytes bitcode, const std::string& name, bool of_peer) {
    return Scan(bitcode, name, of_peer).run();
}

Status check_nesting(const llvm::Module& module, const std::string& name) {
    llvm::DenseMap<const llvm::Constant*, std::size_t> known;
    const auto fits = [&known](const llvm::User& user) {
        return std::all_of(user.op_begin(), user.op_end(), [&known](const llvm::Use& use) {
            const llvm::Value* part = use.get();
            return !may_nest(part) || nesting_of(llvm::cast<llvm::Constant>(part), constants_in, known) < kTooDeep;
        });
    };
    for (const llvm::GlobalValue& value : module.global_values())
        if (!fits(value)) return too_deep(name, "constants");
    for (const llvm::Function& function : module) {
        for (const llvm::BasicBlock& block : function)
            for (const llvm::Instruction& each : block)
                if (!fits(each)) return too_deep(name, "constants");
        if (has_long_chain(function))
            return fail(ErrorCode::invalid,
                        "{}: its bitcode has more than {} instructions that wait for one another in one function", name,
                        kChainMax);
        if (function.size() > kLoopsNestedMax && Loops(function).nest_too_deep())
            return fail(ErrorCode::invalid, "{}: its bitcode has loops that nest more than {} deep", name,
                        kLoopsNestedMax);
    }
    if (has_too_many_parts(known))
        return fail(ErrorCode::invalid,
                    "{}: its bitcode has a constant with more than {} parts, each counted as often as it is used", name,
                    kConstantPartsMax);
    return {};
}

}  // namespace rove::bitcode
