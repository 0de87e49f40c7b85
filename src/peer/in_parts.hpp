// InParts: how much has arrived of a payload or a result that one sender sends in parts, one after the other. (Items of
// packages have a rule of their own, because several copies of one may arrive at once: CodeArrival.)
//
// Threads: those of the object that has it. Invariant: arrived() bytes have arrived, without a gap, and they are at most total().
#pragma once

#include <cstddef>

namespace rove {

class InParts {
public:
    explicit InParts(std::size_t total) : total_(total) {}
    [[nodiscard]] std::size_t total() const { return total_; }
    [[nodiscard]] std::size_t arrived() const { return arrived_; }
    [[nodiscard]] bool is_whole() const { return arrived_ == total_; }
    // Counts the part at that offset of so many bytes. False: it is not where the last one ended, is of something of another size, or reaches
    // beyond its end; then it is not counted.
    [[nodiscard]] bool take(std::size_t offset, std::size_t total, std::size_t bytes) {
        if (offset != arrived_ || total != total_ || bytes > total_ - arrived_) return false;
        arrived_ += bytes;
        return true;
    }

private:
    std::size_t total_;
    std::size_t arrived_ = 0;
};

}  // namespace rove
