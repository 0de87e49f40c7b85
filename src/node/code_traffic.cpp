// Code on its way: attached to a first call, asked for by a node that lacks it, passed on by those in the middle.

#include <algorithm>

#include "node/core.hpp"
#include "node/log.hpp"
#include "node/names.hpp"

namespace rove {

using fabric::Traffic;
using wire::Kind;

namespace {

// A piece of a slice: the largest frame less header and extension.
constexpr std::size_t kChunkBytes = wire::kFrameBytesMax - wire::kHeaderBytes - sizeof(wire::CodeChunk);

template <typename Extension>
Bytes raw(const Extension& extension) {
    return std::as_bytes(std::span(&extension, 1));
}

template <typename Extension>
Extension read(const wire::Frame& frame) {  // its size was checked
    Extension extension;
    std::memcpy(&extension, frame.extra.data(), sizeof extension);
    return extension;
}

std::string_view text_of(const std::array<char, 32>& padded) {
    return {padded.data(), strnlen(padded.data(), padded.size())};
}

}  // namespace

bool NodeCore::may_send(Forms form) const {
    return includes(options_.forms, form);
}

// The package of a function, wherever this process has it from: its own program, or what it was sent.
std::shared_ptr<PackageStore> NodeCore::package_with(const FunctionId& function) const {
    if (const auto offered = own_functions_.find(function); offered != own_functions_.end()) return offered->second;
    const code::Function* known = cache_->find(function);
    return known != nullptr ? cache_->package_of(*known) : nullptr;
}

// The slice by which a node with this target can run a package, where this process has it and may send it. Null: not so.
std::shared_ptr<const ByteBuffer> NodeCore::slice_for(const PackageStore& package, std::string_view triple, Forms form,
                                                      std::uint32_t& part) const {
    const auto index = package.slice_index(triple, form);
    if (!may_send(form) || !index) return nullptr;
    part = static_cast<std::uint32_t>(*index + 1);
    return package.stored_slice(*index);
}

// Sends one form of a package, where this process has it for the peer's target. False: it was not sent.
Result<bool> NodeCore::send_code(PeerState& to, PackageStore& package, Forms form, bool with_manifest, Traffic among) {
    // A client runs what its own program has: it may know the function, but takes no code.
    if (is_client(to.id)) return false;
    std::uint32_t part = 0;
    const std::shared_ptr<const ByteBuffer> slice = slice_for(package, to.triple, form, part);
    if (!slice) return false;
    const auto send_all = [&](std::uint32_t number, Bytes bytes) -> Status {
        for (std::size_t offset = 0; offset < bytes.size();) {
            ROVE_TRY(const std::size_t sent, send_piece(to, among, to.id, {package.digest(), number}, bytes, offset));
            offset += sent;
        }
        return {};
    };
    if (with_manifest) ROVE_CHECK(send_all(0, package.manifest_bytes()));
    ROVE_CHECK(send_all(part, *slice));
    return true;
}

// Gives how many of the part's bytes went, from `offset` on.
Result<std::size_t> NodeCore::send_piece(PeerState& to, Traffic among, NodeId asker, wire::CodeChunk chunk, Bytes part,
                                         std::size_t offset) {
    const Bytes piece = part.subspan(offset, std::min(kChunkBytes, part.size() - offset));
    chunk.offset = static_cast<std::uint32_t>(offset);
    chunk.total_bytes = static_cast<std::uint32_t>(part.size());
    ROVE_CHECK(send(to, among, {.kind = Kind::code, .node = asker}, raw(chunk), piece));
    to.counters.code_bytes_sent += piece.size();
    return piece.size();
}

// False: this node has no code for it, or owes that peer too much already.
bool NodeCore::answer_with_code(PeerState& from, const wire::NeedCode& need, const PackageStore& package) {
    if (is_client(need.asker) || is_client(from.id)) return false;
    CodeAnswer answer{.need = need, .package = package.digest(), .part_count = 1};
    for (const Forms form : {Forms::image, Forms::bitcode})
        if (std::uint32_t part = 0; slice_for(package, text_of(need.triple), form, part) != nullptr)
            answer.parts[answer.part_count++] = part;
    if (answer.part_count == 1 || !from.code_answers.add(answer)) return false;
    send_code_asked_for(from);
    return true;
}

// As much as the peer takes now. One piece more waits for room, and flush() goes on when it has gone.
void NodeCore::send_code_asked_for(PeerState& to) {
    while (!to.code_answers.empty() && to.outbox_of(Traffic::replies).is_empty()) {
        CodeAnswer& answer = to.code_answers.first();
        const std::uint32_t part = answer.parts[answer.part];
        const std::shared_ptr<PackageStore> package = package_with(answer.need.function);
        std::shared_ptr<const ByteBuffer> slice;
        Bytes bytes;
        if (package && package->digest() == answer.package) {
            if (part == 0)
                bytes = package->manifest_bytes();
            else if ((slice = package->stored_slice(part - 1)))
                bytes = *slice;
        }
        if (answer.offset >= bytes.size()) {  // it was evicted meanwhile
            const wire::NeedCode need = answer.need;
            to.code_answers.drop_first();
            lack(to, need);
            continue;
        }
        const auto sent =
            send_piece(to, Traffic::replies, answer.need.asker, {answer.package, part}, bytes, answer.offset);
        if (!sent) return;  // its link has ended
        answer.offset += *sent;
        if (answer.offset < bytes.size()) continue;
        answer.offset = 0;
        if (++answer.part == answer.part_count) to.code_answers.drop_first();
    }
}

void NodeCore::on_code(PeerState& from, const wire::Frame& frame) {
    const auto chunk = read<wire::CodeChunk>(frame);
    const std::size_t most = chunk.part == 0 ? wire::kManifestBytesMax : wire::kSliceBytesMax;
    if (chunk.total_bytes == 0 || chunk.total_bytes > most) return refuse_code(from, frame, "of a part over the limit");
    if (chunk.offset + frame.payload.size() > chunk.total_bytes || frame.payload.empty())
        return refuse_code(from, frame, "that lies outside its part");
    if (frame.header.node != from.my_id && frame.header.node != id()) return pass_code_on(from, frame, chunk);
    Status added;
    if (frame.payload.size() == chunk.total_bytes) {
        added = part_arrived(from, chunk, frame.payload);
    } else {
        const CodeArrival::Piece piece{chunk.package, chunk.part, chunk.offset, chunk.total_bytes, frame.payload};
        CodeArrival& arrival = frame.header.hops == 0 ? from.code_arrival : from.code_passed_on;
        if (code_arriving_bytes_ + piece.bytes.size() > kAssemblyBytesOfAllMax) drop_idle_code();
        switch (arrival.take(code_arriving_bytes_, piece, Clock::now())) {
            case CodeArrival::Took::more_to_come: return;
            case CodeArrival::Took::no_room: return ask_again_later();
            case CodeArrival::Took::no_meaning: return refuse_code(from, frame, "of a part that has another size");
            case CodeArrival::Took::whole: break;
        }
        added = part_arrived(from, chunk, arrival.taken(piece).take());
    }
    if (!added && added.error().code() == ErrorCode::overloaded) {
        from.refused_package = {chunk.package, added.error()};
        give_up_parked(from, chunk.package, added.error());
    } else if (!added) {
        refuse_code(from, frame, added.error().message());
    } else if (chunk.part == 0 && from.refused_package && from.refused_package->first == chunk.package) {
        from.refused_package.reset();  // there was room for its manifest
    }
}

// Who only passed it on is not to blame, and cannot see what it is a piece of.
void NodeCore::refuse_code(PeerState& from, const wire::Frame& frame, std::string_view what) {
    if (frame.header.hops == 0)
        return from.link->break_with(
            Error(ErrorCode::invalid, fmt::format("{} sent a code chunk {}", who(from), what)));
    complaints_.say(name(), fmt::format("dropped a code chunk {}, which {} passed on", what, who(from)));
}

// On the way that its question came. Where who asked, or a peer on the way, takes it too slowly, the call that waits for it fails.
void NodeCore::pass_code_on(PeerState& from, const wire::Frame& frame, const wire::CodeChunk& chunk) {
    PeerState* const asker = still_a_peer(passed_on_.takes_piece(from, frame.header.node, chunk, frame.payload.size()));
    if (asker == nullptr || asker->has_backlog()) return;
    (void)send_or_cut(*asker, {.kind = Kind::code, .node = frame.header.node, .hops = 1}, frame.extra, frame.payload);
}

// What nobody waits for any more makes room.
void NodeCore::drop_idle_code() {
    const TimePoint now = Clock::now();
    if (now < idle_code_dropped_at_ + kAskAgainAfter) return;
    idle_code_dropped_at_ = now;
    for (const auto& peer : peers_)
        for (CodeArrival* const arrival : {&peer->code_arrival, &peer->code_passed_on})
            arrival->drop_idle(now - kCodeWaitMax);
}

PeerState* NodeCore::still_a_peer(const PeerState* peer) const {
    const auto found =
        std::find_if(peers_.begin(), peers_.end(), [peer](const auto& each) { return each.get() == peer; });
    return found != peers_.end() ? found->get() : nullptr;
}

Status NodeCore::part_arrived(PeerState& from, const wire::CodeChunk& chunk, CodePart arrived) {
    const Digest& package = chunk.package;
    auto* const assembled = std::get_if<PackageStore::HashedSlice>(&arrived);
    const Bytes bytes = assembled != nullptr ? Bytes(*assembled->bytes) : std::get<Bytes>(arrived);
    if (chunk.part == 0) {
        ROVE_TRY(const std::shared_ptr<PackageStore> store, PackageStore::from_manifest(bytes));
        if (store->digest() != package) return fail(ErrorCode::invalid, "whose manifest is not that of its digest");
        ROVE_TRY(const std::shared_ptr<PackageStore> kept, cache_->add(store, false));
        from.code_sent.insert(package);  // it has the package, so it need not be sent it
        return {};
    }
    const std::shared_ptr<PackageStore> store = cache_->package(package);
    if (!store) return {};  // its manifest was refused, and those who wait have been told
    ROVE_CHECK(assembled != nullptr ? store->add_slice(chunk.part - 1, std::move(*assembled))
                                    : store->add_slice(chunk.part - 1, bytes));
    cache_->slices_added(package);
    return {};
}

void NodeCore::ask_for_code(PeerState* from, Parked& parked, NodeId origin) {
    // A frame of one's own names its function, so its origin is as good as any to ask.
    PeerState* whom = from != nullptr ? from : routes_.to(origin);
    if (whom == nullptr) {
        parked.cannot_run = Error(ErrorCode::unsupported, "nobody is left to ask for its code");
        return;
    }
    parked.asked_of = whom->back;
    parked.origin = origin;
    if (origin == whom->back) origin = whom->id;
    wire::NeedCode need{.function = parked.function, .asker = whom->my_id, .origin = origin, .handle = parked.handle};
    const std::string_view triple = code::host_triple();
    triple.copy(need.triple.data(), need.triple.size() - 1);
    send_or_cut(*whom, {.kind = Kind::need, .node = from != nullptr ? from->id : origin}, raw(need), {});
}

// Each peer asks for itself. A member also passes on what others ask; a client has nobody to pass on for.
bool NodeCore::speaks_for(const PeerState& from, NodeId asker) const {
    return asker == from.id || (!is_client(from.id) && home_of(asker) < std::max(1U, node_count())) ||
           is_client(from.my_id);
}

// False: there is no way on from here.
bool NodeCore::pass_on_need(const PeerState& from, PeerState& to, NodeId node, const wire::NeedCode& need) {
    // A client takes no code, so nobody has any for it. Members ask one another; who is a client of another node, or of another cluster's,
    // gives no questions to it and none from it: that node would hear of askers that it does not know.
    if (&from == &to || is_client(need.asker) || !from.is_fellow() || to.back != to.id) return false;
    const QuestionsPassedOn::Added added = passed_on_.add(from, to, need, Clock::now());
    if (added != QuestionsPassedOn::Added::asked) return added == QuestionsPassedOn::Added::asked_once;
    if (send_or_cut(to, {.kind = Kind::need, .node = node}, raw(need), {})) return true;
    passed_on_.take_back(from, to, need);
    return false;
}

// Questions that were passed on to a peer that is gone are answered as those that nobody can answer.
void NodeCore::lack_what_was_asked_of(const PeerState& gone) {
    for (const QuestionsPassedOn::Question& each : passed_on_.without(gone))
        if (PeerState* const from = still_a_peer(each.from)) lack(*from, each.need);
}

// The way that the question came: the asker believes only whom it asked.
void NodeCore::lack(PeerState& from, const wire::NeedCode& need) noexcept {
    send_or_cut(from, {.kind = Kind::lack, .node = need.asker}, raw(need), {});
}

void NodeCore::on_need(PeerState& from, const wire::Frame& frame) {
    auto need = read<wire::NeedCode>(frame);
    if (!speaks_for(from, need.asker)) {
        from.link->break_with(Error(
            ErrorCode::invalid, fmt::format("{} asked for code in the name of {}", who(from), who(need.asker, {}))));
        return;
    }
    if (frame.header.node != from.my_id && frame.header.node != id())
        if (PeerState* to = routes_.to(frame.header.node);
            to != nullptr && pass_on_need(from, *to, frame.header.node, need))
            return;
    if (need.function == FunctionId{}) {
        // It gave this handle and forgot it since: tell it what it meant, and name the function from now on.
        if (const auto bound = from.bindings.function_of(need.handle)) {
            const FunctionId named = *bound;
            // A resident function is not forgotten: what it gave a handle for had travelled.
            const auto shipped = shipped_as_.find(named);
            need.function = shipped != shipped_as_.end() ? shipped->second : named;
            from.bindings.forget(named);
            send_or_cut(from, {.kind = Kind::bind, .flags = wire::kNamed, .handle = need.handle, .node = from.id},
                        need.function.raw(), {});
        }
    }
    const std::shared_ptr<PackageStore> package = package_with(need.function);
    if (package && answer_with_code(from, need, *package)) return;
    PeerState* origin = need.origin != from.my_id && need.origin != id() ? routes_.to(need.origin) : nullptr;
    if (origin != nullptr && pass_on_need(from, *origin, need.origin, need)) return;
    lack(from, need);
}

void NodeCore::on_lack(PeerState& from, const wire::Frame& frame) {
    const auto need = read<wire::NeedCode>(frame);
    if (frame.header.node != from.my_id && frame.header.node != id()) {
        if (PeerState* const asker = still_a_peer(passed_on_.answered(from, frame.header.node, need)))
            lack(*asker, need);
        return;
    }
    const auto answer = [&](std::optional<Parked>& parked) {
        if (!parked || !parked->asked || parked->asked_of != from.back ||
            !parked->waits_for(need.function, need.handle))
            return;
        // The call came back to this node: who was asked does not ask on in its direction.
        const PeerState* const origin = routes_.to(parked->origin);
        if (origin != nullptr && origin != &from) return ask_for_code(nullptr, *parked, parked->origin);
        parked->cannot_run = Error(ErrorCode::unsupported,
                                   fmt::format("nobody on its way has a form of its code for {}", code::host_triple()));
    };
    for (const std::shared_ptr<PeerState>& peer : peers_) answer(peer->parked);
    answer(local_parked_);
}

// A package was not taken: the calls that wait for it, and that its sender was asked for or sent it ahead of, are told why.
void NodeCore::give_up_parked(PeerState& from, const Digest& package, const Error& why) {
    for (std::optional<Parked>* parked : {&from.parked, &local_parked_}) {
        if (!*parked || (parked != &from.parked && (*parked)->asked_of != from.back)) continue;
        const auto offered = package_with((*parked)->function);
        if (!offered || offered->digest() == package) (*parked)->cannot_run = why;
    }
}

// Code was dropped because too much is arriving at once: who waits asks for it again, when there may be room.
void NodeCore::ask_again_later() {
    const TimePoint later = Clock::now() + kAskAgainAfter;
    const auto mark = [later](std::optional<Parked>& parked) {
        if (parked && parked->asked) parked->ask_again = later;
    };
    mark(local_parked_);
    for (const auto& peer : peers_) mark(peer->parked);
}

// With kNamed: "your handle, which I used and you no longer know, meant this function". It is believed only where a call by that handle
// waits, because this node has asked then.
void NodeCore::on_bind(PeerState& from, const wire::Frame& frame) {
    const FunctionId function = FunctionId::from(frame.extra.first<sizeof(FunctionId)>());
    if ((frame.header.flags & wire::kNamed) == 0) return from.bindings.learn(function, frame.header.handle);
    if (!from.parked || from.parked->function != FunctionId{} || from.parked->handle != frame.header.handle) return;
    from.parked->function = function;
    from.aliases.learn(frame.header.handle, function);
}

// A worker of the cache loads it and answers: nobody else's calls wait meanwhile. Everybody's packages are loaded by that one thread, so
// its answer waits in the outbox, within the outbox's bounds, and the thread waits for no peer to take it.
void NodeCore::on_load(const PeerState& from, const wire::Frame& frame) {
    const Digest digest = Digest::from(frame.extra.first<sizeof(Digest)>());
    const std::shared_ptr<PackageStore> package = cache_->package(digest);
    const wire::FrameHeader to = frame.header;
    if (!package) {
        const bool refused = from.refused_package && from.refused_package->first == digest;
        return end_with_error(to, refused ? from.refused_package->second
                                          : Error(ErrorCode::invalid,
                                                  fmt::format("{} has not received package {}", name(), digest.hex())));
    }
    const Status queued = cache_->load_later(package, [this, to, package](const Result<LoadReport>& loaded) {
        if (!loaded) {
            reply_error(to, loaded.error());
            return;
        }
        const std::string& interface = package->manifest().name;
        std::string lines;  // docs/frames.md, "A load is answered"
        for (const std::string& replaced : loaded->replaced) {
            log().info("{}: interface {} takes over {}; what arrived before keeps the old one", name(), interface,
                       replaced);
            lines += replaced + '\n';
        }
        lines += '\n';
        for (const std::string& kept : loaded->kept) {
            log().info("{}: interface {} does not take over '{}', which is the node's own; preload it for that", name(),
                       interface, kept);
            lines += kept + '\n';
        }
        const Bytes answer = rove::as_bytes(lines).first(std::min(lines.size(), wire::kPayloadBytesMax));
        const Hold hold(*this);
        (void)end_with_reply(to, RanAs::image, answer, nullptr);
    });
    if (!queued) end_with_error(to, queued.error());
}

}  // namespace rove
