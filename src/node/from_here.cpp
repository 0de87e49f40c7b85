// What a running function may ask of its node beyond an answer: calls of its own, objects, time.
#include "base/demangle.hpp"
#include "node/begun_call.hpp"
#include "node/core.hpp"
#include "node/offload.hpp"
#include "node/residents.hpp"

namespace rove {

Result<CallTable::Id> NodeCore::call_from_here(NodeId to, code::EntryPoint function, const Pieces& payload,
                                               bool wants_reply, Deadline deadline) {
    Callee callee{.id = nullptr};
    FunctionId id;
    std::shared_ptr<PackageStore> package;
    std::string name;
    if (const Resident* own = Residents::find(function)) {
        callee = {.id = &own->id, .name = own->name, .own = true, .schema = own->schema};
        if (to == this->id()) {
            Hold hold(*this);
            ROVE_TRY(const code::Function* known, cache_->add_resident(own->id, own->name, own->entry));
            (void)known;
        } else if (const detail::Callable* callable = detail::callable_of(function)) {
            ROVE_CHECK(detail::complete(callee, *callable));
        }
    } else {
        Hold hold(*this);
        const code::Function* known = cache_->find(function);
        if (known == nullptr)
            return fail(ErrorCode::invalid,
                        "a function on {} calls code that is neither of this node's program nor of a package",
                        this->name());
        id = known->id;
        name = known->name;
        package = cache_->package_of(*known);
        callee = {.id = &id, .package = &package, .name = name};
    }
    if (to == this->id() && payload.size() > wire::kMessageBytesMax)
        return fail(ErrorCode::invalid, "{}: {} bytes of arguments are over the limit of {}", callee.name,
                    payload.size(), wire::kMessageBytesMax);
    if (to == this->id()) {
        ROVE_CHECK(in_time(deadline));
        ByteBuffer room;
        const Bytes joined = payload.joined(room);
        Hold hold(*this);
        ROVE_TRY(BegunCall begun, BegunCall::in(calls_, nullptr, wants_reply));
        ROVE_CHECK(send_to_self({to, *callee.id, joined,
                                 wire::FrameHeader{.flags = wants_reply ? std::uint8_t{0} : wire::kNoReply,
                                                   .generation = begun.id().generation,
                                                   .node = to,
                                                   .call = begun.id().slot}}));
        return sent_within(begun.sent(), wants_reply, deadline);
    }
    ROVE_TRY(const std::shared_ptr<PeerState> peer, linked(to));
    return call(peer, {.callee = callee, .payload = payload, .wants_reply = wants_reply, .deadline = deadline});
}

Result<std::shared_ptr<PeerState>> NodeCore::linked(NodeId to) {
    Hold hold(*this);
    const PeerState* found = routes_.to(to);
    for (const auto& each : peers_)
        if (each.get() == found && each->back == to) return each;
    if (is_client(to))
        return fail(ErrorCode::invalid, "{} has no link to client {:x}: only the node that a client met can call it",
                    this->name(), to);
    if (to < node_count()) return tl::unexpected<Error>(absent(to));
    return fail(ErrorCode::invalid, "{} knows no node {}: there are {}", this->name(), to, node_count());
}

// As of a function that is known to run long.
void NodeCore::hand_over_here() {
    Hold hold(*this);
    if (!runs_as_leader() || !lead_.has_followers() || options_.threads < 2) return;
    running_->begun = Clock::now();
    set_aside(*running_);
    lead_.hand_over_to_follower();
}

std::optional<code::Entered> NodeCore::hold_code(const code::Function& function) {
    auto entered = cache_->enter(const_cast<code::Function&>(function));
    if (auto* held = std::get_if<code::Entered>(&entered)) return std::move(*held);
    return std::nullopt;
}

Status NodeCore::share(const std::string& name, void* object, std::string_view type) {
    const std::lock_guard lock(shared_mutex_);
    if (!shared_.try_emplace(name, SharedObject{object, std::string(type)}).second)
        return fail(ErrorCode::invalid, "{} shares another object as '{}' already", this->name(), name);
    return {};
}

void NodeCore::unshare(const std::string& name) {
    const std::lock_guard lock(shared_mutex_);
    shared_.erase(name);
}

// "Shop, 24, 8" of rove::detail::Shared<Shop, 24, 8> (rove/shared_type.hpp); what a C program gave stays as it is.
static std::string words_of_shared_type(const std::string& type) {
    constexpr std::string_view kBegin = "rove::detail::Shared<";
    const std::string name = demangled(type.c_str());
    if (!name.starts_with(kBegin)) return name;
    std::string words = name.substr(kBegin.size(), name.size() - kBegin.size() - 1);
    for (std::size_t at = 0; (at = words.find("ul", at)) != std::string::npos;)
        if (at > 0 && words[at - 1] >= '0' && words[at - 1] <= '9')
            words.erase(at, 2);
        else
            at += 2;
    return words;
}

Result<void*> NodeCore::shared_object(std::string_view name, std::string_view type) const {
    const std::lock_guard lock(shared_mutex_);
    const auto found = shared_.find(name);
    if (found == shared_.end()) {
        std::string names;
        for (const auto& [each, object] : shared_) names += (names.empty() ? "" : ", ") + each;
        return fail(ErrorCode::invalid, "{} shares no object '{}'; {}{}", this->name(), name,
                    names.empty() ? "it shares none" : "there are: ", names);
    }
    if (found->second.type != type)
        return fail(
            ErrorCode::invalid,
            "{} shares '{}' as another type than it is asked for: ({}) and not ({}), with its size and alignment "
            "in bytes; build both programs with one definition of it",
            this->name(), name, words_of_shared_type(found->second.type), words_of_shared_type(std::string(type)));
    return found->second.object;
}

bool NodeCore::reaches(NodeId node, std::string_view address) {
    Hold hold(*this);
    if (node == id()) return address == address_;
    const PeerState* peer = routes_.member(node);
    return peer != nullptr && peer->address == address;
}

}  // namespace rove
