#include "peer/code_arrival.hpp"

#include <algorithm>
#include <iterator>

namespace rove {

CodeArrival::Took CodeArrival::take(std::size_t& bytes_of_all, const Piece& piece, TimePoint now) {
    const ItemId key{piece.package, piece.item};
    auto item = items_.find(key);
    if (item == items_.end() && piece.offset == 0) {
        while (!items_.empty() && (items_.size() >= kAssembliesMax || bytes_ + piece.total_bytes > kAssemblyBytesMax))
            drop_longest_idle();
        item = items_.try_emplace(key, bytes_of_all, piece.total_bytes).first;
        bytes_ += piece.total_bytes;
    }
    if (item == items_.end()) return Took::no_room;
    CodeAssembly& assembly = item->second;
    if (assembly.total() != piece.total_bytes) return Took::no_meaning;
    // Several copies of an item may arrive at once: sent ahead of a call, for a load, and because it was asked for. All have the same bytes.
    // A piece beyond the bytes that have arrived belongs to an earlier copy, which is complete: it is skipped.
    if (assembly.arrived() < piece.offset) return Took::more_to_come;
    const Bytes more = piece.bytes.subspan(std::min(assembly.arrived() - piece.offset, piece.bytes.size()));
    if (more.empty()) return Took::more_to_come;
    if (bytes_of_all + more.size() > kAssemblyBytesOfAllMax) {
        drop(item);
        return Took::no_room;
    }
    assembly.add(more, now);
    return assembly.is_whole() ? Took::whole : Took::more_to_come;
}

CodeAssembly CodeArrival::taken(const Piece& piece) {
    const auto item = items_.find({piece.package, piece.item});
    CodeAssembly whole = std::move(item->second);
    drop(item);
    return whole;
}

void CodeArrival::drop_idle(TimePoint since) {
    for (auto item = items_.begin(); item != items_.end();)
        item = item->second.went_on_at() < since ? drop(item) : std::next(item);
}

CodeArrival::Items::iterator CodeArrival::drop(Items::iterator item) {
    bytes_ -= item->second.total();
    return items_.erase(item);
}

void CodeArrival::drop_longest_idle() {
    drop(std::min_element(items_.begin(), items_.end(), [](const auto& one, const auto& other) {
        return one.second.went_on_at() < other.second.went_on_at();
    }));
}

}  // namespace rove
