// A node's records of code that is being sent to it or by it, each bounded: packages that peers have received, pieces that are being
// reassembled, and requests for code.
//
// InParts does not count these pieces: it refuses what does not begin where the last part ended, as one sender sends each part once. A copy of an
// item that was sent for another reason repeats pieces that are here, and is no error.
//
// Threads: under the engine's lock.
//
// Invariants: a CodeArrival's bytes() is what its items were announced with, and the sum over all peers (`bytes_of_all`) is what has arrived of
// them: a CodeAssembly counts its bytes there, and takes them off when it is dropped, taken or destroyed.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "package/digest.hpp"
#include "package/package.hpp"
#include "peer/dropped_bytes.hpp"
#include "wire/frame.hpp"
#include "wire/manifest.hpp"

namespace rove {
namespace code {
struct Function;
}

// The announced size of the code that is arriving in pieces from one peer: twice the largest slice. Beyond it, and beyond the next bound, the
// item is dropped that has not grown for longest.
inline constexpr std::size_t kAssemblyBytesMax = 2 * wire::kSliceBytesMax;
// Items of packages that one peer sends at the same time. An honest one sends one after the other.
inline constexpr std::size_t kAssembliesMax = 16;
// The bytes of such items that have arrived from all peers: four peers' most. Beyond it an item is dropped and asked for again.
inline constexpr std::size_t kAssemblyBytesOfAllMax = 4 * kAssemblyBytesMax;  // 512 MiB
// Packages that one peer is known to have: as many as a node knows by default. At 32 bytes and their place, 256 KiB.
// Beyond it all are forgotten, and their code is sent once more.
inline constexpr std::size_t kPackagesSentMax = 4096;

class SentPackages {
public:
    void insert(const Digest& package) {
        if (packages_.size() >= kPackagesSentMax) packages_.clear();
        packages_.insert(package);
    }
    template <typename Iterator>
    void insert(Iterator first, Iterator last) {
        for (; first != last; ++first) insert(*first);
    }
    [[nodiscard]] bool contains(const Digest& package) const { return packages_.contains(package); }
    [[nodiscard]] std::size_t size() const { return packages_.size(); }
    void clear() { packages_.clear(); }

private:
    std::unordered_set<Digest> packages_;
};

// An item of a package that arrives in pieces. Addresses are reserved for all that was announced; the kernel adds memory to them as pieces
// are written, and only what has arrived is counted. Each piece is hashed when it arrives, so that the last one takes no longer than the
// others.
class CodeAssembly {
public:
    CodeAssembly(std::size_t& bytes_of_all, std::size_t total_bytes)
        : bytes_of_all_(&bytes_of_all), total_(total_bytes) {
        bytes_.reserve(total_);
    }
    CodeAssembly(CodeAssembly&& other) noexcept
        : bytes_of_all_(other.bytes_of_all_),
          total_(other.total_),
          bytes_(std::exchange(other.bytes_, {})),
          hasher_(other.hasher_),
          went_on_at_(other.went_on_at_) {}
    CodeAssembly& operator=(CodeAssembly&&) = delete;
    ~CodeAssembly() { *bytes_of_all_ -= bytes_.size(); }
    [[nodiscard]] std::size_t total() const { return total_; }
    [[nodiscard]] std::size_t arrived() const { return bytes_.size(); }
    [[nodiscard]] bool is_whole() const { return arrived() == total_; }
    [[nodiscard]] TimePoint went_on_at() const { return went_on_at_; }
    // The copy is hashed, because a peer can change bytes in a mailbox.
    void add(Bytes piece, TimePoint now) {
        bytes_.insert(bytes_.end(), piece.begin(), piece.end());
        *bytes_of_all_ += piece.size();
        hasher_.add(Bytes(bytes_).last(piece.size()));
        went_on_at_ = now;
    }
    // Takes the bytes that have arrived, which are of no use any more.
    [[nodiscard]] ByteBuffer drop() {
        *bytes_of_all_ -= bytes_.size();
        return std::exchange(bytes_, {});
    }
    [[nodiscard]] PackageStore::HashedSlice take() {
        const std::size_t bytes = bytes_.size();
        PackageStore::HashedSlice whole{std::make_shared<const ByteBuffer>(std::move(bytes_)), hasher_.hash()};
        bytes_.clear();
        *bytes_of_all_ -= bytes;
        return whole;
    }

private:
    std::size_t* bytes_of_all_;
    std::size_t total_;
    ByteBuffer bytes_;
    SliceHasher hasher_;
    TimePoint went_on_at_{};
};

// An item of a package that is whole: in its frame, or put together.
using CodeItem = std::variant<Bytes, PackageStore::HashedSlice>;

// The items that arrive in pieces from one peer.
class CodeArrival {
public:
    struct Piece {
        Digest package;
        std::uint32_t item = 0;
        std::size_t offset = 0, total_bytes = 0;
        Bytes bytes;
    };
    enum class Took : std::uint8_t {
        more_to_come,
        whole,       // taken() gives it
        no_room,     // dropped, as what came before it of its item
        no_meaning,  // of an item that is to have another size
    };
    [[nodiscard]] Took take(std::size_t& bytes_of_all, const Piece& piece, TimePoint now);
    // The item that is whole, out of here.
    [[nodiscard]] CodeAssembly taken(const Piece& piece);
    // Drops what has not gone on since then.
    void drop_idle(TimePoint since);
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] std::size_t items() const { return items_.size(); }
    // All that has arrived is put there.
    void clear(DroppedBytes& dropped) {
        for (auto& [item, assembly] : items_) dropped.take(assembly.drop());
        items_.clear();
        bytes_ = 0;
    }

private:
    struct ItemId {
        Digest package;
        std::uint32_t item = 0;
        friend bool operator==(const ItemId&, const ItemId&) = default;
    };
    struct HashOfItemId {
        std::size_t operator()(const ItemId& item) const { return std::hash<Digest>()(item.package) + item.item; }
    };
    using Items = std::unordered_map<ItemId, CodeAssembly, HashOfItemId>;
    Items::iterator drop(Items::iterator item);
    void drop_longest_idle();

    Items items_;
    std::size_t bytes_ = 0;  // announced
};

// Code that came in a frame and is known by now: the frame's bytes are compared with these, and what they were loaded as is run.
struct SeenInline {
    code::Function* function = nullptr;
    std::uint32_t handle = 0;  // that it had
    FunctionId id;
    ByteBuffer bytes;  // the whole extension
};

}  // namespace rove
