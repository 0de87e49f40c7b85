// A client of the test of mixed life: threads that send numbered work of every kind, and write down what they are told of it.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "fabrics.hpp"
#include "ledger.hpp"
#include "travelling.hpp"

namespace life {

using Clock = std::chrono::steady_clock;

struct Orders {
    std::string ledger;
    std::uint64_t seed = 0;
    std::string fabric, packages;
    unsigned resident = 0;   // which of the nodes is life_node
    unsigned rate = 0;       // pieces of work a second, of each thread
    bool roll_call = false;  // only see that every node reaches every other
    std::vector<std::string> addresses;
};

struct Packages {
    struct Version {
        rove::Package package;
        rove::Entry work;
        std::uint8_t number;
    };
    std::vector<Version> work;  // this build's
    Version shelf_work;
    std::vector<rove::Package> shelves;
};

// What the threads of a client share.
struct World {
    const Orders& orders;
    Ledger& ledger;
    rove::Node& node;
    const Packages& packages;
    std::mutex mutex;
    std::vector<std::optional<rove::Peer>> peers;  // by the index of their address
    std::atomic<unsigned> callbacks{0};            // calls whose end a callback will tell

    [[nodiscard]] Phase phase() const { return ledger.header.phase.load(); }
    [[nodiscard]] std::optional<rove::Peer> peer(unsigned index);
    // Meets it, once more where it is known: false when it is not there now.
    bool connect(unsigned index);
};

class Worker {
public:
    Worker(World& world, unsigned index);
    void run();
    enum class Visit : std::uint8_t { answered, failed, silent };
    // Sends one piece of work along this way through the nodes and waits until it has been answered at its end, or not.
    Visit visit(const std::vector<unsigned>& way);

private:
    using Pending = std::variant<rove::RawCall, rove::Call<Answer>>;
    struct Piece {
        std::uint64_t number = 0;
        Entry* entry = nullptr;
        Head head{};
        std::string body;
    };
    struct InFlight {
        std::uint64_t number;
        std::uint32_t body_bytes;
        Clock::time_point until;  // when the client gives it up
        Pending call;
    };

    [[nodiscard]] unsigned below(unsigned bound) { return static_cast<unsigned>(random_() % bound); }
    [[nodiscard]] bool one_in(unsigned n) { return below(n) == 0; }
    [[nodiscard]] Piece piece(Kind kind, unsigned target, unsigned version);
    [[nodiscard]] std::size_t body_bytes(Kind kind);
    void send_something();
    void send_package(const rove::Peer& peer, Kind kind, unsigned target);
    void send_batch(const rove::Peer& peer, unsigned target);
    void send_typed(const rove::Peer& peer, Kind kind, unsigned target);
    void send_shelf(const rove::Peer& peer, unsigned target);
    [[nodiscard]] bool choose_stops(Piece& piece, unsigned count);
    void keep(const Piece& piece, Pending call);
    void tell_by_callback(const Piece& piece, rove::Call<Answer> call);
    // Sends by `send`; writes down what that throws.
    template <typename Send>
    void guarded(const Piece& piece, Send&& send);
    void look();
    [[nodiscard]] bool settle_if_done(InFlight& each);
    void settle(InFlight& each);
    void give_up(InFlight& each, State as);
    void finish();

    World& world_;
    const unsigned index_;
    std::mt19937_64 random_;
    std::vector<InFlight> in_flight_;
};

}  // namespace life
