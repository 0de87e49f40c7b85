#include "fabric/loopback/chaos.hpp"

#include <algorithm>
#include <deque>
#include <random>

namespace rove::fabric {
namespace {

constexpr std::size_t kSignalBytes = sizeof(wire::FrameHeader::signal);

// A part of a frame that has not been copied yet.
struct Piece {
    std::size_t begin = 0;  // offset from the frame's start
    std::size_t end = 0;
};

// A frame in transit.
struct Flight {
    Traffic traffic = Traffic::calls;
    std::size_t offset = 0;     // the offset of its signal word in the ring
    std::vector<Piece> pieces;  // the frame's parts without the signal word
};

struct LateCredit {
    Traffic traffic = Traffic::calls;
    std::uint64_t credit = 0;
    unsigned turns = 0;
};

class ChaosLink final : public LoopbackLink {
public:
    ChaosLink(std::shared_ptr<Exchange> exchange, std::shared_ptr<BellAndBoard> bell_and_board, Board& board,
              std::vector<LoopbackLink*>& links, const ChaosOptions& options)
        : LoopbackLink(std::move(exchange), std::move(bell_and_board), board, links),
          options_(options),
          random_(options.seed) {}
    // Frames that were published before the link was closed arrive, as they do through a socket.
    ~ChaosLink() override {
        while (remote_ && broken() == nullptr && !flights_.empty()) carry_piece();
    }
    ChaosLink(const ChaosLink&) = delete;

    [[nodiscard]] Status connect(Bytes peer_offer) override {
        ROVE_CHECK(LoopbackLink::connect(peer_offer));
        mirror_ = std::make_unique<Region>();
        by_messages_ = true;
        for (std::size_t i = 0; i < kTrafficKinds; ++i)
            outgoing_[i] = RingWriter(mirror_->rings[i], &own_->region.credits[i], remote_->region.owner);
        return {};
    }
    [[nodiscard]] Lane lane() const override { return remote_ ? Lane::message : Lane::none; }

    unsigned carry();
    [[nodiscard]] bool busy() const { return broken() == nullptr && (!flights_.empty() || !credits_.empty()); }

protected:
    void transmit(Traffic traffic, std::uint64_t position, std::size_t bytes) override;
    void transmit_credit(Traffic traffic) override;

private:
    [[nodiscard]] std::size_t below(std::size_t bound) { return random_() % bound; }
    void carry_piece();
    void land(const Flight& flight);
    void wake();

    ChaosOptions options_;
    std::mt19937_64 random_;
    std::unique_ptr<Region> mirror_;
    std::vector<Flight> flights_;
    std::deque<LateCredit> credits_;  // in the order in which they were given
    std::uint64_t frames_ = 0;
};

void ChaosLink::transmit(Traffic traffic, std::uint64_t position, std::size_t bytes) {
    if (frames_++ >= options_.frames_max) return break_with(Error(ErrorCode::disconnected, "chaos cut the link"));
    Flight flight{traffic, position % kRingLines * wire::kLineBytes, {}};
    for (std::size_t begin = kSignalBytes; begin < bytes;) {
        const std::size_t end = std::min(bytes, begin + 1 + below(options_.piece_bytes_max));
        flight.pieces.push_back({begin, end});
        begin = end;
    }
    flights_.push_back(std::move(flight));
}

void ChaosLink::transmit_credit(Traffic traffic) {
    credits_.push_back({traffic, incoming_[index_of(traffic)].given_back(),
                        static_cast<unsigned>(below(options_.credit_turns_max + 1))});
}

// One turn. A late credit delays those after it: credits may be late but never decrease.
unsigned ChaosLink::carry() {
    if (!remote_ || broken() != nullptr) return 0;
    unsigned events = 0;
    for (std::size_t left = 1 + below(options_.pieces_per_turn_max); left > 0 && !flights_.empty(); --left, ++events)
        carry_piece();
    while (!credits_.empty() && credits_.front().turns == 0) {
        const LateCredit& credit = credits_.front();  // partner: RingWriter::load_credit
        std::atomic_ref(remote_->region.credits[static_cast<std::size_t>(credit.traffic)])
            .store(credit.credit, std::memory_order_release);
        credits_.pop_front();
        wake();
        ++events;
    }
    if (!credits_.empty()) --credits_.front().turns;
    return events;
}

void ChaosLink::carry_piece() {
    const std::size_t chosen = below(flights_.size());
    Flight& flight = flights_[chosen];
    if (!flight.pieces.empty()) {
        std::swap(flight.pieces[below(flight.pieces.size())], flight.pieces.back());
        const Piece piece = flight.pieces.back();
        flight.pieces.pop_back();
        const auto i = static_cast<std::size_t>(flight.traffic);
        std::memcpy(remote_->region.rings[i] + flight.offset + piece.begin,
                    mirror_->rings[i] + flight.offset + piece.begin, piece.end - piece.begin);
        return;
    }
    land(flight);
    std::swap(flight, flights_.back());
    flights_.pop_back();
}

// Copies the signal word, after the rest of the frame. Partner: RingReader::pending.
void ChaosLink::land(const Flight& flight) {
    const auto i = static_cast<std::size_t>(flight.traffic);
    std::uint64_t word = 0;
    std::memcpy(&word, mirror_->rings[i] + flight.offset, sizeof word);
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(remote_->region.rings[i] + flight.offset))
        .store(word, std::memory_order_release);
    wake();
}

void ChaosLink::wake() {
    if (LoopbackLink::peer_here_wants_wake()) wake_peer();
}

class ChaosFabric final : public LoopbackFabric {
public:
    ChaosFabric(std::shared_ptr<Exchange> exchange, std::shared_ptr<Bell> bell, const ChaosOptions& options)
        : LoopbackFabric(std::move(exchange), std::move(bell)), options_(options) {}

    [[nodiscard]] std::string_view name() const override { return "chaos"; }
    [[nodiscard]] Result<std::unique_ptr<Link>> open_link() override {
        ChaosOptions options = options_;
        options.seed += 1000003 * opened_++;  // each link has its own random sequence
        return std::make_unique<ChaosLink>(exchange_, bell_and_board_, own_board_, links_, options);
    }
    unsigned progress() override {
        unsigned events = LoopbackFabric::progress();
        for (LoopbackLink* link : links_) events += static_cast<ChaosLink*>(link)->carry();
        return events;
    }
    [[nodiscard]] bool needs_progress() const override { return true; }
    // Frames in transit advance only while this side polls.
    [[nodiscard]] bool announce_sleep() override {
        const auto busy = [](LoopbackLink* link) { return static_cast<ChaosLink*>(link)->busy(); };
        return LoopbackFabric::announce_sleep() && std::none_of(links_.begin(), links_.end(), busy);
    }

private:
    ChaosOptions options_;
    std::uint64_t opened_ = 0;
};

}  // namespace

Result<std::unique_ptr<Fabric>> open_chaos_fabric(std::shared_ptr<Exchange> exchange, const ChaosOptions& options) {
    if (options.piece_bytes_max == 0 || options.pieces_per_turn_max == 0)
        return fail(ErrorCode::invalid, "a chaos fabric must carry at least one piece of one byte a turn");
    ROVE_TRY(std::shared_ptr<Bell> bell, Bell::open());
    return std::make_unique<ChaosFabric>(std::move(exchange), std::move(bell), options);
}

}  // namespace rove::fabric
