#include "control/reception.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "control/co_try.hpp"

namespace rove::control {
namespace {

// How often a node that is joining others checks whether it has its id, for guests that wait for that.
constexpr auto kIdentityLook = std::chrono::milliseconds(5);

using wire::control::Challenge;
using wire::control::Goodbye;
using wire::control::Hello;
using wire::control::LaneHello;
using wire::control::ProofGiven;
using wire::control::Request;
using wire::control::Role;

// Counts itself in `count` during its lifetime.
class Counted {
public:
    explicit Counted(std::size_t& count) : count_(count) { ++count_; }
    ~Counted() { --count_; }
    Counted(const Counted&) = delete;

private:
    std::size_t& count_;
};

}  // namespace

asio::awaitable<void> Reception::receive_one(std::shared_ptr<Channel> channel) {
    Strangers::Place stranger(strangers_, channel);
    Guest guest{.channel = channel, .mine = {}, .theirs = {}};
    std::string from = channel->remote_endpoint();
    if (from == "unix") from = channel->origin();
    Status met;
    try {
        met = co_await welcome(guest, stranger);
    } catch (const std::bad_alloc&) {
        met = fail(ErrorCode::overloaded, "memory ran out");
    }
    if (met) co_return;
    const std::string failed = fmt::format("a meeting with {} failed: {}", from, met.error().message());
    // No error: two members have met each other at the same time, or one looks for the process before this one.
    if (guest.reason == Goodbye::Reason::linked || guest.reason == Goodbye::Reason::another)
        log().debug("{}: {}", beside_.host.name(), failed);
    else
        complaints_.say(beside_.host.name(), failed);
    channel->close(Goodbye{.reason = guest.reason, .code = met.error().code(), .text = met.error().message()});
}

// Up to the proof that the guest belongs to the same user.
asio::awaitable<Status> Reception::welcome(Guest& guest, Strangers::Place& stranger) {
    const std::shared_ptr<Channel> channel = guest.channel;
    ROVE_CO_TRY(const bool same_user, channel->same_user());
    ChannelDeadline deadline(beside_.thread.io(), channel);
    deadline.set(std::min<std::chrono::milliseconds>(kHelloTimeMax, beside_.host.options.connect_timeout));
    Status met = co_await converse(guest, stranger, same_user, deadline);
    if (!met && deadline.passed())  // which has closed the channel; `met` says no more than that
        co_return fail(ErrorCode::timed_out, "it did not answer in time");
    co_return met;
}

asio::awaitable<Status> Reception::converse(Guest& guest, Strangers::Place& stranger, bool same_user,
                                            ChannelDeadline& deadline) {
    const std::shared_ptr<Channel> channel = guest.channel;
    ROVE_CO_TRY(const ByteBuffer first, co_await channel->receive(std::max(Hello::kBytesMax, LaneHello::kBytesMax)));
    if (wire::control::kind_of(first) == wire::control::Kind::lane) {
        ROVE_CO_TRY(const LaneHello lane, wire::control::decode<LaneHello>(first));
        co_return expected_lanes_.bring(*channel, lane.ticket);
    }
    ROVE_CO_TRY(const Hello hello, wire::control::decode<Hello>(first));
    guest.role = hello.role;
    guest.theirs = hello.nonce;
    deadline.set(beside_.host.options.connect_timeout);
    ROVE_CO_CHECK(co_await await_identity(guest));
    guest.mine = random_nonce();
    ROVE_CO_CHECK(co_await check_guest(guest, same_user, stranger));
    stranger.proven();
    if (meetings_ >= kMeetingsMax)
        co_return fail(ErrorCode::overloaded, "{} has {} meetings under way, the most there may be; try again",
                       beside_.host.name(), kMeetingsMax);
    const Counted meeting(meetings_);
    ROVE_CO_TRY(Request request, co_await channel->receive<Request>());
    Arrival arrival(beside_, clients_, expected_lanes_, guest, std::move(request));
    co_return co_await arrival.let_in();
}

// A node that is joining others admits no process before it has its id; another member learns at once that this is no member.
asio::awaitable<Status> Reception::await_identity(Guest& guest) {
    if (!beside_.self.is_member() && guest.role == Role::member) {
        guest.reason = Goodbye::Reason::not_joined;
        co_return fail(ErrorCode::refused, "this process is a member of no cluster yet");
    }
    while (!beside_.self.is_member() && guest.channel->is_open()) co_await beside_.thread.pause(kIdentityLook);
    if (!beside_.self.is_member()) co_return fail(ErrorCode::timed_out, "this node is a member of no cluster yet");
    co_return Status();
}

// On TCP both prove that they know the cookie, this node first.
asio::awaitable<Status> Reception::check_guest(const Guest& guest, bool same_user, Strangers::Place& stranger) {
    Channel& channel = *guest.channel;
    Challenge challenge{.nonce = guest.mine, .proof = {}};
    Proof expected;
    if (!same_user) {
        ROVE_CO_TRY(const Cookie secret, cookie_.get());
        challenge.proof = prove(secret, "node", guest.mine, guest.theirs, channel.local_endpoint());
        expected = prove(secret, "peer", guest.mine, guest.theirs, channel.local_endpoint());
    }
    stranger.challenged();
    ROVE_CO_CHECK(co_await channel.send(encode(challenge)));
    ROVE_CO_TRY(const ProofGiven given, co_await channel.receive<ProofGiven>());
    if (!same_user && !same(given.proof, expected))
        co_return fail(ErrorCode::refused,
                       "a process at {} does not know this node's cookie: it belongs to another user, or uses "
                       "another --cookie",
                       channel.remote_endpoint());
    co_return Status();
}

}  // namespace rove::control
