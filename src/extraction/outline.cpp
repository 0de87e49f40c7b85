#include "extraction/outline.hpp"

#include <llvm/Bitcode/LLVMBitCodes.h>
#include <llvm/Bitstream/BitstreamReader.h>
#include <llvm/Support/MathExtras.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "package/digest.hpp"

namespace rove::bitcode {
namespace {

// Whether an Expected has a value. Drops its error: LLVM's reader will report the error in the bitcode.
template <typename T>
bool has(llvm::Expected<T>& value) {
    if (value) return true;
    llvm::consumeError(value.takeError());
    return false;
}

class Outliner {
public:
    explicit Outliner(std::string_view module) : module_(module), at_(llvm::StringRef(module.data(), module.size())) {}

    std::optional<Outline> outline() {
        constexpr std::uint64_t kMagicBits = 32;
        if (!at_.canSkipToPos(kMagicBits / 8) || llvm::errorToBool(at_.JumpToBit(kMagicBits))) return std::nullopt;
        // Without a table of names these would contain the positions of bodies.
        if (!read(false) || !has_names_) return std::nullopt;
        outline_.surroundings = digest_of({rest_});
        return std::move(outline_);
    }

private:
    // Up to the end of the module, or of the bytes.
    bool read(bool in_module) {
        while (in_module || !at_.AtEndOfStream()) {
            llvm::Expected<llvm::BitstreamEntry> entry = at_.advance();
            if (!has(entry)) return false;
            switch (entry->Kind) {
                case llvm::BitstreamEntry::Error: return false;
                case llvm::BitstreamEntry::EndBlock: return in_module;
                case llvm::BitstreamEntry::Record:
                    if (!read_record(entry->ID)) return false;
                    break;
                case llvm::BitstreamEntry::SubBlock:
                    if (!read_block(entry->ID, in_module)) return false;
                    break;
            }
        }
        return true;
    }
    bool read_block(unsigned id, bool in_module) {
        if (id == llvm::bitc::MODULE_BLOCK_ID && !in_module)
            return !llvm::errorToBool(at_.EnterSubBlock(id)) && read(true);
        llvm::BitstreamCursor ahead = at_;
        llvm::Expected<std::uint32_t> width = ahead.ReadVBR(llvm::bitc::CodeLenWidth);
        if (!has(width)) return false;
        // Its length is in the next whole word.
        const std::uint64_t begin = llvm::alignTo(ahead.GetCurrentBitNo(), 32) / 8 + sizeof(std::uint32_t);
        if (llvm::errorToBool(at_.SkipBlock())) return false;
        const std::uint64_t end = at_.GetCurrentBitNo() / 8;
        if (begin > end || end > module_.size()) return false;
        const std::string_view block = module_.substr(begin, end - begin);
        const std::string head = std::to_string(id) + ' ' + std::to_string(*width) + '\n';
        has_names_ = has_names_ || id == llvm::bitc::STRTAB_BLOCK_ID;
        if (in_module && id == llvm::bitc::FUNCTION_BLOCK_ID)
            outline_.bodies.push_back(digest_of({head, block}));
        else if (!in_module || id != llvm::bitc::VALUE_SYMTAB_BLOCK_ID)  // which contains the positions of bodies
            note(head), note(block);
        return true;
    }
    bool read_record(unsigned id) {
        llvm::SmallVector<std::uint64_t, 64> values;
        llvm::StringRef blob;
        llvm::Expected<unsigned> code = at_.readRecord(id, values, &blob);
        if (!has(code)) return false;
        if (*code == llvm::bitc::MODULE_CODE_VSTOFFSET) return true;  // also a position
        note(std::to_string(*code));
        note({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::uint64_t)});
        note({blob.data(), blob.size()});
        return true;
    }
    void note(std::string_view text) {
        const std::uint64_t size = text.size();
        rest_.append(reinterpret_cast<const char*>(&size), sizeof size);
        rest_.append(text);
    }

    const std::string_view module_;
    llvm::BitstreamCursor at_;
    Outline outline_;
    std::string rest_;
    bool has_names_ = false;
};

}  // namespace

std::optional<Outline> outline_of(Bytes module) {
    return Outliner(as_text(module)).outline();
}

}  // namespace rove::bitcode
