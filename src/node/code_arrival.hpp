// What a node keeps of code that is on its way to it or from it, each bounded: what peers have had, pieces that are being put
// together, and what was asked of whom.
//
// Threads: under the node's lock.
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
#include "wire/frame.hpp"
#include "wire/manifest.hpp"

namespace rove {
namespace code {
struct Function;
}

// Code that is arriving in pieces from one peer: one slice of the largest kind at a time, and as much again.
inline constexpr std::size_t kAssemblyBytesMax = 2 * wire::kSliceBytesMax;
// The same from all peers: four of them with as much as they may. Beyond either, what arrives is dropped and asked for again.
inline constexpr std::size_t kAssemblyBytesOfAllMax = 4 * kAssemblyBytesMax;  // 512 MiB
// Parts of packages that one peer sends at the same time. An honest one sends one after the other.
inline constexpr std::size_t kAssembliesMax = 16;
// When a piece found no room, its code is asked for again after this long.
inline constexpr auto kAskAgainAfter = std::chrono::milliseconds(200);
// How long a parked call waits for its code before it fails. Code comes from a live process over a link that is watched,
// so this only ends waits for a peer that is stopped.
inline constexpr auto kCodeWaitMax = std::chrono::seconds(5);
// How long it waits for the compiler. The largest C++ modules take some seconds; others' may be compiled before.
inline constexpr auto kCompileWaitMax = std::chrono::seconds(60);
// Packages that one peer is known to have: as many as a node knows. At 32 bytes and their place, 256 KiB. Beyond it all are
// forgotten, and their code is sent once more.
inline constexpr std::size_t kPackagesSentMax = 4096;
// Code that one peer may have sent to others, for whom it asks: this many bytes at once and per second, and never less than one
// package at a time. An honest peer asks once a package and node; without a limit it could have somebody else flooded.
inline constexpr std::size_t kForeignCodeBytesMax = 4UL * 1024 * 1024;

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

// A part of a package that arrives in pieces. Its memory is what has arrived, not what was announced. Each piece is hashed when it comes,
// so that the last one takes no longer than the others.
class CodeAssembly {
public:
    CodeAssembly(std::size_t& bytes_of_all, std::size_t total_bytes)
        : bytes_of_all_(&bytes_of_all), total_(total_bytes) {
        bytes_.reserve(total_);
        *bytes_of_all_ += total_;
    }
    CodeAssembly(CodeAssembly&& other) noexcept
        : bytes_of_all_(other.bytes_of_all_),
          total_(std::exchange(other.total_, 0)),
          bytes_(std::move(other.bytes_)),
          hasher_(other.hasher_) {}
    CodeAssembly& operator=(CodeAssembly&&) = delete;
    ~CodeAssembly() { *bytes_of_all_ -= total_; }
    [[nodiscard]] std::size_t total() const { return total_; }
    [[nodiscard]] std::size_t arrived() const { return bytes_.size(); }
    [[nodiscard]] bool is_whole() const { return arrived() == total_; }
    // The copy is what is hashed: a peer can change what lies in a mailbox.
    void add(Bytes piece) {
        bytes_.insert(bytes_.end(), piece.begin(), piece.end());
        hasher_.add(Bytes(bytes_).last(piece.size()));
    }
    [[nodiscard]] PackageStore::HashedSlice take() {
        return {std::make_shared<const ByteBuffer>(std::move(bytes_)), hasher_.hash()};
    }

private:
    std::size_t* bytes_of_all_;
    std::size_t total_;
    ByteBuffer bytes_;
    SliceHasher hasher_;
};

// A part of a package that is whole: in its frame, or put together.
using CodePart = std::variant<Bytes, PackageStore::HashedSlice>;

// What arrives in pieces from one peer.
class CodeArrival {
public:
    struct Piece {
        Digest package;
        std::uint32_t part = 0;
        std::size_t offset = 0, total_bytes = 0;
        Bytes bytes;
    };
    enum class Took : std::uint8_t {
        more_to_come,
        whole,       // taken() gives it
        no_room,     // it began when there was no room, or its beginning did: dropped
        no_meaning,  // it does not go on where the last one ended
    };
    [[nodiscard]] Took take(std::size_t& bytes_of_all, const Piece& piece);
    // The part that is whole, out of here.
    [[nodiscard]] CodeAssembly taken(const Piece& piece);
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] std::size_t parts() const { return parts_.size(); }
    void clear() {
        parts_.clear();
        bytes_ = 0;
    }

private:
    struct Part {
        Digest package;
        std::uint32_t part = 0;
        friend bool operator==(const Part&, const Part&) = default;
    };
    struct HashOfPart {
        std::size_t operator()(const Part& part) const { return std::hash<Digest>()(part.package) + part.part; }
    };
    std::unordered_map<Part, CodeAssembly, HashOfPart> parts_;
    std::size_t bytes_ = 0;
};

// What a peer may still have sent to others.
class ForeignCode {
public:
    // Whether there is some left; takes `bytes` of it, and more than there is.
    [[nodiscard]] bool take(TimePoint now, std::size_t bytes);

private:
    std::int64_t left_ = static_cast<std::int64_t>(kForeignCodeBytesMax);
    TimePoint at_{};
};

// A call frame at the head of a peer's mailbox that cannot run yet. Calls from one peer start in their order, so those
// after it wait in the mailbox too; replies and code pass by on their own ring.
struct Parked {
    TimePoint since;
    bool asked = false;                  // `need` was sent
    NodeId asked_of = kNoNode;           // of the peer that was, by the name that it has here (PeerState::back)
    NodeId origin = kNoNode;             // who made the call
    std::optional<TimePoint> ask_again;  // what came found no room
    std::optional<TimePoint> compiling;  // since when it waits for the compiler
    bool for_thread = false;             // the code is there: too many functions run long, and the end of one will tell
    std::optional<TimePoint> held_until;  // … too many wait quietly: it is refused then (QuietRuns)
    std::optional<Error> hopeless;        // why it cannot run
    FunctionId function;                  // all zero: known by handle only
    std::uint32_t handle = 0;

    // Why it has waited for too long, if it has.
    [[nodiscard]] std::optional<Error> expired(TimePoint now) const;
    // Whether a question or an answer about code is about this one.
    [[nodiscard]] bool waits_for(const FunctionId& named, std::uint32_t by_handle) const;
};

// Code that came in a frame and is known by now: the frame's bytes are compared with these, and what they were loaded as is run.
struct SeenInline {
    code::Function* function = nullptr;
    std::uint32_t handle = 0;  // that it had
    FunctionId id;
    ByteBuffer bytes;  // the whole extension
};

}  // namespace rove
