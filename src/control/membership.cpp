// Joining, members that come and go, and links that were cut.
#include <sodium.h>

#include <asio/experimental/as_tuple.hpp>
#include <asio/use_awaitable.hpp>

#include "base/log.hpp"
#include "control/co_try.hpp"
#include "control/control.hpp"

namespace rove::control {
namespace {

constexpr auto kAwait = asio::experimental::as_tuple(asio::use_awaitable);
using State = MemberEntry::State;
using Trust = MemberEntry::Trust;
using wire::control::Certificate;
using wire::control::Member;

}  // namespace

void Control::i_am(NodeId id, std::uint32_t generation) {
    members_.set({id, generation, address_, keys_.key()}, State::living);
    host_.routes.set_identity(id, members_.count());
    identity_known_ = true;
}

asio::awaitable<Result<std::shared_ptr<PeerState>>> Control::join_all(std::string address, Endpoints endpoints) {
    const TimePoint limit = Clock::now() + host_.options.connect_timeout;
    Wanted wanted{.address = address, .endpoints = endpoints, .role = Role::join};
    Met met;
    for (unsigned redirects = 0;;) {
        Result<Met> asked = co_await meet(wanted);
        if (asked && asked->peer) {
            met = std::move(*asked);
            break;
        }
        if (asked) {
            if (++redirects > kRedirectsMax || asked->redirect == address_)
                co_return fail(ErrorCode::invalid, "cannot join: the nodes at {} send on from one to the other",
                               address);
            ROVE_CO_TRY(const Address next, parse_address(asked->redirect));
            ROVE_CO_TRY(Endpoints there, resolve(next, true));
            wanted = {.address = asked->redirect, .endpoints = std::move(there), .role = Role::join};
            continue;
        }
        // The node that this one was referred to has just ended. The node that referred it learns of that soon, so it is asked again.
        if (redirects == 0 || asked.error().code() != ErrorCode::disconnected || Clock::now() >= limit)
            co_return tl::unexpected<Error>(asked.error());
        co_await thread_.pause(std::chrono::milliseconds(20));
        wanted = {.address = address, .endpoints = endpoints, .role = Role::join};
        redirects = 0;
    }
    // Meets all members at once, up to kHealingMax, and the others after them. A member that is stopped delays only this node's start; if
    // many are stopped, this node does not wait for all of them, but meets them later, like members that were lost.
    std::vector<std::shared_ptr<Attempt>> attempts;
    for (const Member& member : met.members) {
        if (member.id == host_.routes.id()) continue;
        if (member.id == met.id) {
            members_.set(member, State::living);
            continue;
        }
        members_.set(member, State::lost, Trust::told);
        attempts.push_back(std::make_shared<Attempt>(thread_.io()));
        heal(member.id, std::chrono::milliseconds(0), attempts.back());
    }
    host_.routes.set_node_count(members_.count());
    const TimePoint long_enough = Clock::now() + host_.options.connect_timeout;
    for (const auto& attempt : attempts) {
        if (attempt->result) continue;
        attempt->ended.expires_at(long_enough);
        (void)co_await attempt->ended.async_wait(kAwait);  // until its end cancels that, at most
    }
    co_return met.peer;
}

// An id for a node that joins. Only one process can listen at an address. So a node that names the address of a known member either lies,
// or has taken the place of a member that is dead: asking at that address tells which.
asio::awaitable<Result<NodeId>> Control::give_id(const wire::control::Request& request) {
    if (request.address == address_)
        co_return fail(ErrorCode::invalid, "it says that it listens at {}, where this node does", address_);
    if (const NodeId former = members_.at(request.address); former != kNoNode) {
        if (members_.find(former)->state == State::joining)
            co_return fail(ErrorCode::overloaded, "another process is joining from {}; try again", request.address);
        const wire::control::PublicKey key = members_.find(former)->key;
        const Result<Met> there = co_await meet_member(former, members_.find(former)->state == State::living);
        const MemberEntry* entry = members_.find(former);
        if (entry->is_there() && entry->key == key)
            co_return fail(ErrorCode::refused, "node {} at {} lives{}", former, request.address,
                           there ? "" : ", or does not answer: " + there.error().message());
    }
    const NodeId id = members_.give(request.address, request.key, host_.routes.id());
    if (id == kNoNode)
        co_return fail(ErrorCode::overloaded, "{} nodes are members, the most there may be", kNodeIdMax + 1);
    co_return id;
}

Certificate Control::certify(NodeId id) const {
    const MemberEntry& entry = *const_cast<Members&>(members_).find(id);
    Certificate certificate{
        .id = id, .generation = entry.generation, .issuer = host_.routes.id(), .cluster = cluster_, .signature = {}};
    certificate.signature = keys_.sign(wire::control::statement(certificate, entry.address, entry.key));
    return certificate;
}

asio::awaitable<Result<Control::Met>> Control::meet_member(NodeId id, bool probe) {
    const MemberEntry* entry = members_.find(id);
    if (entry == nullptr || entry->state == State::gone)
        co_return fail(ErrorCode::disconnected, "node {} has left", id);
    const std::string at = entry->address;
    ROVE_CO_TRY(const Address address, parse_address(at));
    ROVE_CO_TRY(Endpoints endpoints, resolve(address, true));
    co_return co_await share(fmt::format("{}:{}", probe ? "probe" : "member", id), {.address = at,
                                                                                    .endpoints = std::move(endpoints),
                                                                                    .role = Role::member,
                                                                                    .old = entry->peer.lock(),
                                                                                    .member = id,
                                                                                    .probe = probe});
}

// Reached with a peer only if memory ran out before it was watched: nobody else would tell the node that the peer is gone.
Control::Unwatched::~Unwatched() {
    if (control_ == nullptr) return;
    control_->host_.peers.lose(who_.peer, who_.meeting, no_memory());
    try {
        if (who_.member != kNoNode) control_->member_went(who_.member, who_.meeting, false);
    } catch (const std::bad_alloc&) {  // its process sees the connection end, and meets this one again
    }
}

// The connection's remaining task: to tell that the peer is gone, and what members say of others.
asio::awaitable<void> Control::watch(std::shared_ptr<Channel> channel, Unwatched link) {
    using wire::control::Members;
    Watched who = link.take();
    const std::size_t bytes_max =
        who.member != kNoNode ? std::max(Members::kBytesMax, Goodbye::kBytesMax) : Goodbye::kBytesMax;
    Error why(ErrorCode::disconnected, "");
    bool left = false;
    try {
        for (;;) {
            const Result<ByteBuffer> body = co_await channel->receive(bytes_max);
            if (!body) {
                why = body.error().code() == ErrorCode::disconnected
                          ? Error(ErrorCode::disconnected,
                                  fmt::format("its process ended, or was cut off: {}", body.error().message()))
                          : body.error();
                break;
            }
            if (const Status said = channel->heed_goodbye(*body); !said) {
                why = said.error();
                left = channel->farewell() && channel->farewell()->goodbye.reason == Goodbye::Reason::left;
                break;
            }
            const Result<Members> members = who.member != kNoNode
                                                ? wire::control::decode<Members>(*body)
                                                : fail(ErrorCode::invalid, "it sent a control message that is not due");
            if (!members) {
                why = members.error();
                break;
            }
            heard_of(members->members, who.member);
        }
    } catch (const std::exception&) {
        why = no_memory();
    }
    Goodbye goodbye{.reason = Goodbye::Reason::cut, .code = why.code(), .text = {}};
    try {
        goodbye.text = why.message();
    } catch (const std::bad_alloc&) {  // without words, then
    }
    host_.peers.lose(who.peer, who.meeting, std::move(why));  // needs no memory: nobody else would tell the node
    channel->close(goodbye);
    who.client = {};
    if (who.member != kNoNode) member_went(who.member, who.meeting, left);
}

// Whose word about ids counts here, in certificates and in lists: that of the member with the lowest id, which gives them, and
// of the one by which this node has its own; not that of one that has gone, nor of one that was only told of.
bool Control::gives_ids(NodeId id) const {
    const MemberEntry* entry = const_cast<Members&>(members_).find(id);
    if (entry == nullptr || entry->trust != Trust::proven || !entry->is_there()) return false;
    return id == host_.routes.id() || id == members_.lowest() || id == certificate_.issuer;
}

// The same, where those with lower ids may have died and this node did not notice yet: asks them.
asio::awaitable<bool> Control::gives_ids_now(NodeId id) {
    for (NodeId lowest = members_.lowest(); !gives_ids(id); lowest = members_.lowest()) {
        const MemberEntry* entry = members_.find(id);
        if (entry == nullptr || !entry->is_there() || lowest >= id || lowest == host_.routes.id()) co_return false;
        (void)co_await meet_member(lowest, members_.find(lowest)->state == State::living);
        if (members_.lowest() == lowest) co_return false;
    }
    co_return true;
}

void Control::member_is_here(NodeId id, const Peers::Adopted& adopted, const std::shared_ptr<Channel>& channel) {
    MemberEntry* entry = members_.find(id);
    const bool again = entry->meeting != 0;
    const bool news = entry->trust != Trust::proven;
    members_.set({id, entry->generation, entry->address, entry->key}, State::living);
    entry->peer = adopted.peer;
    entry->meeting = adopted.meeting;
    member_channels_[id] = channel;
    host_.routes.set_node_count(members_.count());
    if (news) tell({{id, entry->generation, entry->address, entry->key}}, id);
    if ((!again && entry->let_in_here) || members_.lowest() != host_.routes.id()) return;
    // Each may have heard of others while the two had no link. Who has just joined has been told already.
    std::vector<Member> all = members_.list(id);
    for (std::size_t begin = 0; begin < all.size(); begin += wire::control::Members::kMost) {
        const std::size_t end = std::min(all.size(), begin + wire::control::Members::kMost);
        channel->say(encode(wire::control::Members{.members = {all.begin() + static_cast<std::ptrdiff_t>(begin),
                                                               all.begin() + static_cast<std::ptrdiff_t>(end)}}));
    }
}

void Control::member_went(NodeId id, std::uint64_t meeting, bool left) {
    MemberEntry* entry = members_.find(id);
    if (entry == nullptr || entry->meeting != meeting || entry->state != State::living) return;
    entry->state = State::lost;
    if (left) return member_is_gone(id, entry->key, "it left", true);
    heal(id, host_.routes.id() > id ? std::chrono::milliseconds(0) : kHealDeference);
}

void Control::member_is_gone(NodeId id, const wire::control::PublicKey& key, const std::string& why, bool said) {
    MemberEntry* entry = members_.find(id);
    if (entry == nullptr || !entry->is_there() || entry->key != key || id == host_.routes.id()) return;
    entry->has_gone();
    if (!said) log().info("{}: node {} at {} is gone: {}", host_.name(), id, entry->address, why);
    if (const std::shared_ptr<PeerState> peer = entry->peer.lock())
        host_.peers.lose(peer, entry->meeting, Error(ErrorCode::disconnected, why));
    host_.peers.member_gone(id, fmt::format("node {} at {} is gone: {}", id, entry->address, why));
    member_channels_.erase(id);
}

void Control::heard_of(const std::vector<Member>& members, NodeId from) {
    if (!gives_ids(from)) return;  // each new member comes by itself, with its certificate
    for (const Member& member : members) {
        if (member.id == host_.routes.id() || member.id == from || !members_.learn(member)) continue;
        heal(member.id, host_.routes.id() > member.id ? std::chrono::milliseconds(0) : kHealDeference);
    }
}

// Tells linked members about members that this node has met. The node that gives ids tells all of them. Any other node tells those that
// it let in itself, which believe it: it may not have met all members by then, and has named to them only those that it had met.
void Control::tell(const std::vector<Member>& news, NodeId except) {
    const bool all = members_.lowest() == host_.routes.id();
    const ByteBuffer message = encode(wire::control::Members{.members = news});
    for (const auto& [id, weak] : member_channels_)
        if (const auto channel = weak.lock(); channel && id != except && (all || members_.find(id)->let_in_here))
            channel->say(message);
}

// While this lives, somebody tries to meet a member again. `first` is ended by the first attempt, or when this is destroyed.
class Control::Healing {
public:
    Healing(MemberEntry& entry, std::shared_ptr<Attempt> first) : entry_(entry), first_(std::move(first)) {
        entry_.healing = true;
    }
    ~Healing() {
        entry_.healing = false;
        tried();
    }
    Healing(const Healing&) = delete;
    void tried() {
        if (!first_) return;
        first_->result.emplace(Met{});
        std::exchange(first_, nullptr)->ended.cancel();
    }

private:
    MemberEntry& entry_;
    std::shared_ptr<Attempt> first_;
};

// One of the meetings that heal at once.
class Control::HealPlace {
public:
    HealPlace(Control& control, const std::string& address)
        : control_(control), place_(control.healing_at_.insert(address).first) {}
    ~HealPlace() {
        control_.healing_at_.erase(place_);
        if (control_.heal_room_) control_.heal_room_->cancel();
    }
    HealPlace(const HealPlace&) = delete;

private:
    Control& control_;
    std::set<std::string>::iterator place_;
};

void Control::heal(NodeId id, std::chrono::milliseconds pause_first, std::shared_ptr<Attempt> first) {
    MemberEntry* entry = members_.find(id);
    host_.peers.member_expected(id, entry->key, fmt::format("node {} at {} has not been met yet", id, entry->address));
    if (entry->healing) {
        if (first) first->result.emplace(Met{});
        return;
    }
    thread_.spawn(meet_again(std::make_shared<Healing>(*entry, std::move(first)), id, pause_first),
                  "meeting a member again");
}

// Waits until there is room for it.
asio::awaitable<Result<Control::Met>> Control::meet_in_turn(NodeId id) {
    const std::string address = members_.find(id)->address;
    while (healing_at_.size() >= kHealingMax || healing_at_.contains(address))
        (void)co_await heal_room_->async_wait(kAwait);
    const HealPlace place(*this, address);
    co_return co_await meet_member(id, false);
}

asio::awaitable<void> Control::meet_again(std::shared_ptr<Healing> healing, NodeId id, std::chrono::milliseconds next) {
    const MemberEntry& entry = *members_.find(id);
    std::optional<TimePoint> failing_since;
    for (unsigned tries = 1;; ++tries) {
        if (next.count() > 0) {
            const auto jitter = randombytes_uniform(static_cast<std::uint32_t>(next.count() / 4 + 1));
            co_await thread_.pause(next + std::chrono::milliseconds(jitter));
        }
        if (entry.state != State::lost) break;
        const TimePoint began = Clock::now();
        const Result<Met> met = co_await meet_in_turn(id);
        healing->tried();
        if (entry.state != State::lost) break;
        if (!met)
            log().warn("{}: node {} at {} was not met: {}", host_.name(), id, entry.address, met.error().message());
        failing_since = failing_since.value_or(began);
        if ((entry.trust == Trust::told && tries >= kToldTriesMax) || Clock::now() - *failing_since > kHealTimeMax) {
            member_is_gone(id, entry.key, "it did not answer for long");
            break;
        }
        next = std::clamp(next * 2, kHealPauseMin, kHealPauseMax);
    }
}

}  // namespace rove::control
