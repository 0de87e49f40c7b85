// Arrivals: what a node does with each kind of frame.
#include <algorithm>

#include "node/core.hpp"
#include "node/here.hpp"
#include "node/log.hpp"

namespace rove {

using fabric::Traffic;
using wire::Kind;

namespace {

FunctionId named_function(const wire::Frame& frame) {
    return FunctionId::from(frame.extra.first<sizeof(FunctionId)>());
}

}  // namespace

// What is wrong with a frame from this peer, if anything: wire::is_well_formed has looked at its shape, this looks at its meaning.
std::optional<Error> NodeCore::checked(PeerState& from, const wire::Frame& frame) const {
    const wire::FrameHeader& header = frame.header;
    const auto wrong = [&from](std::string_view what) {
        return Error(ErrorCode::invalid, fmt::format("peer {} sent {}", from.id, what));
    };
    const auto known = [this](NodeId node) { return home_of(node) < std::max(1U, node_count()); };
    switch (header.kind) {
        case Kind::call: {
            if (is_client(from.my_id)) return wrong("a call, but only replies can be sent to a client");
            if (is_client(from.id) ? header.node != from.id : !known(header.node))
                return wrong("a call that names another caller");
            std::size_t extra = (header.flags & wire::kNamed) != 0 ? sizeof(FunctionId) : 0;
            if ((header.flags & wire::kInline) != 0) {
                if (extra == 0 || frame.extra.size() < extra + sizeof(wire::InlineCode))
                    return wrong("a call with half its code");
                wire::InlineCode code;
                std::memcpy(&code, frame.extra.data() + extra, sizeof code);
                extra = wire::inline_extension_bytes(code);
            }
            if (frame.extra.size() != extra) return wrong("a call with an extension of the wrong size");
            if (frame.payload.size() > wire::kPayloadBytesMax) return wrong("a payload over the limit");
            return std::nullopt;
        }
        case Kind::batch:
        case Kind::ping:
            if (is_client(from.my_id)) return wrong("calls, but only replies can be sent to a client");
            if (header.node != from.id && (is_client(from.id) || !known(header.node)))
                return wrong("calls that name another caller");
            if (!frame.extra.empty()) return wrong("calls with an extension");
            if (header.kind == Kind::batch && (header.flags & wire::kNoReply) == 0)
                return wrong("a batch with replies");
            return std::nullopt;
        case Kind::reply:
            if (is_client(from.id)) return wrong("a reply, but clients run nothing");
            if (!frame.extra.empty()) return wrong("a reply with an extension");
            return std::nullopt;
        case Kind::bind:
            return frame.extra.size() == sizeof(FunctionId) ? std::nullopt : std::optional(wrong("a malformed bind"));
        case Kind::code:
            return frame.extra.size() == sizeof(wire::CodeChunk) ? std::nullopt
                                                                 : std::optional(wrong("a malformed code chunk"));
        case Kind::need:
        case Kind::lack:
            return frame.extra.size() == sizeof(wire::NeedCode) ? std::nullopt
                                                                : std::optional(wrong("a malformed request for code"));
        case Kind::load:
            if (is_client(from.my_id)) return wrong("a package to load, but this is a client");
            return frame.extra.size() == sizeof(wire::LoadPackage) ? std::nullopt
                                                                   : std::optional(wrong("a malformed load"));
        case Kind::none:
        case Kind::filler: break;
    }
    return wrong("a frame of no known kind");
}

// What nearly all calls are: from a client that names itself, or from a member that may pass on others' calls; by handle.
bool NodeCore::is_plain_call(const PeerState& from, const wire::Frame& frame) const {
    const wire::FrameHeader& header = frame.header;
    return header.kind == Kind::call && header.extra_bytes == 0 && (header.flags & wire::kNamed) == 0 &&
           header.node == from.id && !is_client(from.my_id) && frame.payload.size() <= wire::kPayloadBytesMax;
}

// While a function runs the lock is free: the peer may be cleaned up, and the lead be lost. Then nothing of the peer is
// touched any more.
unsigned NodeCore::serve(PeerState& peer, Lead& lead) {
    const fabric::Link* link = peer.link.get();
    const std::uint64_t version = links_version_;
    unsigned handled = peer.outbox[0].empty() && peer.outbox[1].empty() ? 0 : flush(peer);
    wire::Frame frame;
    // Replies first: code travels with them, and is sent before the call that needs it.
    while (handled < kBatchMax && peer.link->next(Traffic::replies, frame)) {
        const bool plain = frame.header.kind == Kind::reply && frame.header.extra_bytes == 0 && !is_client(peer.id);
        if (!plain) {
            if (const auto wrong = checked(peer, frame)) {
                peer.link->break_with(*wrong);
                break;
            }
        }
        on_reply_traffic(peer, frame);
        peer.link->release(Traffic::replies);
        ++handled;
        if (frame.header.kind != Kind::code) continue;
        run_parked(lead);
        if (lost(lead) || links_version_ != version) return handled;
    }
    handled += serve_calls(peer, lead);
    if (lost(lead) || links_version_ != version || peer.link.get() != link) return handled;
    if (link->broken() != nullptr && !peer.lost) {
        log().warn("{}: the link to peer {} ends: {}", name(), peer.id, link->broken()->message());
        peer.lost = Error(ErrorCode::disconnected, link->broken()->message());
        if (peer.hang_up) peer.hang_up();
        housekeeping_due_ = {};
        housekeeping_in_ = 1;
    }
    return handled;
}

unsigned NodeCore::serve_calls(PeerState& peer, Lead& lead) {
    unsigned handled = 0;
    wire::Frame frame;
    const std::uint64_t version = links_version_;
    while (handled < kBatchMax && peer.link && peer.link->next(Traffic::calls, frame)) {
        if (!is_plain_call(peer, frame)) {
            std::optional<Error> wrong = checked(peer, frame);
            const Kind kind = frame.header.kind;
            if (!wrong && kind != Kind::call && kind != Kind::batch && kind != Kind::ping)
                wrong =
                    Error(ErrorCode::invalid, fmt::format("peer {} sent a frame among calls that is none", peer.id));
            if (wrong) {
                peer.link->break_with(*wrong);
                break;
            }
        }
        if (!on_call(&peer, frame, lead)) break;
        ++handled;
        if (lost(lead) || links_version_ != version) break;
        peer.link->release(Traffic::calls);
    }
    return handled;
}

void NodeCore::on_reply_traffic(PeerState& from, const wire::Frame& frame) {
    switch (frame.header.kind) {
        case Kind::reply: return on_reply(&from, frame);
        case Kind::bind: return on_bind(from, frame);
        case Kind::code: return on_code(from, frame);
        case Kind::need: return on_need(from, frame);
        case Kind::lack: return on_lack(from, frame);
        case Kind::load: return on_load(frame);
        default:
            from.link->break_with(Error(ErrorCode::invalid, fmt::format("peer {} sent a call among replies", from.id)));
    }
}

// As soon as code has arrived, before other code can push it out again.
void NodeCore::run_parked(Lead& lead) {
    for (std::size_t i = 0; i < peers_.size() && !lost(lead); ++i) {
        const std::shared_ptr<PeerState> peer = peers_[i];
        if (peer->parked) (void)serve_calls(*peer, lead);
    }
    if (local_parked_ && !lost(lead)) (void)serve_local(lead);
}

// Frames that this node sent to itself: the same as any other, from a queue instead of a mailbox.
unsigned NodeCore::serve_local(Lead& lead) {
    unsigned handled = 0;
    while (!local_.empty() && handled < kBatchMax) {
        const Buffer bytes = std::move(local_.front());  // a function that runs may send more
        local_.pop_front();
        wire::Frame frame;
        std::memcpy(&frame.header, bytes.data(), sizeof frame.header);
        const Bytes body = Bytes(bytes).subspan(wire::kHeaderBytes);
        frame.extra = body.first(frame.header.extra_bytes);
        frame.payload = body.subspan(frame.header.extra_bytes);
        local_bytes_ -= bytes.size();
        if (!on_call(nullptr, frame, lead)) {
            local_bytes_ += bytes.size();
            local_.push_front(bytes);
            return handled;
        }
        ++handled;
        if (lost(lead)) return handled;
    }
    return handled;
}

bool NodeCore::on_call(PeerState* from, const wire::Frame& frame, Lead& lead) {
    if (frame.header.kind == Kind::ping) {
        (void)end_with_reply(frame.header, code::Ran::resident, {});
        return true;
    }
    const bool named = (frame.header.flags & wire::kNamed) != 0;
    std::optional<Parked>& parked = from != nullptr ? from->parked : local_parked_;
    if (!named && !parked && (from == nullptr || from->aliases.empty())) {
        // As nearly all frames come: the code is there.
        if (code::Function* function = cache_->by_handle(frame.header.handle)) {
            if (leave_to_follower(*function, lead)) return false;
            if (const code::EntryPoint entry = running_ == nullptr ? cache_->enter_leading(*function) : nullptr) {
                Run begun{*function, entry, function->ran.load(std::memory_order_relaxed), from};
                run(begun, frame, lead);
                return true;
            }
        }
    }
    return on_rare_call(from, frame, lead);
}

void NodeCore::bind(PeerState& peer, const code::Function& function) {
    send_or_cut(peer, {.kind = Kind::bind, .handle = function.handle, .node = peer.id}, function.id.raw(), {});
}

// Code that came in the frame. The frame's bytes are compared with those that were loaded for this function before, and
// run as that: from a copy of one's own, which the peer cannot change meanwhile, which is in the instruction cache, and which
// needs no mailbox that can be executed. Null: what came is no such code; the link is broken then.
code::Function* NodeCore::unpack_inline(PeerState& from, const wire::Frame& frame) {
    const FunctionId id = named_function(frame);
    SeenInline& seen = seen_inline_[std::to_integer<std::size_t>(id.raw()[0]) % seen_inline_.size()];
    if (seen.id == id && seen.bytes.size() == frame.extra.size() &&
        std::memcmp(seen.bytes.data(), frame.extra.data(), seen.bytes.size()) == 0) {
        // Not where it was forgotten or evicted: then the frame has what is lacking.
        code::Function* function = cache_->by_handle(seen.handle);
        if (function == seen.function && function->target.load(std::memory_order_relaxed) != nullptr) return function;
    }
    Buffer bytes(frame.extra.begin(), frame.extra.end());  // the peer can change the mailbox
    wire::InlineCode code;
    std::memcpy(&code, bytes.data() + sizeof id, sizeof code);
    const Bytes rest = Bytes(bytes).subspan(sizeof id + sizeof code);
    const auto wrong = [&from](const std::string& what) {
        from.link->break_with(Error(ErrorCode::invalid, fmt::format("peer {} sent inline code {}", from.id, what)));
        return nullptr;
    };
    if (std::size_t{code.manifest_bytes} + code.slice_bytes > rest.size()) return wrong("that was changed on its way");
    const Result<std::shared_ptr<PackageStore>> store = PackageStore::from_manifest(rest.first(code.manifest_bytes));
    if (!store) return wrong(store.error().message());
    const auto& ids = (*store)->function_ids();
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) return wrong("of another function than it names");
    if (const Status added = (*store)->add_slice(code.slice, rest.subspan(code.manifest_bytes, code.slice_bytes));
        !added)
        return wrong(added.error().message());
    const Result<std::shared_ptr<PackageStore>> kept = cache_->add(*store, false);
    if (!kept) return wrong(kept.error().message());
    from.code_sent.insert((*kept)->digest());
    code::Function* function = cache_->find(id);
    if (function == nullptr) return nullptr;
    seen = {function, function->handle, id, std::move(bytes)};
    bind(from, *function);
    return function;
}

