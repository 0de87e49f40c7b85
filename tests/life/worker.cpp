// How numbered work is sent: each way of calling and posting that Rove has, chosen by the thread's own random numbers.
#include <thread>

#include "client.hpp"

namespace life {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kInFlightMax = 24;
constexpr auto kGivenUpAfter = 1h;  // never, unless the piece says otherwise
// How long after the trouble's end all calls must have been answered; then they count as unanswered.
constexpr auto kPatience = 20s;
constexpr auto kLeavingPatience = 300ms;

std::uint32_t now_ms() {
    return static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count());
}

std::uint64_t expected_sum(std::uint64_t number, std::uint32_t body_bytes) {
    std::string body(body_bytes, '\0');
    life_fill(body.data(), body.size(), number);
    return life_sum(body.data(), body.size());
}

std::vector<std::byte> payload_of(const Head& head, const std::string& body) {
    std::vector<std::byte> payload(sizeof head + body.size());
    std::memcpy(payload.data(), &head, sizeof head);
    std::memcpy(payload.data() + sizeof head, body.data(), body.size());
    return payload;
}

// `take` gives the Answer, or throws the call's error.
template <typename Take>
void write_down(Entry& entry, std::uint64_t number, std::uint32_t body_bytes, Take&& take) {
    entry.ends.fetch_add(1);
    entry.answered_ms = static_cast<std::uint16_t>(std::min<std::uint32_t>(now_ms() - entry.sent_ms, 65'535));
    try {
        const Answer answer = take();
        entry.answer_step = static_cast<std::uint8_t>(answer.step);
        entry.answer_error = static_cast<std::uint8_t>(answer.error);
        const bool right = answer.number == number && answer.version == entry.version &&
                           answer.step <= entry.last_step && answer.sum == expected_sum(number, body_bytes) &&
                           (answer.step == entry.last_step || answer.error != 0) && !entry.on_purpose;
        if (!right)
            std::fprintf(
                stderr,
                "number %#lx (%s): wrong answer: number %#lx version %u (should be %u) step %u of %u error %d\n",
                number, kKindNames[static_cast<unsigned>(entry.kind)], answer.number, answer.version, entry.version,
                answer.step, entry.last_step, answer.error);
        entry.state = right ? State::answered : State::wrong;
    } catch (const rove::Error& error) {
        entry.code = static_cast<std::uint8_t>(error.code());
        entry.state = State::failed;
        if (!entry.on_purpose)
            std::fprintf(stderr, "number %#lx (%s): %s: %s\n", number, kKindNames[static_cast<unsigned>(entry.kind)],
                         std::string(to_string(error.code())).c_str(), error.what());
    }
}

Answer answer_of(std::span<const std::byte> bytes) {
    Answer answer{};
    if (bytes.size() != sizeof answer) return answer;  // number 0 of client 0 is nobody's: wrong
    std::memcpy(&answer, bytes.data(), sizeof answer);
    return answer;
}

}  // namespace

Worker::Worker(World& world, unsigned index)
    : world_(world), index_(index), random_(world.orders.seed * kThreadsMax + index) {}

std::size_t Worker::body_bytes(Kind kind) {
    if (kind == Kind::large) return 100'000 + below(one_in(4) ? 4'000'000 : 400'000);
    if (kind == Kind::forward && one_in(20)) return 40'000 + below(200'000);
    if (kind == Kind::back || kind == Kind::roll) return 0;
    return one_in(8) ? below(8'000) : below(200);
}

