#include "peer/code_exchange.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/transient.hpp"
#include "peer/names.hpp"
#include "wire/kinds.hpp"

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

// Of a frame that has passed the checks.
template <Kind kKind, typename Extension>
Extension read(const wire::Frame& frame) {
    static_assert(wire::rule_of(kKind).extension.bytes == sizeof(Extension));
    return wire::copy_of<Extension>(frame.extra);
}

std::string_view text_of(const std::array<char, 32>& padded) {
    return {padded.data(), strnlen(padded.data(), padded.size())};
}

}  // namespace

// The package of a function, wherever this process has it from: its own program, or what it was sent.
std::shared_ptr<PackageStore> CodeExchange::package_with(const FunctionId& function) const {
    if (const std::shared_ptr<PackageStore> own = own_functions_.package_of(function)) return own;
    const code::Function* known = cache_->find(function);
    return known != nullptr ? cache_->package_of(*known) : nullptr;
}

// The slice by which a node with this target can run a package, where this process has it and may send it. Null: not so.
std::shared_ptr<const ByteBuffer> CodeExchange::slice_for(const PackageStore& package, std::string_view triple,
                                                          Forms form, std::uint32_t& item) const {
    const auto index = package.slice_index(triple, form);
    if (!includes(options_.forms, form) || !index) return nullptr;
    item = static_cast<std::uint32_t>(*index + 1);
    return package.stored_slice(*index);
}

// Sends one form of a package, where this process has it for the peer's target. False: it was not sent.
Result<bool> CodeExchange::send(PeerState& to, PackageStore& package, Forms form, bool with_manifest, Traffic among) {
    // A client runs what its own program has: it may know the function, but takes no code.
    if (is_client(to.id())) return false;
    std::uint32_t item = 0;
    const std::shared_ptr<const ByteBuffer> slice = slice_for(package, to.identity().triple, form, item);
    if (!slice) return false;
    const auto send_all = [&](std::uint32_t number, Bytes bytes) REQUIRES(lock_of<EngineLock>) -> Status {
        for (std::size_t offset = 0; offset < bytes.size();) {
            ROVE_TRY(const std::size_t sent, send_piece(to, among, to.id(), {package.digest(), number}, bytes, offset));
            offset += sent;
        }
        return {};
    };
    if (with_manifest) ROVE_CHECK(send_all(0, package.manifest_bytes()));
    ROVE_CHECK(send_all(item, *slice));
    return true;
}

// Returns how many of the item's bytes, from `offset` on, were sent.
Result<std::size_t> CodeExchange::send_piece(PeerState& to, Traffic among, NodeId asker, wire::CodeChunk chunk,
                                             Bytes item, std::size_t offset) {
    const Bytes piece = item.subspan(offset, std::min(kChunkBytes, item.size() - offset));
    chunk.offset = static_cast<std::uint32_t>(offset);
    chunk.total_bytes = static_cast<std::uint32_t>(item.size());
    ROVE_CHECK(sender_.send(to, among, {.kind = Kind::code, .node = asker}, raw(chunk), piece));
    to.count_code_sent(piece.size());
    return piece.size();
}

// False: this node has no code for it, or owes that peer too much already.
bool CodeExchange::answer(PeerState& from, const wire::NeedCode& need, const PackageStore& package) {
    if (is_client(need.asker) || is_client(from.id())) return false;
    CodeAnswer answer{.need = need, .package = package.digest(), .item_count = 1, .is_all = true};
    for (const Forms form : {Forms::image, Forms::bitcode})
        if (std::uint32_t item = 0; slice_for(package, text_of(need.triple), form, item) != nullptr)
            answer.items[answer.item_count++] = item;
        else if (package.slice_index(text_of(need.triple), form))
            answer.is_all = false;
    if (answer.item_count == 1 || !from.code.answers.add(answer)) return false;
    answer_more(from);
    return true;
}

