// Arrivals: what a node does with each kind of frame.
#include <algorithm>

#include "node/core.hpp"
#include "node/here.hpp"
#include "node/log.hpp"
#include "node/offload.hpp"
#include "node/residents.hpp"

namespace rove {

using fabric::Traffic;
using wire::Kind;

namespace {

FunctionId named_function(const wire::Frame& frame) {
    return FunctionId::from(frame.extra.first<sizeof(FunctionId)>());
}

Error takes_no_code(const std::string& node) {
    return {ErrorCode::refused,
            node + " runs its own program's functions only, and takes no code; give it an address to listen on"};
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
            if (header.node != from.id && (is_client(from.id) || is_client(from.my_id) || !known(header.node)))
                return wrong("a call that names another caller");
            std::size_t extra = (header.flags & wire::kNamed) == 0    ? 0
                                : (header.flags & wire::kEither) != 0 ? sizeof(wire::Either)
                                                                      : sizeof(FunctionId);
            if ((header.flags & wire::kEither) != 0 && (header.flags & (wire::kNamed | wire::kInline)) != wire::kNamed)
                return wrong("a call that is named in two ways");
            if ((header.flags & wire::kParts) != 0 && frame.payload.size() != sizeof(wire::Staged))
                return wrong("a call that does not say which parts it is made of");
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
            if (header.node != from.id && (is_client(from.id) || is_client(from.my_id) || !known(header.node)))
                return wrong("calls that name another caller");
            if (!frame.extra.empty()) return wrong("calls with an extension");
            // Every other mark tells of an extension or a payload that these have not.
            if ((header.flags & ~wire::kNoReply) != 0) return wrong("calls with marks that are not theirs");
            if (header.kind == Kind::batch && (header.flags & wire::kNoReply) == 0)
                return wrong("a batch with replies");
            return std::nullopt;
        case Kind::part:
            return frame.extra.size() == sizeof(wire::Part) && !frame.payload.empty()
                       ? std::nullopt
                       : std::optional(wrong("a malformed part of a payload"));
        case Kind::reply:
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
           header.node == from.id && (header.flags & (wire::kParts | wire::kEither)) == 0 &&
           frame.payload.size() <= wire::kPayloadBytesMax;
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
        const bool plain = frame.header.kind == Kind::reply && frame.header.extra_bytes == 0;
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
    if (lost(lead) || links_version_ != version || link == nullptr || peer.link.get() != link) return handled;
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
            if (!wrong && kind == Kind::part) {
                if (!take_part(peer, frame)) break;
                ++handled;
                peer.link->release(Traffic::calls);
                continue;
            }
            if (!wrong && kind == Kind::code) {  // of the tier that follows
                on_code(peer, frame);
                if (!peer.link) break;
                peer.link->release(Traffic::calls);
                ++handled;
                continue;
            }
            if (!wrong && kind != Kind::call && kind != Kind::batch && kind != Kind::ping)
                wrong =
                    Error(ErrorCode::invalid, fmt::format("peer {} sent a frame among calls that is none", peer.id));
            if (wrong) {
                peer.link->break_with(*wrong);
                break;
            }
        }
        if (frame.header.node == peer.id) frame.header.node = peer.back;
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
        case Kind::part: return on_reply_part(from, frame);
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
        const ByteBuffer bytes = std::move(local_.front());  // a function that runs may send more
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
    if (nested_ > kNestedMax)
        return refuse(from, frame,
                      Error(ErrorCode::overloaded,
                            fmt::format("{} has {} functions that wait for one another on one thread, the most it may",
                                        name(), kNestedMax)));
    std::optional<Parked>& parked = from != nullptr ? from->parked : local_parked_;
    const bool plain = (frame.header.flags & (wire::kNamed | wire::kParts)) == 0;
    if (plain && !parked && (from == nullptr || from->aliases.empty())) {
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

// By the name that the peer used.
void NodeCore::bind(PeerState& peer, const FunctionId& named, const code::Function& function) {
    send_or_cut(peer, {.kind = Kind::bind, .handle = function.handle, .node = peer.id}, named.raw(), {});
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
    ByteBuffer bytes(frame.extra.begin(), frame.extra.end());  // the peer can change the mailbox
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
    bind(from, id, *function);
    return function;
}

// A function that is known to run long is not for a thread that waits for a call and leads meanwhile.
bool NodeCore::leave_to_follower(const code::Function& function, Lead& lead) {
    if (lead.own || followers_ == 0 || !function.is_long.load(std::memory_order_relaxed)) return false;
    give_lead(lead);
    offered_for_long_ = true;
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
    } else if (named && (frame.header.flags & wire::kEither) != 0) {
        wire::Either either;
        std::memcpy(&either, frame.extra.data(), sizeof either);
        const Result<code::Function*> found = either_function(either);
        if (!found) {
            parked.reset();
            return refuse(from, frame, found.error());
        }
        function = *found;
    } else if (named) {
        function = cache_->find(named_function(frame));
        if (function == nullptr) function = own_shipped(named_function(frame));
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
        return refuse(from, frame, why);
    }
    if (function == nullptr && options_.listen.empty()) return refuse(from, frame, takes_no_code(name()));
    if (function == nullptr) return park(from, frame, nullptr, true);
    auto entered = cache_->enter(*function);
    if (const auto* waiting = std::get_if<code::Waiting>(&entered))
        return park(from, frame, function, *waiting == code::Waiting::for_code);
    parked.reset();
    if (const auto* error = std::get_if<Error>(&entered)) return refuse(from, frame, *error);
    if (named && from != nullptr && (frame.header.flags & wire::kInline) == 0)
        bind(*from, named_function(frame), *function);
    auto& held = std::get<code::Entered>(entered);
    Run begun{*function, held.entry(), held.ran(), from, std::move(held)};
    if ((frame.header.flags & wire::kParts) == 0) {
        run(begun, frame, lead);
        return true;
    }
    wire::Staged which;
    std::memcpy(&which, frame.payload.data(), sizeof which);
    const auto staged = from != nullptr ? from->staged.find(which.number) : decltype(from->staged.end()){};
    if (from == nullptr || staged == from->staged.end() || staged->second.bytes.size() != which.total_bytes ||
        staged->second.arrived != which.total_bytes) {
        if (from != nullptr)
            from->link->break_with(
                Error(ErrorCode::invalid, fmt::format("peer {} sent a call without its parts", from->id)));
        return false;
    }
    const ByteBuffer payload = std::move(staged->second.bytes);
    from->staged_bytes -= payload.size();
    from->staged.erase(staged);
    wire::Frame whole = frame;
    whole.payload = payload;
    run(begun, whole, lead);
    return true;
}

// A function of the caller's program: this program's own, where it has it and means the same by it; else the one that travels.
Result<code::Function*> NodeCore::either_function(const wire::Either& either) {
    code::Function* resident = cache_->find(either.resident);
    if (resident == nullptr) {
        if (const Resident* own = Residents::find(either.resident)) {
            ROVE_TRY(resident, cache_->add_resident(own->id, own->name, own->entry));
        }
    }
    if (resident != nullptr) {
        const Resident* own = Residents::find(either.resident);
        if (own == nullptr || own->schema == either.schema) return resident;
        if (either.shipped == FunctionId{})
            return fail(
                ErrorCode::invalid,
                "{} on {}: the types that it takes or gives are others there (schema {:08x}) than in the caller's "
                "program ({:08x}); build both from the same source",
                own->name, name(), own->schema, either.schema);
    }
    if (either.shipped == FunctionId{})
        return fail(
            ErrorCode::unsupported,
            "it is not resident on {}, and the program that called it does not carry its code; build that program with "
            "rove_add_executable(), or this one with the same source",
            name());
    if (options_.listen.empty()) return tl::unexpected<Error>(takes_no_code(name()));
    return cache_->find(either.shipped);
}

// Ends a call that is not run, and forgets what came in parts for it. True: the frame is done with.
bool NodeCore::refuse(PeerState* from, const wire::Frame& frame, const Error& why) {
    if (from != nullptr && (frame.header.flags & wire::kParts) != 0) {
        wire::Staged which;
        std::memcpy(&which, frame.payload.data(), sizeof which);
        if (const auto staged = from->staged.find(which.number); staged != from->staged.end()) {
            from->staged_bytes -= staged->second.bytes.size();
            from->staged.erase(staged);
        }
    }
    (void)end_with_error(frame.header, why);
    return true;
}

// A function of this very program, called by the id under which this program has sent it out: it comes back.
code::Function* NodeCore::own_shipped(const FunctionId& function) {
    const auto package = own_functions_.find(function);
    if (package == own_functions_.end()) return nullptr;
    const auto& ids = package->second->function_ids();
    const auto entry = static_cast<std::size_t>(std::find(ids.begin(), ids.end(), function) - ids.begin());
    const Resident* own = detail::resident_of_entry(package->second->manifest().entries[entry]);
    if (own == nullptr) return nullptr;
    const Result<code::Function*> added = cache_->add_resident(function, own->name, own->entry);
    return added ? *added : nullptr;
}

// False: it does not fit, and the link is broken.
bool NodeCore::take_part(PeerState& from, const wire::Frame& frame) {
    wire::Part part;
    std::memcpy(&part, frame.extra.data(), sizeof part);
    const auto wrong = [&from](std::string_view what) {
        from.link->break_with(Error(ErrorCode::invalid, fmt::format("peer {} sent a part {}", from.id, what)));
        return false;
    };
    if (part.total_bytes > wire::kMessageBytesMax) return wrong("of a payload over the limit");
    if (part.offset == 0) {
        if (from.staged.contains(part.number)) return wrong("of a payload that has begun already");
        if (from.staged_bytes + part.total_bytes > kStagedBytesMax || from.staged.size() >= kStagedMax)
            return wrong("beyond what may arrive at once");
        from.staged_bytes += part.total_bytes;
        from.staged[part.number].bytes.resize(part.total_bytes);
    }
    const auto found = from.staged.find(part.number);
    if (found == from.staged.end()) return wrong("of no payload that has begun");
    Assembly& whole = found->second;
    if (part.offset != whole.arrived || part.total_bytes != whole.bytes.size() ||
        frame.payload.size() > whole.bytes.size() - whole.arrived)
        return wrong("out of its order");
    std::memcpy(whole.bytes.data() + whole.arrived, frame.payload.data(), frame.payload.size());
    whole.arrived += frame.payload.size();
    return true;
}

// A piece of a result that is larger than a frame.
void NodeCore::on_reply_part(PeerState& from, const wire::Frame& frame) {
    if (frame.header.node != from.my_id) return route_frame(frame);
    CallSlot* slot = calls_.flying({frame.header.call, frame.header.generation});
    if (slot == nullptr || (is_client(from.id) && slot->peer != &from)) return;  // late
    wire::Part part;
    std::memcpy(&part, frame.extra.data(), sizeof part);
    if (part.total_bytes > wire::kMessageBytesMax ||
        !calls_.gather(*slot, part.offset, part.total_bytes, frame.payload))
        from.link->break_with(
            Error(ErrorCode::invalid, fmt::format("peer {} sent a part of a result out of its order", from.id)));
}

void NodeCore::run(Run& run, const wire::Frame& frame, Lead& lead) {
    begin_run(run);
    const InUserCode outer = std::exchange(in_user_code_, {this, lead.term});
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
    in_user_code_ = outer;
    end_run(run);
    if (!ended) (void)end_with_reply(frame.header, run.ran, {});
}

// Without the lock. True: the call has ended, or nobody waits for its end.
bool NodeCore::run_one(Run& run, const wire::FrameHeader& call, Bytes payload) {
    rove_here here{this, &run.function, call, run.ran};
    const bool in_mailbox = call.kind == Kind::call && run.from != nullptr && (call.flags & wire::kParts) == 0;
    here.payload_read = in_mailbox ? &run.payload_read : nullptr;
    if (!in_mailbox && call.kind == Kind::call) run.payload_read = true;
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
    else if ((frame.header.flags & wire::kEither) != 0)
        std::memcpy(&parked->function, frame.extra.data() + offsetof(wire::Either, shipped), sizeof parked->function);
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
    if (from != nullptr && is_client(from->id) && slot->peer != from) return;  // clients answer what they were asked
    if ((header.flags & wire::kError) != 0) {
        std::string_view message = as_text(frame.payload), type;
        if (const std::size_t zero = message.find('\0');
            (header.flags & wire::kThrown) != 0 && zero != std::string_view::npos) {
            type = message.substr(0, zero);
            message.remove_prefix(zero + 1);
        }
        slot->end(
            Error::told(static_cast<ErrorCode>(header.status), std::string(message), header.handle, std::string(type)));
    } else if ((header.flags & wire::kParts) != 0) {
        slot->node = header.handle;
        slot->ran = static_cast<code::Ran>(header.status);
        slot->hops = header.hops;
        slot->end_gathered();
    } else {
        slot->node = header.handle;
        slot->ran = static_cast<code::Ran>(header.status);
        slot->hops = header.hops;
        slot->end(frame.payload);
    }
    call_ended(*slot);
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