Worker::Piece Worker::piece(Kind kind, unsigned target, unsigned version) {
    Piece piece;
    const std::uint32_t at = world_.ledger.header.used.fetch_add(1);
    piece.number = std::uint64_t{world_.ledger.header.client} << 32U | at;
    piece.entry = &world_.ledger.of(piece.number);
    piece.entry->kind = kind;
    piece.entry->target = static_cast<std::uint8_t>(target);
    piece.entry->version = static_cast<std::uint8_t>(version);
    piece.entry->sent_ms = now_ms();
    piece.head.number = piece.number;
    piece.head.nap_us = one_in(200) ? 1 + below(5'000) : 0;
    piece.body.resize(body_bytes(kind));
    piece.head.body_bytes = static_cast<std::uint32_t>(piece.body.size());
    life_fill(piece.body.data(), piece.body.size(), piece.number);
    piece.entry->state = State::sending;
    return piece;
}

template <typename Send>
void Worker::guarded(const Piece& piece, Send&& send) {
    world_.ledger.header.doing[index_] = piece.number;
    try {
        send();
    } catch (const rove::Error& error) {
        piece.entry->code = static_cast<std::uint8_t>(error.code());
        piece.entry->state = State::not_sent;
        std::fprintf(stderr, "number %#lx (%s): not sent: %s: %s\n", piece.number,
                     kKindNames[static_cast<unsigned>(piece.entry->kind)], std::string(to_string(error.code())).c_str(),
                     error.what());
    }
    world_.ledger.header.doing[index_] = 0;
}

void Worker::keep(const Piece& piece, Pending call) {
    piece.entry->state = State::sent;
    const auto until =
        Clock::now() + (one_in(25) ? std::chrono::milliseconds(below(30)) : std::chrono::milliseconds(kGivenUpAfter));
    in_flight_.push_back({piece.number, piece.head.body_bytes, until, std::move(call)});
}

void Worker::tell_by_callback(const Piece& piece, rove::Call<Answer> call) {
    piece.entry->state = State::sent;
    world_.callbacks.fetch_add(1);
    std::move(call).then(
        [world = &world_, number = piece.number, bytes = piece.head.body_bytes](rove::Call<Answer> ended) {
            write_down(world->ledger.of(number), number, bytes, [&] { return ended.get(); });
            world->callbacks.fetch_sub(1);
        });
}

bool Worker::choose_stops(Piece& piece, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
        const auto next = world_.peer(below(static_cast<unsigned>(world_.orders.addresses.size())));
        if (!next) return false;
        piece.head.stops[i] = next->node();
    }
    piece.head.left = static_cast<std::uint8_t>(count);
    piece.entry->last_step = static_cast<std::uint8_t>(count);
    return true;
}

void Worker::send_package(const rove::Peer& peer, Kind kind, unsigned target) {
    const Packages::Version& version = world_.packages.work[below(static_cast<unsigned>(world_.packages.work.size()))];
    Piece piece = this->piece(kind, target, version.number);
    if (kind == Kind::forward && !choose_stops(piece, 1 + below(LIFE_STOPS_MAX))) {
        piece.entry->state = State::not_sent;
        piece.entry->code = ROVE_CANCELLED;
        return;
    }
    piece.entry->on_purpose = kind == Kind::call && one_in(40);
    piece.head.on_purpose = piece.entry->on_purpose ? 1 : 0;
    guarded(piece, [&] {
        const std::vector<std::byte> payload = payload_of(piece.head, piece.body);
        if (kind == Kind::post || (kind == Kind::large && one_in(3))) {
            piece.entry->state = State::posted;
            peer.post(version.work, payload);
        } else if (kind == Kind::inlined) {
            const auto way = one_in(2) ? rove::Sending::inlined : rove::Sending::always_inlined;
            keep(piece, peer.call(version.work.sent(way), payload));
        } else if (kind == Kind::in_place) {
            rove::CallFrame frame = peer.begin(version.work, payload.size());
            std::memcpy(frame.payload().data(), payload.data(), payload.size());
            keep(piece, frame.call());
        } else {
            keep(piece, peer.call(version.work, payload));
        }
    });
}