// A function that is known to run long is not for a thread that waits for a call and leads meanwhile.
bool NodeCore::leave_to_follower(const code::Function& function, Lead& lead) {
    if (lead.own || followers_ == 0 || !function.is_long.load(std::memory_order_relaxed)) return false;
    give_lead(lead);
    if (!offered_) offer_lead();
    return true;
}

// A call by name, one that waited for its code, or one whose code is not loaded.
bool NodeCore::on_rare_call(PeerState* from, const wire::Frame& frame, Lead& lead) {
    std::optional<Parked>& parked = from != nullptr ? from->parked : local_parked_;
    const bool named = (frame.header.flags & wire::kNamed) != 0;
    code::Function* function = nullptr;
    if (from != nullptr && !parked && (frame.header.flags & wire::kInline) != 0) {
        function = unpack_inline(*from, frame);
        if (function == nullptr) return false;
        if (const code::EntryPoint entry = running_ == nullptr ? cache_->enter_leading(*function) : nullptr) {
            Run begun{*function, entry, function->ran.load(std::memory_order_relaxed), from};
            run(begun, frame, lead);
            return true;
        }
    } else if (named) {
        function = cache_->find(named_function(frame));
    } else if (from != nullptr && !from->aliases.empty()) {
        const auto alias = from->aliases.find(frame.header.handle);
        function = alias != from->aliases.end() ? cache_->find(alias->second) : cache_->by_handle(frame.header.handle);
    } else {
        function = cache_->by_handle(frame.header.handle);
    }
    if (parked && parked->hopeless) {
        const Error why(parked->hopeless->code(),
                        fmt::format("{} on {}: {}", function != nullptr ? function->name : "a function", name(),
                                    parked->hopeless->message()));
        parked.reset();
        (void)end_with_error(frame.header, why);
        return true;
    }
    if (function == nullptr) return park(from, frame, nullptr, true);
    auto entered = cache_->enter(*function);
    if (const auto* waiting = std::get_if<code::Waiting>(&entered))
        return park(from, frame, function, *waiting == code::Waiting::for_code);
    parked.reset();
    if (const auto* error = std::get_if<Error>(&entered)) {
        (void)end_with_error(frame.header, *error);
        return true;
    }
    if (named && from != nullptr && (frame.header.flags & wire::kInline) == 0) bind(*from, *function);
    auto& held = std::get<code::Entered>(entered);
    Run begun{*function, held.entry(), held.ran(), from, std::move(held)};
    run(begun, frame, lead);
    return true;
}