// Sends as many pieces as the peer takes now. One more piece waits for room, and the next flush continues when that was sent. The asking node
// may run only the form that is left out; then it gets a lack as well.
void CodeExchange::answer_more(PeerState& to) {
    while (!to.code.answers.empty() && to.outbox_of(Traffic::prompt).is_empty()) {
        CodeAnswer& answer = to.code.answers.first();
        const std::uint32_t item = answer.items[answer.item];
        const std::shared_ptr<PackageStore> package = package_with(answer.need.function);
        std::shared_ptr<const ByteBuffer> slice;
        Bytes bytes;
        if (package && package->digest() == answer.package) {
            if (item == 0)
                bytes = package->manifest_bytes();
            else if (slice = package->stored_slice(item - 1); slice)
                bytes = *slice;
        }
        if (answer.offset >= bytes.size()) {  // it has been evicted since
            const wire::NeedCode need = answer.need;
            to.code.answers.drop_first();
            lack(to, need);
            continue;
        }
        const auto sent =
            send_piece(to, Traffic::prompt, answer.need.asker, {answer.package, item}, bytes, answer.offset);
        if (!sent) return;  // its link has ended
        answer.offset += *sent;
        if (answer.offset < bytes.size()) continue;
        answer.offset = 0;
        if (++answer.item < answer.item_count) continue;
        const CodeAnswer sent_whole = answer;
        to.code.answers.drop_first();
        if (!sent_whole.is_all) lack(to, sent_whole.need);
    }
}

void CodeExchange::on_code(PeerState& from, const wire::Frame& frame) {
    const auto chunk = read<Kind::code, wire::CodeChunk>(frame);
    const std::size_t most = chunk.item == 0 ? wire::kManifestBytesMax : wire::kSliceBytesMax;
    if (chunk.total_bytes == 0 || chunk.total_bytes > most) return refuse(from, frame, "of an item over the limit");
    if (chunk.offset + frame.payload.size() > chunk.total_bytes || frame.payload.empty())
        return refuse(from, frame, "that lies outside its item");
    if (routes_.sends_on(from, frame.header)) return pass_on(from, frame, chunk);
    is_arriving(from, chunk.package);
    Status added;
    if (frame.payload.size() == chunk.total_bytes) {
        added = item_arrived(from, chunk, frame.payload);
    } else {
        const CodeArrival::Piece piece{chunk.package, chunk.item, chunk.offset, chunk.total_bytes, frame.payload};
        CodeArrival& arrival = frame.header.hops == 0 ? from.code.arrival : from.code.passed_on;
        if (arriving_bytes_ + piece.bytes.size() > kAssemblyBytesOfAllMax) drop_idle();
        switch (arrival.take(arriving_bytes_, piece, Clock::now())) {
            case CodeArrival::Took::more_to_come: return;
            case CodeArrival::Took::no_room: return ask_again_later(from);
            case CodeArrival::Took::no_meaning: return refuse(from, frame, "of an item that has another size");
            case CodeArrival::Took::whole: break;
        }
        added = item_arrived(from, chunk, arrival.taken(piece).take());
    }
    if (!added && is_transient(added.error())) {
        from.code.refuse(chunk.package, added.error());
        give_up_parked(from, chunk.package, added.error());
    } else if (!added) {
        refuse(from, frame, added.error().message());
    } else if (chunk.item == 0) {
        from.code.accept(chunk.package);  // there was room for its manifest
    }
}

// A peer that only passed the chunk on is not to blame: it cannot tell what the chunk is a piece of.
void CodeExchange::refuse(PeerState& from, const wire::Frame& frame, std::string_view what) {
    if (frame.header.hops == 0)
        return from.link()->break_with(
            Error(ErrorCode::invalid, fmt::format("{} sent a code chunk {}", who(from), what)));
    complaints_.say(name_(), fmt::format("dropped a code chunk {}, which {} passed on", what, who(from)));
}

// Passes a piece to the peer that passed on the question. If the asking node, or a peer between, takes pieces too slowly, the call fails.
void CodeExchange::pass_on(PeerState& from, const wire::Frame& frame, const wire::CodeChunk& chunk) {
    const Asker whose = passed_on_.takes_piece(from, frame.header.node, chunk, frame.payload.size(), Clock::now());
    if (whose.is_nobody()) return;
    const wire::FrameHeader header{.kind = Kind::code, .node = frame.header.node, .hops = 1};
    if (whose.peer == nullptr)
        return (void)others_.leave(whose.engine, LeftForEngine::What::code, {header, frame.extra, frame.payload},
                                   whose.name);
    const std::shared_ptr<PeerState> asker = peers_.find(whose.peer);
    if (asker == nullptr || asker->has_backlog()) return;
    (void)sender_.send_or_cut(*asker, header, frame.extra, frame.payload);
}

// Drops pieces for which nothing waits any more, to make room.
void CodeExchange::drop_idle() {
    const TimePoint now = Clock::now();
    if (now < idle_dropped_at_ + kAskAgainAfter) return;
    idle_dropped_at_ = now;
    for (const auto& peer : peers_)
        for (CodeArrival* const arrival : {&peer->code.arrival, &peer->code.passed_on})
            arrival->drop_idle(now - kCodeWaitMax);
}