void Worker::send_batch(const rove::Peer& peer, unsigned target) {
    const Packages::Version& version = world_.packages.work[below(static_cast<unsigned>(world_.packages.work.size()))];
    Piece first = piece(Kind::batch, target, version.number);
    guarded(first, [&] {
        rove::Batch batch = peer.batch(version.work, sizeof(Head));
        const unsigned count = 2 + below(40);
        for (unsigned i = 0; i < count; ++i) {
            // NOLINTNEXTLINE(bugprone-use-after-move): only the first time
            Piece next = i == 0 ? std::move(first) : piece(Kind::batch, target, version.number);
            next.head.body_bytes = 0;
            next.entry->state = State::posted;
            std::memcpy(batch.add().data(), &next.head, sizeof next.head);
        }
        batch.post();
    });
    // What throws leaves it open which of them were sent: those that are not, are posts that were lost.
    if (first.entry->state == State::not_sent) first.entry->state = State::posted;
}

void Worker::send_shelf(const rove::Peer& peer, unsigned target) {
    Piece piece = this->piece(Kind::shelf, target, world_.packages.shelf_work.number);
    guarded(piece, [&] {
        if (one_in(3)) (void)peer.load(world_.packages.shelves[below(2)]);
        keep(piece, peer.call(world_.packages.shelf_work.work, payload_of(piece.head, piece.body)));
    });
}