void NodeCore::run(Run& run, const wire::Frame& frame, Lead& lead) {
    begin_run(run);
    lead.lock.unlock();
    bool ended = true;
    if (frame.header.kind != Kind::batch) {
        ended = run_one(run, frame.header, frame.payload);
    } else {
        const std::size_t bytes = frame.header.generation;
        const std::size_t stride = wire::batch_stride(bytes);
        for (std::size_t at = 0; at < frame.payload.size() && bytes <= frame.payload.size() - at; at += stride)
            (void)run_one(run, frame.header, frame.payload.subspan(at, bytes));
    }
    lead.lock.lock();
    end_run(run);
    if (!ended) (void)end_with_reply(frame.header, run.ran, {});
}

// Without the lock. True: the call has ended, or nobody waits for its end.
bool NodeCore::run_one(const Run& run, const wire::FrameHeader& call, Bytes payload) {
    rove_here here{this, &run.function, call, run.ran};
    const auto let_out = [&](const std::string& what) {
        if (here.ended) return;
        (void)reply_error(call, Error(ErrorCode::failed,
                                      fmt::format("{} on {} let an exception out{}", run.function.name, name(), what)));
        here.ended = true;
    };
    try {
        run.entry(&here, payload.data(), payload.size());
    } catch (const std::exception& error) {
        let_out(std::string(": ") + error.what());
    } catch (...) {
        let_out(" that is no std::exception");
    }
    return here.ended || (call.flags & wire::kNoReply) != 0;
}