Status CodeExchange::item_arrived(PeerState& from, const wire::CodeChunk& chunk, CodeItem arrived) {
    const Digest& package = chunk.package;
    auto* const assembled = std::get_if<PackageStore::HashedSlice>(&arrived);
    const Bytes bytes = assembled != nullptr ? Bytes(*assembled->bytes) : std::get<Bytes>(arrived);
    if (chunk.item == 0) {
        ROVE_TRY(const std::shared_ptr<PackageStore> store, PackageStore::from_manifest(bytes));
        if (store->digest() != package) return fail(ErrorCode::invalid, "whose manifest is not that of its digest");
        ROVE_TRY(const std::shared_ptr<PackageStore> kept, cache_->add(store, false, from.back()));
        from.code.sent.insert(package);  // it has the package, so it need not be sent it
        return {};
    }
    const std::shared_ptr<PackageStore> store = cache_->package(package);
    if (!store) return {};  // its manifest was refused, and those who wait have been told
    ROVE_CHECK(assembled != nullptr ? store->add_slice(chunk.item - 1, std::move(*assembled))
                                    : store->add_slice(chunk.item - 1, bytes));
    cache_->slices_added(package);
    const bool runs_here = std::ranges::any_of(std::array{Forms::image, Forms::bitcode}, [&](Forms form) {
        return includes(options_.forms, form) &&
               store->slice_index(code::host_triple(), form) == std::size_t{chunk.item} - 1;
    });
    if (runs_here) has_come(package);
    return {};
}

// The origin of a call, by the name that it has where the question is sent.
static NodeId named_origin(const PeerState& asked, const Parked& parked) REQUIRES(lock_of<EngineLock>) {
    return parked.origin() == asked.back() ? asked.id() : parked.origin();
}

void CodeExchange::ask(PeerState* from, Parked& parked, NodeId origin) {
    // A frame of one's own names its function, so its origin is as good as any to ask.
    PeerState* whom = from != nullptr ? from : routes_.to(origin);
    if (whom == nullptr) {
        parked.refuse(Error(ErrorCode::unsupported, "nobody is left to ask for its code"));
        return;
    }
    parked.was_asked(whom->back(), origin);
    origin = named_origin(*whom, parked);
    wire::NeedCode need{.function = parked.function, .asker = whom->my_id(), .origin = origin, .handle = parked.handle};
    const std::string_view triple = code::host_triple();
    triple.copy(need.triple.data(), need.triple.size() - 1);
    sender_.send_or_cut(*whom, {.kind = Kind::need, .node = from != nullptr ? from->id() : origin}, raw(need), {});
}

// Each peer asks for itself. A member also passes on what others ask; a client has nobody to pass on for.
bool CodeExchange::speaks_for(const PeerState& from, NodeId asker) const {
    return asker == from.id() || (!is_client(from.id()) && home_of(asker) < std::max(1U, routes_.node_count())) ||
           is_client(from.my_id());
}

// Passes the question on, or leaves it to the engine with the link towards that node. False: there is no way on from here.
bool CodeExchange::pass_on_towards(const PeerState& from, NodeId node, const wire::NeedCode& need) {
    // A client takes no code, so its questions are not passed on. Members ask one another; a client of another node passes no questions to that
    // node and none from it, because the node would be asked in the name of nodes that it does not know.
    if (is_client(need.asker) || !from.is_fellow()) return false;
    if (PeerState* const to = routes_.to(node); to != nullptr) return pass_on_need(from, *to, node, need);
    const auto engine = routes_.with_way(node);
    return engine && others_.leave(*engine, LeftForEngine::What::need,
                                   {{.kind = Kind::need, .node = node}, raw(need), {}}, from.back());
}

bool CodeExchange::pass_on_need(const Asker& from, PeerState& to, NodeId node, const wire::NeedCode& need) {
    if (from == &to || to.back() != to.id()) return false;
    const QuestionsPassedOn::Added added = passed_on_.add(from, to, need, Clock::now());
    if (added != QuestionsPassedOn::Added::asked) return added == QuestionsPassedOn::Added::asked_once;
    if (sender_.send_or_cut(to, {.kind = Kind::need, .node = node}, raw(need), {})) return true;
    passed_on_.take_back(from, to, need);
    return false;
}

// Questions that were passed on to a peer that has left are answered with a lack.
void CodeExchange::peer_left(const PeerState& gone) {
    for (const QuestionsPassedOn::Question& each : passed_on_.without(gone)) lack(each.from, each.need);
}

// Sent to the peer that has passed on the question: the asker accepts a lack only from the peer that it asked.
void CodeExchange::lack(PeerState& from, const wire::NeedCode& need) noexcept {
    sender_.send_or_cut(from, {.kind = Kind::lack, .node = need.asker}, raw(need), {});
}

