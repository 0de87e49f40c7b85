// The places that a node has for processes that connect to it: clients' indexes, and connections that have proven nothing yet.
//
// Threads: the control thread's.
//
// Invariants: both are bounded. An index is taken exactly as long as its ClientIndex exists, and a connection is among the Strangers at most as
// long as its Place exists; so a conversation gives them back however it ends. Both outlive what they gave.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "control/channel.hpp"

namespace rove::control {

// Clients of one node, by the 16 bits of their ids.
inline constexpr std::size_t kClientsMax = 65536;
// Connections that have proven nothing yet: when one more arrives, another one is closed (Strangers). Each costs a descriptor and some 4
// KiB (its coroutine, its socket, 40 bytes of message): 256 KiB.
inline constexpr std::size_t kUnprovenMax = 64;
// An honest process proves itself within a few exchanges of messages; a connection that has taken longer is closed before others.
inline constexpr auto kProofTime = std::chrono::milliseconds(250);

class ClientIndex;

// Which of the indexes in clients' ids are taken. One bit each: 8 KiB.
class ClientIndexes {
public:
    explicit ClientIndexes(std::size_t most = kClientsMax) : most_(most) {}
    ClientIndexes(const ClientIndexes&) = delete;
    // Takes the index after the last one: an index that was given back is not given again at once. overloaded: all are taken.
    [[nodiscard]] Result<ClientIndex> take();

private:
    friend class ClientIndex;
    std::size_t most_;
    std::vector<bool> taken_;
    std::size_t next_ = 0;
};

// An index that was taken; given back with this object.
class ClientIndex {
public:
    ClientIndex() = default;  // none
    ClientIndex(ClientIndexes& all, std::uint16_t value) : all_(&all), value_(value) {}
    ClientIndex(ClientIndex&& other) noexcept : all_(std::exchange(other.all_, nullptr)), value_(other.value_) {}
    ClientIndex& operator=(ClientIndex&& other) noexcept {
        std::swap(all_, other.all_);
        std::swap(value_, other.value_);
        return *this;
    }
    ~ClientIndex() {
        if (all_ != nullptr) all_->taken_[value_] = false;
    }
    [[nodiscard]] std::uint16_t value() const { return value_; }

private:
    ClientIndexes* all_ = nullptr;
    std::uint16_t value_ = 0;
};

// The connections that have proven nothing yet. A new one is accepted and another one is closed, so that no process keeps others out by
// doing nothing, or by doing little from many addresses.
class Strangers {
public:
    explicit Strangers(std::size_t most = kUnprovenMax, Duration proof_time = kProofTime)
        : most_(most), proof_time_(proof_time) {}
    Strangers(const Strangers&) = delete;
    [[nodiscard]] std::size_t count() const { return all_.size(); }
    void clear() { all_.clear(); }

    // One connection's place, until it has proven who it is or its conversation ends.
    class Place {
    public:
        Place(Strangers& all, const std::shared_ptr<Channel>& channel);
        ~Place() { proven(); }
        Place(const Place&) = delete;
        void challenged();  // its hello has arrived, and was answered
        void proven();

    private:
        Strangers& all_;
        const Channel* channel_;  // null: it has no place any more
    };

private:
    struct Stranger {
        std::shared_ptr<Channel> channel;
        std::string origin;  // Channel::origin()
        TimePoint since;
        bool challenged = false;
    };
    void make_room();

    std::size_t most_;
    Duration proof_time_;
    std::list<Stranger> all_;  // the oldest first
};

}  // namespace rove::control