// Leaves the frame where it is; the ones behind it wait as well. Asks for the code once.
bool NodeCore::park(PeerState* from, const wire::Frame& frame, const code::Function* function, bool ask) {
    std::optional<Parked>& parked = from != nullptr ? from->parked : local_parked_;
    if (!parked) parked = Parked{.since = Clock::now()};
    if (function != nullptr)
        parked->function = function->id;
    else if ((frame.header.flags & wire::kNamed) != 0)
        parked->function = named_function(frame);
    parked->handle = frame.header.handle;
    if (ask && !parked->asked) {
        parked->asked = true;
        ask_for_code(from, *parked, frame.header.node);
    }
    return false;
}

void NodeCore::on_reply(const PeerState* from, const wire::Frame& frame) {
    const wire::FrameHeader& header = frame.header;
    const bool mine = header.node == (from != nullptr ? from->my_id : id());
    if (!mine) return route_frame(frame);
    CallSlot* slot = calls_.flying({header.call, header.generation});
    if (slot == nullptr) return;  // forgotten, or failed when a node on the way went: the late reply is dropped
    if ((header.flags & wire::kError) != 0) {
        slot->end(Error(static_cast<ErrorCode>(header.status), std::string(as_text(frame.payload))));
    } else {
        slot->node = header.handle;
        slot->ran = static_cast<code::Ran>(header.status);
        slot->hops = header.hops;
        slot->end(frame.payload);
    }
    call_ended();
}

// With kNamed: "your handle, which I used and you no longer know, meant this function".
void NodeCore::on_bind(PeerState& from, const wire::Frame& frame) {
    const FunctionId function = named_function(frame);
    if ((frame.header.flags & wire::kNamed) != 0) {
        if (from.aliases.size() >= kBindingsMax) from.aliases.clear();
        from.aliases[frame.header.handle] = function;
        return;
    }
    if (from.bindings.size() >= kBindingsMax) from.bindings.clear();
    from.forget_handle(function);
    from.bindings[function] = frame.header.handle;
}

void NodeCore::on_load(const wire::Frame& frame) {
    const Digest digest = Digest::from(frame.extra.first<sizeof(Digest)>());
    const std::shared_ptr<PackageStore> package = cache_->package(digest);
    const wire::FrameHeader& to = frame.header;
    if (!package) {
        (void)end_with_error(
            to, Error(ErrorCode::invalid, fmt::format("{} has not received package {}", name(), digest.hex())));
        return;
    }
    if (!package->manifest().interface) {
        const Status loaded = cache_->load(package);
        (void)(loaded ? end_with_reply(to, code::Ran::image, {}) : end_with_error(to, loaded.error()));
        return;
    }
    Result<code::LoadReport> report = cache_->load_interface(package);
    if (!report) {
        (void)end_with_error(to, report.error());
        return;
    }
    std::string lines;
    for (const std::string& replaced : report->replaced) {
        log().info("{}: interface {} takes over {}; what arrived before keeps the old one", name(),
                   package->manifest().name, replaced);
        lines += replaced + '\n';
    }
    (void)end_with_reply(to, code::Ran::image,
                         rove::as_bytes(lines).first(std::min(lines.size(), wire::kPayloadBytesMax)));
}

}  // namespace rove