void CodeExchange::lack(const Asker& to, const wire::NeedCode& need) noexcept {
    if (to.peer == nullptr)
        (void)others_.leave(to.engine, LeftForEngine::What::lack,
                            {{.kind = Kind::lack, .node = need.asker}, raw(need), {}}, to.name);
    else if (const std::shared_ptr<PeerState> from = peers_.find(to.peer))
        lack(*from, need);
}

void CodeExchange::on_left(const LeftForEngine& left) {
    using What = LeftForEngine::What;
    const wire::Frame frame = wire::frame_in(left.frame);
    if (left.what == What::need) {
        PeerState* const to = routes_.to(frame.header.node);
        if (to == nullptr || !pass_on_need({left.by.engine, left.by.peer}, *to, frame.header.node,
                                           wire::copy_of<wire::NeedCode>(frame.extra)))
            (void)others_.leave(left.by.engine, What::need_not_passed, frame, left.by.peer);
        return;
    }
    PeerState* const asker = routes_.to(left.by.peer);
    if (asker == nullptr || asker->back() != left.by.peer) return;  // it has gone
    if (left.what == What::code) {
        if (!asker->has_backlog()) (void)sender_.send_or_cut(*asker, frame.header, frame.extra, frame.payload);
        return;
    }
    const auto need = wire::copy_of<wire::NeedCode>(frame.extra);
    if (left.what == What::lack) return lack(*asker, need);
    answer_here(*asker, need, frame.header.node != need.origin);
}

void CodeExchange::on_need(PeerState& from, const wire::Frame& frame) {
    const auto need = read<Kind::need, wire::NeedCode>(frame);
    if (!speaks_for(from, need.asker)) {
        from.link()->break_with(Error(
            ErrorCode::invalid, fmt::format("{} asked for code in the name of {}", who(from), who(need.asker, {}))));
        return;
    }
    if (routes_.sends_on(from, frame.header) && pass_on_towards(from, frame.header.node, need)) return;
    answer_here(from, need, true);
}

// ask_origin: the origin of the call may be asked, because it has not been.
void CodeExchange::answer_here(PeerState& from, wire::NeedCode need, bool ask_origin) {
    if (need.function == FunctionId{}) {
        // It gave this handle and forgot it since: tell it what it meant, and name the function from now on.
        if (const auto bound = from.code.bindings.function_of(need.handle)) {
            const FunctionId named = *bound;
            // A resident function is not forgotten: what it gave a handle for had travelled.
            need.function = own_functions_.shipped_as(named);
            from.code.bindings.forget(named, need.handle);
            sender_.send_or_cut(from,
                                {.kind = Kind::bind, .flags = wire::kMeant, .handle = need.handle, .node = from.id()},
                                need.function.raw(), {});
        }
    }
    const std::shared_ptr<PackageStore> package = package_with(need.function);
    if (package && answer(from, need, *package)) return;
    const bool has_origin = need.origin != from.my_id() && need.origin != routes_.id();
    if (ask_origin && has_origin && pass_on_towards(from, need.origin, need)) return;
    lack(from, need);
}

void CodeExchange::on_lack(PeerState& from, const wire::Frame& frame) {
    const auto need = read<Kind::lack, wire::NeedCode>(frame);
    if (routes_.sends_on(from, frame.header)) {
        if (const Asker asker = passed_on_.answered(from, frame.header.node, need); !asker.is_nobody())
            lack(asker, need);
        return;
    }
    const auto answer = [&](std::optional<Parked>& parked) REQUIRES(lock_of<EngineLock>) {
        if (!parked || !parked->waits_for_code_of(from.back()) || !parked->is_about(need.function, need.handle)) return;
        if (need.origin != named_origin(from, *parked)) return;  // it answers the question of another one's call
        if (parked->code_has_come())
            return;  // a node that has sent one form reports the other as lacking, even if the first has been evicted here since
        const std::shared_ptr<PackageStore> package = package_with(parked->function);
        std::uint32_t item = 0;
        for (const Forms form : {Forms::image, Forms::bitcode})  // what came before this is enough
            if (package && slice_for(*package, code::host_triple(), form, item) != nullptr) return;
        // The call came back to this node: the peer that was asked does not ask on in its direction.
        const PeerState* const origin = routes_.to(parked->origin());
        if (origin != nullptr && origin != &from) return ask(nullptr, *parked, parked->origin());
        // It has sent a form that ran before and was evicted: after that form, it may be saying that it lacks the other.
        if (package && from.code.sent.contains(package->digest()) && parked->ask_once_more(Clock::now())) return;
        parked->refuse(
            package ? cache_->why_incomplete(*package)
                    : Error(ErrorCode::unsupported,
                            fmt::format("nobody on its way has a form of its code for {}", code::host_triple())));
    };
    for (PeerState* const peer : peers_.warm()) answer(peer->calls.parked);  // no others have any: may_cool()
    answer(local_parked_);
}

