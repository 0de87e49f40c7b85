#include "node/code_arrival.hpp"

#include <algorithm>

namespace rove {

CodeArrival::Took CodeArrival::take(std::size_t& bytes_of_all, const Piece& piece) {
    const Part key{piece.package, piece.part};
    auto part = parts_.find(key);
    if (piece.offset == 0) {  // begins, or begins again
        if (part != parts_.end()) {
            bytes_ -= part->second.total();
            parts_.erase(part);
        }
        if (parts_.size() >= kAssembliesMax || bytes_ + piece.total_bytes > kAssemblyBytesMax ||
            bytes_of_all + piece.total_bytes > kAssemblyBytesOfAllMax)
            return Took::no_room;
        part = parts_.try_emplace(key, bytes_of_all, piece.total_bytes).first;
        bytes_ += piece.total_bytes;
    }
    if (part == parts_.end()) return Took::no_room;
    CodeAssembly& assembly = part->second;
    if (assembly.arrived() != piece.offset || assembly.total() != piece.total_bytes) return Took::no_meaning;
    assembly.add(piece.bytes);
    return assembly.is_whole() ? Took::whole : Took::more_to_come;
}

CodeAssembly CodeArrival::taken(const Piece& piece) {
    const auto part = parts_.find({piece.package, piece.part});
    CodeAssembly whole = std::move(part->second);
    parts_.erase(part);
    bytes_ -= whole.total();
    return whole;
}

bool ForeignCode::take(TimePoint now, std::size_t bytes) {
    constexpr auto kMost = static_cast<std::int64_t>(kForeignCodeBytesMax);
    const auto seconds = std::chrono::duration<double>(now - at_).count();
    at_ = now;
    // An hour refills whatever was taken, and keeps the product in its bounds.
    left_ = std::min(kMost, left_ + static_cast<std::int64_t>(std::min(seconds, 3600.0) * static_cast<double>(kMost)));
    if (left_ <= 0) return false;
    left_ -= static_cast<std::int64_t>(bytes);
    return true;
}

std::optional<Error> Parked::expired(TimePoint now) const {
    if (hopeless || for_thread) return std::nullopt;
    if (compiling && now - *compiling > kCompileWaitMax)
        return Error(ErrorCode::timed_out,
                     fmt::format("its package was not ready within {} s: its own constructors do not end, or bitcode "
                                 "takes LLVM so long, its "
                                 "own or that of others before it; call it again later, or build it with an image",
                                 kCompileWaitMax.count()));
    if (!compiling && asked && now - since > kCodeWaitMax)
        return Error(ErrorCode::timed_out, "its code did not come in time; is the process that has it stopped?");
    return std::nullopt;
}

bool Parked::waits_for(const FunctionId& named, std::uint32_t by_handle) const {
    if (named == FunctionId{}) return handle == by_handle;
    return function == named || (function == FunctionId{} && handle == by_handle);
}

}  // namespace rove
