// Pieces: a payload or a result that is sent as one: mostly one run of bytes; if it is larger than a frame, it may be several runs that follow
// each other, and each is sent from its place.
//
// Threads: a plain value. It owns nothing: the bytes, and the list of pieces, outlive it. Invariant: size() is the sum of its runs' sizes.
#pragma once

#include <algorithm>
#include <span>

#include "base/bytes.hpp"
#include "rove/edge.h"

namespace rove {

class Pieces {
public:
    Pieces() = default;
    Pieces(Bytes whole) : whole_(whole), bytes_(whole.size()) {}  // NOLINT: as a Bytes wherever one will do
    Pieces(const ByteBuffer& whole) : Pieces(Bytes(whole)) {}     // NOLINT: the same
    explicit Pieces(std::span<const rove_piece> pieces) : pieces_(pieces) {
        for (const rove_piece& each : pieces) bytes_ += each.size;
        if (pieces.size() == 1) whole_ = bytes_of(pieces.front());
    }
    [[nodiscard]] std::size_t size() const { return bytes_; }
    [[nodiscard]] bool is_whole() const { return whole_.size() == bytes_; }
    // Precondition: it is whole.
    [[nodiscard]] Bytes whole() const { return whole_; }
    // All of it as one run of bytes: its own where it is whole, otherwise a copy in `room`.
    [[nodiscard]] Bytes joined(ByteBuffer& room) const {
        if (is_whole()) return whole_;
        room.reserve(bytes_);
        for (const rove_piece& each : pieces_) {
            const Bytes bytes = bytes_of(each);
            room.insert(room.end(), bytes.begin(), bytes.end());
        }
        return room;
    }
    // Gives visit(offset, bytes) parts of `most` bytes at most, in their order, as long as it returns true. False: it did not.
    template <typename Visit>
    bool each_part(std::size_t most, const Visit& visit) const {
        std::size_t offset = 0;
        const auto visit_piece = [&](Bytes piece) {
            for (; !piece.empty(); piece = piece.subspan(std::min(most, piece.size()))) {
                const Bytes part = piece.first(std::min(most, piece.size()));
                if (!visit(offset, part)) return false;
                offset += part.size();
            }
            return true;
        };
        if (is_whole()) return visit_piece(whole_);
        for (const rove_piece& each : pieces_)
            if (!visit_piece(bytes_of(each))) return false;
        return true;
    }

private:
    static Bytes bytes_of(const rove_piece& piece) { return {static_cast<const std::byte*>(piece.data), piece.size}; }
    Bytes whole_;
    std::span<const rove_piece> pieces_;
    std::size_t bytes_ = 0;
};

}  // namespace rove