// A package was not taken: ends the calls that wait for it, if its sender was asked for it or had sent it ahead of them.
void CodeExchange::give_up_parked(PeerState& from, const Digest& package, const Error& why) {
    for (std::optional<Parked>* parked : {&from.calls.parked, &local_parked_}) {
        if (!*parked || !(*parked)->waits_for_code()) continue;
        if (parked != &from.calls.parked && !(*parked)->waits_for_code_of(from.back())) continue;
        const auto offered = package_with((*parked)->function);
        if (!offered || offered->digest() == package) (*parked)->refuse(why);
    }
}

template <typename Tell>
void CodeExchange::tell_parked(const Tell& tell) {
    if (local_parked_) tell(*local_parked_);
    for (PeerState* const peer : peers_.warm())  // as above
        if (peer->calls.parked) tell(*peer->calls.parked);
}

// Code was dropped because too much is arriving at once: the calls for which its sender was asked ask again later, when there may be room. Not
// those for which others were: of what a peer sends unasked they would know nothing.
void CodeExchange::ask_again_later(const PeerState& sender) {
    tell_parked([&sender, now = Clock::now()](Parked& parked) REQUIRES(lock_of<EngineLock>) {
        if (parked.waits_for_code_of(sender.back())) parked.was_dropped(now);
    });
}

// Only for a client's own call, which no call of another node follows: in a member's mailbox, and in this node's own, such calls would wait
// for as long as somebody keeps sending pieces.
void CodeExchange::is_arriving(PeerState& from, const Digest& package) {
    std::optional<Parked>& parked = from.calls.parked;
    if (!is_client(from.id()) || !parked || !parked->waits_for_code_of(from.back())) return;
    if (const auto store = package_with(parked->function); store && store->digest() == package)
        parked->is_arriving(Clock::now());
}

// A form that runs here is whole. Those that wait for its package run with it, or ask again, if it has made way for others' before they were
// looked at.
void CodeExchange::has_come(const Digest& package) {
    tell_parked([&, now = Clock::now()](Parked& parked) REQUIRES(lock_of<EngineLock>) {
        if (!parked.waits_for_code()) return;
        if (const auto store = package_with(parked.function); store && store->digest() == package) parked.has_come(now);
    });
}

// With kMeant: "your handle, which I used and you no longer know, meant this function". It is believed only where a call by that handle
// waits, because this node has asked then.
void CodeExchange::on_bind(PeerState& from, const wire::Frame& frame) {
    const FunctionId function = FunctionId::from(frame.extra.first<sizeof(FunctionId)>());
    if ((frame.header.flags & wire::kMeant) == 0) return from.code.bindings.learn(function, frame.header.handle);
    if (!from.calls.parked || from.calls.parked->function != FunctionId{} ||
        from.calls.parked->handle != frame.header.handle)
        return;
    from.calls.parked->function = function;
    from.code.aliases.learn(frame.header.handle, function);
}

// Refuses a package that the peer cannot run.
Status CodeExchange::check_forms(const PeerState& peer, const PackageStore& package) const {
    if (peer.code.sent.contains(package.digest())) return {};
    const bool fits =
        (includes(options_.forms, Forms::image) && package.slice_index(peer.identity().triple, Forms::image)) ||
        (includes(options_.forms, Forms::bitcode) && package.slice_index(peer.identity().triple, Forms::bitcode));
    if (fits) return {};
    std::string targets;
    bool is_for_peer = false;
    for (const wire::Slice& slice : package.manifest().slices) {
        targets += fmt::format(" {} ({})", slice.triple, wire::to_string(slice.form));
        is_for_peer = is_for_peer || slice.triple == peer.identity().triple;
    }
    if (is_for_peer)
        return fail(ErrorCode::unsupported,
                    "package {} has{}, and this program sends {} only (--forms, NodeOptions::forms); let it send both",
                    package.manifest().name, targets, options_.forms == Forms::image ? "image" : "bitcode");
    return fail(ErrorCode::unsupported,
                "package {} has no form for {}, the target of {}; it has{}; build it with --target {}",
                package.manifest().name, peer.identity().triple, who(peer), targets, peer.identity().triple);
}

}  // namespace rove