void Worker::send_typed(const rove::Peer& peer, Kind kind, unsigned target) {
    const unsigned built_in = kind == Kind::resident && target == world_.orders.resident ? LIFE_NODE_BUILD : LIFE_BUILD;
    Piece piece = this->piece(kind, target, built_in);
    if (kind == Kind::typed && one_in(6)) {  // in parts
        piece.body.resize(100'000 + below(1'000'000));
        piece.head.body_bytes = static_cast<std::uint32_t>(piece.body.size());
        life_fill(piece.body.data(), piece.body.size(), piece.number);
    }
    if (kind == Kind::back) piece.entry->last_step = 1;
    if (kind == Kind::post_on) {
        if (!choose_stops(piece, 1)) kind = Kind::typed;
        piece.entry->kind = kind;
        piece.entry->last_step = 0;
    }
    const auto begin = [&]() -> rove::Call<Answer> {
        if (kind == Kind::resident) return peer.async(rove::fn<resident_work>, piece.head, piece.body);
        if (kind == Kind::back) return peer.async(rove::fn<call_back>, piece.head);
        if (kind == Kind::post_on) return peer.async(rove::fn<post_on>, piece.head, piece.body);
        if (one_in(5))
            return peer.async(rove::within(std::chrono::milliseconds(1 + below(500))), rove::fn<typed_work>, piece.head,
                              piece.body);
        return peer.async(rove::fn<typed_work>, piece.head, piece.body);
    };
    guarded(piece, [&] {
        if (kind == Kind::typed_post) {
            piece.entry->state = State::posted;
            peer.post(rove::fn<typed_work>, piece.head, piece.body);
            return;
        }
        rove::Call<Answer> call = begin();
        switch (below(8)) {
            case 0: return tell_by_callback(piece, std::move(call));
            case 1:
                piece.entry->state = State::sent;
                return write_down(*piece.entry, piece.number, piece.head.body_bytes, [&] { return call.get(); });
            case 2:
                if (one_in(2)) call.cancel();
                return keep(piece, std::move(call));
            default: return keep(piece, std::move(call));
        }
    });
}

void Worker::send_something() {
    const unsigned target = below(static_cast<unsigned>(world_.orders.addresses.size()));
    if (one_in(400)) (void)world_.connect(target);
    const auto peer = world_.peer(target);
    if (!peer) {
        (void)world_.connect(target);
        return;
    }
    // Out of 100: small things are most of it.
    const unsigned which = below(100);
    if (which < 22) return send_package(*peer, Kind::call, target);
    if (which < 25) return send_package(*peer, Kind::large, target);
    if (which < 33) return send_package(*peer, Kind::inlined, target);
    if (which < 41) return send_package(*peer, Kind::post, target);
    if (which < 46) return send_package(*peer, Kind::in_place, target);
    if (which < 60) return send_package(*peer, Kind::forward, target);
    if (which < 63) return send_batch(*peer, target);
    if (which < 67) return send_shelf(*peer, target);
    if (which < 82) return send_typed(*peer, Kind::typed, target);
    if (which < 87) return send_typed(*peer, Kind::typed_post, target);
    if (which < 93) return send_typed(*peer, Kind::resident, target);
    if (which < 97) return send_typed(*peer, Kind::back, target);
    return send_typed(*peer, Kind::post_on, target);
}

bool Worker::settle_if_done(InFlight& each) {
    if (!std::visit([](auto& call) { return call.done(); }, each.call)) return false;
    settle(each);
    return true;
}

void Worker::settle(InFlight& each) {
    write_down(world_.ledger.of(each.number), each.number, each.body_bytes, [&] {
        if (auto* typed = std::get_if<rove::Call<Answer>>(&each.call)) return typed->get();
        return answer_of(std::get<rove::RawCall>(each.call).get());
    });
}

void Worker::give_up(InFlight& each, State as) {
    Entry& entry = world_.ledger.of(each.number);
    if (as == State::given_up) entry.code = ROVE_CANCELLED;
    entry.state = as;
}

// Takes what has ended, and drops what was not to last longer.
void Worker::look() {
    std::erase_if(in_flight_, [&](InFlight& each) {
        if (settle_if_done(each)) return true;
        if (Clock::now() < each.until) return false;
        give_up(each, State::given_up);
        return true;
    });
}

void Worker::finish() {
    const bool leaving = world_.phase() == Phase::leave;
    const auto until = Clock::now() + (leaving ? Clock::duration(kLeavingPatience) : Clock::duration(kPatience));
    while (!in_flight_.empty() && Clock::now() < until) {
        look();
        std::this_thread::sleep_for(1ms);
    }
    for (InFlight& each : in_flight_) give_up(each, leaving ? State::given_up : State::unanswered);
    in_flight_.clear();
}

void Worker::run() {
    const auto pause = std::chrono::microseconds(1'000'000 / std::max(1U, world_.orders.rate));
    auto next = Clock::now();
    while (world_.phase() == Phase::work) {
        if (in_flight_.size() < kInFlightMax && world_.ledger.header.used.load() + 64 < kEntriesMax) send_something();
        look();
        // Bursts and pauses: what piles up behind a stopped node is not made up for.
        next = std::max(next + pause * (one_in(50) ? 40 : 1), Clock::now() - 20ms);
        if (one_in(3)) std::this_thread::sleep_until(next);
    }
    finish();
}

Worker::Visit Worker::visit(const std::vector<unsigned>& way) {
    const auto first = world_.peer(way.front());
    if (!first) return Visit::failed;
    Piece piece = this->piece(Kind::roll, way.front(), world_.packages.work[0].number);
    for (std::size_t i = 1; i < way.size(); ++i) {
        const auto next = world_.peer(way[i]);
        if (!next) return piece.entry->state = State::not_sent, piece.entry->code = ROVE_CANCELLED, Visit::failed;
        piece.head.stops[i - 1] = next->node();
    }
    piece.head.left = static_cast<std::uint8_t>(way.size() - 1);
    piece.entry->last_step = piece.head.left;
    guarded(piece, [&] {
        rove::RawCall call = first->call(world_.packages.work[0].work, payload_of(piece.head, piece.body));
        piece.entry->state = State::sent;
        if (call.wait_for(kPatience))
            write_down(*piece.entry, piece.number, piece.head.body_bytes, [&] { return answer_of(call.get()); });
        else
            piece.entry->state = State::unanswered;
    });
    const State state = piece.entry->state.load();
    if (state == State::unanswered) return Visit::silent;
    return state == State::answered && piece.entry->answer_step == piece.entry->last_step ? Visit::answered
                                                                                          : Visit::failed;
}

}  // namespace life
