#include "peer/code_arrival.hpp"

#include <algorithm>
#include <iterator>

namespace rove {

CodeArrival::Took CodeArrival::take(std::size_t& bytes_of_all, const Piece& piece, TimePoint now) {
    const PartId key{piece.package, piece.part};
    auto part = parts_.find(key);
    if (part == parts_.end() && piece.offset == 0) {
        while (!parts_.empty() && (parts_.size() >= kAssembliesMax || bytes_ + piece.total_bytes > kAssemblyBytesMax))
            drop_longest_idle();
        part = parts_.try_emplace(key, bytes_of_all, piece.total_bytes).first;
        bytes_ += piece.total_bytes;
    }
    if (part == parts_.end()) return Took::no_room;
    CodeAssembly& assembly = part->second;
    if (assembly.total() != piece.total_bytes) return Took::no_meaning;
    // Several copies of a part may arrive at once: sent ahead of a call, for a load, and because it was asked for. All have the same bytes.
    // A piece beyond the bytes that have arrived belongs to an earlier copy, which is complete: it is skipped.
    if (assembly.arrived() < piece.offset) return Took::more_to_come;
    const Bytes more = piece.bytes.subspan(std::min(assembly.arrived() - piece.offset, piece.bytes.size()));
    if (more.empty()) return Took::more_to_come;
    if (bytes_of_all + more.size() > kAssemblyBytesOfAllMax) {
        drop(part);
        return Took::no_room;
    }
    assembly.add(more, now);
    return assembly.is_whole() ? Took::whole : Took::more_to_come;
}

CodeAssembly CodeArrival::taken(const Piece& piece) {
    const auto part = parts_.find({piece.package, piece.part});
    CodeAssembly whole = std::move(part->second);
    drop(part);
    return whole;
}

void CodeArrival::drop_idle(TimePoint since) {
    for (auto part = parts_.begin(); part != parts_.end();)
        part = part->second.went_on_at() < since ? drop(part) : std::next(part);
}

CodeArrival::Parts::iterator CodeArrival::drop(Parts::iterator part) {
    bytes_ -= part->second.total();
    return parts_.erase(part);
}

void CodeArrival::drop_longest_idle() {
    drop(std::min_element(parts_.begin(), parts_.end(), [](const auto& one, const auto& other) {
        return one.second.went_on_at() < other.second.went_on_at();
    }));
}

}  // namespace rove
