#include "engine/caller.hpp"

#include "peer/begun_call.hpp"
#include "peer/names.hpp"
#include "program/residents.hpp"
#include "wire/memory.hpp"

namespace rove {

using fabric::Traffic;
using wire::Kind;

namespace {

// How many times one call meets a peer again whose link ends at once.
constexpr unsigned kMeetingsPerCall = 3;
// Extensions kept ready: at 64 KiB at most, 64 MiB.
constexpr std::size_t kInlineCodesMax = 1024;

Error too_large(std::string_view name, std::size_t bytes) {
    return {ErrorCode::invalid, fmt::format("{}: a payload of {} bytes is over the limit of {}; send it in pieces",
                                            name, bytes, wire::kPayloadBytesMax)};
}

Error too_large_in_parts(std::string_view name, std::size_t bytes) {
    return {ErrorCode::invalid,
            fmt::format("{}: {} bytes of arguments are over the limit of {}; put them into a buffer there", name, bytes,
                        wire::kMessageBytesMax)};
}

// Counts the frame of a call, a post, a batch or a ping. `body_bytes`: its extension and payload.
void note_sent(PeerState& peer, std::size_t body_bytes, bool wants_reply) REQUIRES(lock_of<EngineLock>) {
    peer.count_call(static_cast<std::uint32_t>(wire::kHeaderBytes + body_bytes));
    peer.sends.note_sent(wants_reply);
}

}  // namespace

Result<const detail::Callable::Code*> complete(Callee& callee, const detail::Callable& callable) {
    ROVE_TRY(const detail::Callable::Code* code, detail::code_of(callable));
    if (code->package) {
        callee.package = &code->package;
        callee.shipped = &code->shipped;
    } else {
        callee.not_shipped = &callable;
    }
    return code;
}

Status Caller::ready_to_send(const PeerPointer& peer, Lock& lock, std::size_t payload_bytes, Deadline deadline) {
    ROVE_CHECK(in_time(deadline, *peer));
    // The frame and what may have to be in it: a name, or code that is not too large to be inlined.
    const std::size_t bytes = wire::kHeaderBytes + sizeof(FunctionId) + payload_bytes;
    if (peer->clear_way() && peer->link()->has_room(Traffic::calls, bytes)) return {};
    ROVE_CHECK(no_frame_begun(*peer));
    ROVE_CHECK(make_alive(peer, lock, deadline));
    return rooms_.wait(*peer, lock, Traffic::calls, bytes, deadline, {});
}

// Refuses to send where this thread is filling a frame for the peer: the send would wait for that frame for ever.
Status Caller::no_frame_begun(const PeerState& peer) {
    if (!peer.sends.has_open_frame_of_this_thread()) return {};
    return fail(ErrorCode::invalid, "a frame for {} that this thread has begun is neither posted nor dropped",
                who(peer));
}

// The fast path: the peer knows the function, and there is room.
std::optional<CallId> Caller::send_at_once(PeerState& peer, const Outgoing& outgoing) {
    const FunctionId& function = *outgoing.callee.id;
    const Bindings::Bound& bound = peer.code.bindings.recent(function);
    if (!peer.clear_way() || bound.function != function) return std::nullopt;
    const std::size_t bytes = wire::kHeaderBytes + outgoing.payload.size();
    std::byte* frame = peer.link()->reserve(Traffic::calls, bytes);
    if (frame == nullptr) return std::nullopt;
    CallId id{0, 0};
    if (outgoing.context.wants_reply) {
        const Result<CallId> begun = own_calls_.table().begin(&peer);
        if (!begun) return std::nullopt;
        id = *begun;
    }
    const Bytes payload = outgoing.payload.whole();
    copy_bytes(frame + wire::kHeaderBytes, payload.data(), payload.size());
    note_sent(peer, outgoing.payload.size(), outgoing.context.wants_reply);
    wire::FrameHeader header = wire::header_of(made_by(peer.my_id(), id, outgoing.context));
    header.body_bytes = static_cast<std::uint32_t>(outgoing.payload.size());
    header.handle = bound.handle;
    peer.link()->publish(Traffic::calls, header);
    if (peer.link()->by_messages()) lead_.wake();
    return id;
}

// The fast path; nothing is set up here for the others.
Result<CallId> Caller::call(const PeerPointer& peer, const Outgoing& outgoing) {
    const bool plain = outgoing.payload.is_whole() && outgoing.payload.size() <= wire::kPayloadBytesMax &&
                       outgoing.sending != Sending::always_inlined && !outgoing.deadline;
    if (plain) {
        const Hold hold(lead_.mutex());
        std::optional<CallId> sent;  // not initialised by the call: the attribute is for statements
        [[clang::always_inline]] sent = send_at_once(*peer, outgoing);
        if (sent) return *sent;
    }
    return call_any(peer, outgoing);
}

[[gnu::noinline]] Result<CallId> Caller::call_any(const PeerPointer& peer, const Outgoing& outgoing) {
    if (outgoing.payload.size() > wire::kMessageBytesMax)
        return tl::unexpected<Error>(too_large_in_parts(outgoing.callee.name, outgoing.payload.size()));
    if (!outgoing.payload.is_whole() && outgoing.payload.size() <= wire::kPayloadBytesMax) {
        ByteBuffer room;
        Outgoing joined = outgoing;
        joined.payload = outgoing.payload.joined(room);
        return call(peer, joined);
    }
    Hold hold(lead_.mutex());
    ROVE_CHECK(in_time(outgoing.deadline, *peer));
    const bool whole = outgoing.payload.size() <= wire::kPayloadBytesMax;
    if (outgoing.sending != Sending::always_inlined && whole) {
        if (const auto sent = send_at_once(*peer, outgoing))
            return own_calls_.sent_within(*sent, outgoing.context.wants_reply, outgoing.deadline);
    }
    const Result<CallId> sent =
        whole ? call_whole(peer, hold.lock(), outgoing, nullptr) : call_in_parts(peer, hold.lock(), outgoing);
    if (sent) (void)own_calls_.sent_within(*sent, outgoing.context.wants_reply, outgoing.deadline);
    return sent;
}

// Sends the call with its payload, for which it waits for room, or (`staged`) with the number of a payload that has been sent in parts: then there
// is room.
Result<CallId> Caller::call_whole(const PeerPointer& peer, Lock& lock, const Outgoing& outgoing,
                                  const wire::Staged* staged) {
    const Callee& callee = outgoing.callee;
    const bool whole = staged == nullptr;
    const Bytes payload = whole ? outgoing.payload.whole() : std::as_bytes(std::span(staged, 1));
    if (whole) ROVE_CHECK(ready_to_send(peer, lock, payload.size(), outgoing.deadline));
    const std::optional<std::uint32_t> handle = peer->code.bindings.handle_of(*callee.id);
    if (whole && !is_client(peer->id()) &&  // which takes no code
        (outgoing.sending == Sending::always_inlined ||
         (outgoing.sending == Sending::inlined && !handle && peer->code.count_inline(*callee.id))))
        return call_inline(*peer, outgoing);
    if (whole && handle) {
        if (const auto sent = send_at_once(*peer, outgoing)) return *sent;  // there is room by now
    }
    const bool is_new_there = callee.package != nullptr && *callee.package && !handle;
    if (is_new_there) ROVE_CHECK(exchange_.check_forms(*peer, **callee.package));
    // Before the call is sent: both need memory, and a call that fails for lack of memory must not run.
    if (is_new_there && kept_last_ != *callee.package) {
        own_functions_.keep(*callee.package);
        kept_last_ = *callee.package;
    }
    if (callee.shipped != nullptr) own_functions_.note_shipped(*callee.id, *callee.shipped);
    ROVE_TRY(BegunCall begun, BegunCall::in(own_calls_.table(), peer.get(), outgoing.context.wants_reply));
    const CallId id = begun.id();
    if (CallSlot* const slot = own_calls_.table().flying(id); slot != nullptr && outgoing.context.wants_reply)
        slot->not_shipped = callee.not_shipped;
    ROVE_CHECK(send_call(*peer, callee, handle, made_by(peer->my_id(), id, outgoing.context), payload, !whole));
    return begun.sent();
}

// The code is sent in the call; it is compared there with what arrived before, so that it is loaded once.
Result<CallId> Caller::call_inline(PeerState& peer, const Outgoing& outgoing) {
    ROVE_TRY(const ByteBuffer* code, inline_code(peer, *outgoing.callee.id, *outgoing.callee.package));
    if (code->size() + outgoing.payload.size() > wire::kFrameBytesMax - wire::kHeaderBytes)
        return tl::unexpected<Error>(too_large(outgoing.callee.name, outgoing.payload.size()));
    ROVE_TRY(BegunCall begun, BegunCall::in(own_calls_.table(), &peer, outgoing.context.wants_reply));
    const wire::NamedCall frame(made_by(peer.my_id(), begun.id(), outgoing.context), wire::kInline, *code);
    note_sent(peer, frame.extra.size() + outgoing.payload.size(), outgoing.context.wants_reply);
    peer.code.bindings.expect();
    ROVE_CHECK(sender_.send(peer, Traffic::calls, frame.header, frame.extra, outgoing.payload.whole()));
    return begun.sent();
}

Result<const ByteBuffer*> Caller::inline_code(PeerState& peer, const FunctionId& function,
                                              const std::shared_ptr<PackageStore>& whole) {
    if (const auto made = inline_codes_.find(function); made != inline_codes_.end()) return &made->second;
    const PackageStore& package = *whole;
    const std::string& name = package.manifest().name;
    const auto slice = package.slice_index(peer.identity().triple, Forms::image);
    const std::shared_ptr<const ByteBuffer> bytes = slice ? package.stored_slice(*slice) : nullptr;
    if (!bytes)
        return fail(ErrorCode::unsupported,
                    "package {} has no image for {}, and no other form travels inline; send it cached", name,
                    peer.identity().triple);
    const wire::InlineCode code{.manifest_bytes = static_cast<std::uint32_t>(package.manifest_bytes().size()),
                                .slice = static_cast<std::uint32_t>(*slice),
                                .slice_bytes = static_cast<std::uint32_t>(bytes->size())};
    if (wire::inline_extension_bytes(code) > wire::kInlineBytesMax)
        return fail(ErrorCode::unsupported,
                    "package {} has an image of {} bytes, and at most {} travel inline; send it cached", name,
                    bytes->size(), wire::kInlineBytesMax);
    Writer out;
    out.bytes(function.raw());
    out.bytes(std::as_bytes(std::span(&code, 1)));
    out.bytes(package.manifest_bytes());
    out.bytes(*bytes);
    ByteBuffer extension = out.take();
    extension.resize(wire::inline_extension_bytes(code));
    own_functions_.keep(whole);  // the peer may forget it, and ask for it when it is called by its handle
    if (inline_codes_.size() >= kInlineCodesMax) inline_codes_.clear();
    return &(inline_codes_[function] = std::move(extension));
}

Result<BegunFrame> Caller::begin(const PeerPointer& peer, const Outgoing& outgoing, std::size_t payload_bytes) {
    if (payload_bytes > wire::kPayloadBytesMax)
        return tl::unexpected<Error>(too_large(outgoing.callee.name, payload_bytes));
    Hold hold(lead_.mutex());
    ROVE_CHECK(ready_to_send(peer, hold.lock(), payload_bytes, outgoing.deadline));
    if (outgoing.sending == Sending::always_inlined) return BegunFrame{};
    const auto handle = peer->code.bindings.handle_of(*outgoing.callee.id);
    if (!handle || !peer->clear_way()) return BegunFrame{};
    std::byte* frame = peer->link()->reserve(Traffic::calls, wire::kHeaderBytes + payload_bytes);
    if (frame == nullptr) return BegunFrame{};
    own_calls_.begin_frame();
    peer->sends.open_frame();
    return BegunFrame{peer->link(), {frame + wire::kHeaderBytes, payload_bytes}, *handle};
}

Result<CallId> Caller::post_begun(PeerState& peer, BegunFrame begun, bool wants_reply, Deadline deadline) {
    std::shared_ptr<NodeCore> last;  // destroyed after the lock is released
    Hold hold(lead_.mutex());
    last = own_calls_.end_frame();
    const std::shared_ptr<void> held = std::move(begun.link);
    const std::shared_ptr<fabric::Link>& link = peer.link();
    peer.sends.close_frame(link == held);
    if (link != held || !peer.linked())
        return runner_.is_ending()
                   ? tl::unexpected<Error>(was_shut_down(name_()))
                   : fail(ErrorCode::disconnected, "{} was lost before the frame for it was posted", who(peer));
    if (const Status early = in_time(deadline, peer); !early) {
        lead_.wake();  // nothing was published, as in drop_begun()
        return tl::unexpected<Error>(early.error());
    }
    CallId id{0, 0};
    if (wants_reply) {
        ROVE_TRY(id, own_calls_.table().begin(&peer));
    }
    wire::FrameHeader header = wire::header_of(made_by(peer.my_id(), id, {.wants_reply = wants_reply}));
    header.body_bytes = static_cast<std::uint32_t>(begun.place.size());
    header.handle = begun.handle;
    note_sent(peer, begun.place.size(), wants_reply);
    link->publish(Traffic::calls, header);
    if (link->by_messages() || !peer.outbox_of(Traffic::calls).is_empty()) lead_.wake();
    return own_calls_.sent_within(id, wants_reply, deadline);
}

void Caller::drop_begun(PeerState& peer, std::shared_ptr<void> link) {
    std::shared_ptr<NodeCore> last;  // destroyed after the lock is released
    Hold hold(lead_.mutex());
    last = own_calls_.end_frame();
    peer.sends.close_frame(peer.link() == link);  // nothing was published
    link.reset();                                 // under the lock: it may be the last to hold it
    lead_.wake();
}

Status Caller::post_batch(const PeerPointer& peer, const Outgoing& outgoing, std::size_t payload_bytes) {
    const std::size_t stride = wire::batch_stride(payload_bytes);
    if (outgoing.sending != Sending::always_inlined) {
        Hold hold(lead_.mutex());
        ROVE_CHECK(ready_to_send(peer, hold.lock(), outgoing.payload.size(), outgoing.deadline));
        if (const auto handle = peer->code.bindings.handle_of(*outgoing.callee.id)) {
            wire::FrameHeader header = wire::header_of(made_by(peer->my_id(), {}, outgoing.context), Kind::batch);
            header.handle = *handle;
            header.generation = static_cast<std::uint32_t>(payload_bytes);
            note_sent(*peer, outgoing.payload.size(), /*wants_reply=*/false);
            return sender_.send(*peer, Traffic::calls, header, {}, outgoing.payload.whole());
        }
    }
    // One by one: the peer does not know the function yet, or is to get its code each time.
    for (std::size_t at = 0; at < outgoing.payload.size(); at += stride) {
        const Result<CallId> posted = call(peer, {.callee = outgoing.callee,
                                                  .payload = outgoing.payload.whole().subspan(at, payload_bytes),
                                                  .context = outgoing.context,
                                                  .sending = outgoing.sending,
                                                  .deadline = outgoing.deadline});
        if (posted) continue;
        if (at == 0) return tl::unexpected<Error>(posted.error());
        return fail(posted.error().code(), "{}; {} of the {} payloads gathered were posted before",
                    posted.error().message(), at / stride, (outgoing.payload.size() + stride - 1) / stride);
    }
    return {};
}

Result<CallId> Caller::ping(const PeerPointer& peer, Bytes payload, bool wants_reply, Deadline deadline) {
    if (payload.size() > wire::kPayloadBytesMax) return tl::unexpected<Error>(too_large("ping", payload.size()));
    Hold hold(lead_.mutex());
    ROVE_CHECK(ready_to_send(peer, hold.lock(), payload.size(), deadline));
    ROVE_TRY(BegunCall begun, BegunCall::in(own_calls_.table(), peer.get(), wants_reply));
    note_sent(*peer, payload.size(), wants_reply);
    const wire::CallContext context = made_by(peer->my_id(), begun.id(), {.wants_reply = wants_reply});
    ROVE_CHECK(sender_.send(*peer, Traffic::calls, wire::header_of(context, Kind::ping), {}, payload));
    return own_calls_.sent_within(begun.sent(), wants_reply, deadline);
}

Result<CallId> Caller::load(const PeerPointer& peer, const std::shared_ptr<PackageStore>& package, Deadline deadline) {
    Hold hold(lead_.mutex());
    ROVE_CHECK(in_time(deadline, *peer));
    ROVE_CHECK(make_alive(peer, hold.lock(), deadline));
    if (is_client(peer->id())) return fail(ErrorCode::unsupported, "{} takes no code: it is a client", who(*peer));
    ROVE_CHECK(exchange_.check_forms(*peer, *package));
    own_functions_.keep(package);
    ROVE_TRY(const bool image_sent, exchange_.send(*peer, *package, Forms::image, true));
    ROVE_TRY(const bool bitcode_sent, exchange_.send(*peer, *package, Forms::bitcode, !image_sent));
    (void)bitcode_sent;
    peer->code.sent.insert(package->digest());
    ROVE_TRY(BegunCall begun, BegunCall::in(own_calls_.table(), peer.get(), true));
    const wire::FrameHeader header = wire::header_of(made_by(peer->my_id(), begun.id(), {}), Kind::load);
    ROVE_CHECK(sender_.send(*peer, Traffic::prompt, header, package->digest().raw(), {}));
    return own_calls_.sent_within(begun.sent(), true, deadline);
}

// The next call after a peer was lost reaches for its address again.
Status Caller::make_alive(const PeerPointer& peer, Lock& lock, Deadline deadline) {
    if (closed_ || runner_.is_ending()) return tl::unexpected<Error>(was_shut_down(name_()));
    for (unsigned meetings = 0; meetings < kMeetingsPerCall; ++meetings) {
        if (peer->linked()) return {};
        ROVE_CHECK(link_ends_.await_goodbye(*peer, lock, deadline));
        if (peer->linked()) return {};
        if (peer->link()) link_ends_.clean_up(*peer);
        if (peer->identity().address.empty())
            return fail(ErrorCode::disconnected, "{} is gone{}", who(*peer), because(peer->gone()));
        const std::string address = peer->identity().address;
        const Result<PeerPointer> met = [&]() REQUIRES(lock_of<EngineLock>) {
            const Unlocked free(lock);
            return meet_(address, peer, deadline);
        }();
        if (!met) return tl::unexpected<Error>(met.error());
        if (deadline && Clock::now() >= *deadline)
            return fail(ErrorCode::timed_out, "{} was met again too late; the call was not sent", who(*peer));
    }
    if (peer->linked()) return {};
    return fail(ErrorCode::disconnected, "{} was met again {} times, and its link ended each time{}", who(*peer),
                kMeetingsPerCall, because(peer->gone()));
}

// The name and the code the first time, the handle ever after.
Status Caller::send_call(PeerState& peer, const Callee& callee, std::optional<std::uint32_t> handle,
                         const wire::CallContext& context, Bytes payload, bool in_parts) {
    const auto send = [&](const wire::NamedCall& call) REQUIRES(lock_of<EngineLock>) {
        wire::FrameHeader header = call.header;
        if (in_parts) header.flags |= wire::kParts;
        note_sent(peer, call.extra.size() + payload.size(), context.wants_reply);
        return sender_.send(peer, Traffic::calls, header, call.extra, payload);
    };
    if (handle) return send({context, *handle});
    peer.code.bindings.expect();
    wire::Either either{.resident = *callee.id, .shipped = {}, .schema = callee.schema};
    if (callee.shipped != nullptr) either.shipped = *callee.shipped;
    if (callee.shipped != nullptr && callee.package != nullptr) either.forms = detail::forms_of_one(**callee.package);
    const wire::NamedCall named = callee.own
                                      ? wire::NamedCall(context, wire::kByEither, std::as_bytes(std::span(&either, 1)))
                                      : wire::NamedCall(context, wire::kById, callee.id->raw());
    PackageStore* package = callee.package != nullptr ? callee.package->get() : nullptr;
    // A program's own functions may be resident there: then its code is not sent before it is asked for.
    if (package == nullptr || peer.code.sent.contains(package->digest()) || (callee.own && peer.has_residents()))
        return send(named);
    // Image first, so that the call can start; bitcode after the call, for the tier that follows, and among the calls: otherwise it
    // would overtake this one.
    ROVE_TRY(const bool image_sent, exchange_.send(peer, *package, Forms::image, true));
    bool bitcode_sent = false;
    if (!image_sent) {
        ROVE_TRY(bitcode_sent, exchange_.send(peer, *package, Forms::bitcode, true));
    }
    if (image_sent || bitcode_sent) peer.code.sent.insert(package->digest());
    ROVE_CHECK(send(named));
    if (image_sent) try {
            (void)exchange_.send(peer, *package, Forms::bitcode, false, Traffic::calls);
        } catch (const std::bad_alloc&) {  // the call has been sent, and its image: it runs
        }
    return {};
}

void Caller::post_in_meeting(PeerState& peer, std::uint64_t meeting, const Callee& callee, Bytes payload) {
    if (process_.is_past()) return;
    Hold hold(lead_.mutex());
    if (runner_.is_ending() || !peer.linked() || peer.meeting() != meeting) return;
    // After what waits for room already; a peer whose outbox is full keeps the memory until it or this node ends.
    (void)send_call(peer, callee, peer.code.bindings.handle_of(*callee.id),
                    made_by(peer.my_id(), {}, {.wants_reply = false}), payload);
}

void Caller::free_memory(PeerState& peer, Bytes place) {
    if (place.size() != sizeof(wire::MemoryPlace)) return;
    const auto which = wire::copy_of<wire::MemoryPlace>(place);
    (void)send_call(peer, {.id = &free_memory_, .own = true}, peer.code.bindings.handle_of(free_memory_),
                    made_by(peer.my_id(), {}, {.wants_reply = false}), std::as_bytes(std::span(&which.key, 1)));
}

// ---- for functions that run here

Status Caller::send_on(const Onward& onward) {
    Callee callee{.id = &onward.function};
    if (const Resident* own = Residents::find(onward.function)) {  // the next node may have it of its own, too
        callee = {.id = &own->id, .name = own->name, .own = true, .schema = own->schema};
        if (const detail::Callable* callable = detail::callable_of(own->entry)) ROVE_CHECK(complete(callee, *callable));
    }
    Hold hold(lead_.mutex());
    if (onward.payload.size() > wire::kPayloadBytesMax)
        return fail(ErrorCode::invalid, "a payload of {} bytes is over the limit of {}", onward.payload.size(),
                    wire::kPayloadBytesMax);
    if (is_client(onward.node) || onward.node >= routes_.node_count())
        return fail(ErrorCode::invalid, "there is no node {}: there are {}", onward.node, routes_.node_count());
    if (onward.node == routes_.id()) return local_.add(onward.context, onward.function, onward.payload);
    PeerState* peer = routes_.to(onward.node);
    if (peer == nullptr) return tl::unexpected<Error>(sender_.absent(onward.node));
    const NodeId caller = onward.context.node;
    if (onward.context.wants_reply && routes_.is_home_of(caller) &&
        peer->sends.sent_on.is_full_for(caller, onward.context.call))
        return fail(ErrorCode::overloaded,
                    "as many calls are on {} for callers of {} as may be at once: {} for one, {} for all", who(*peer),
                    name_(), SentOn::kMaxOfCaller, SentOn::kMax);
    const std::shared_ptr<PackageStore> package = exchange_.package_with(onward.function);
    if (callee.package == nullptr) callee.package = &package;
    return send_call(*peer, callee, peer->code.bindings.handle_of(*callee.id), onward.context, onward.payload);
}

Result<CallId> Caller::call_from_here(NodeId to, code::EntryPoint function, const Pieces& payload,
                                      const wire::CallContext& context, Deadline deadline) {
    Callee callee{.id = nullptr};
    FunctionId id;
    std::shared_ptr<PackageStore> package;
    std::string name;
    if (const Resident* own = Residents::find(function)) {
        callee = {.id = &own->id, .name = own->name, .own = true, .schema = own->schema};
        if (to == routes_.id()) {
            Hold hold(lead_.mutex());
            ROVE_TRY(const code::Function* known, cache_->add_resident(own->id, own->name, own->entry));
            (void)known;
        } else if (const detail::Callable* callable = detail::callable_of(function)) {
            ROVE_CHECK(complete(callee, *callable));
        }
    } else {
        Hold hold(lead_.mutex());
        const code::Function* known = cache_->find(function);
        if (known == nullptr)
            return fail(ErrorCode::invalid,
                        "a function on {} calls code that is neither of this node's program nor of a package", name_());
        id = known->id;
        name = known->name;
        package = cache_->package_of(*known);
        callee = {.id = &id, .package = &package, .name = name};
    }
    if (to == routes_.id() && payload.size() > wire::kMessageBytesMax)
        return fail(ErrorCode::invalid, "{}: {} bytes of arguments are over the limit of {}", callee.name,
                    payload.size(), wire::kMessageBytesMax);
    if (to == routes_.id()) {
        if (has_passed(deadline)) return tl::unexpected<Error>(not_sent_in_time(name_()));
        ByteBuffer room;
        const Bytes joined = payload.joined(room);
        Hold hold(lead_.mutex());
        ROVE_TRY(BegunCall begun, BegunCall::in(own_calls_.table(), nullptr, context.wants_reply));
        ROVE_CHECK(local_.add(made_by(to, begun.id(), context), *callee.id, joined));
        return own_calls_.sent_within(begun.sent(), context.wants_reply, deadline);
    }
    ROVE_TRY(const std::shared_ptr<PeerState> peer, peers_.linked(to));
    return call(peer, {.callee = callee, .payload = payload, .context = context, .deadline = deadline});
}

}  // namespace rove
