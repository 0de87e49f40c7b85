#include "control/control.hpp"

#include <asio/post.hpp>

namespace rove::control {
namespace {

// Turns an exception into an error. The libraries used here throw only when descriptors, threads or memory have run out.
template <typename Work>
auto without_exceptions(const std::string& what, Work&& work) -> decltype(work()) {
    try {
        return work();
    } catch (const std::exception& error) {
        return fail(ErrorCode::overloaded, "{}: {}", what, error.what());
    }
}

}  // namespace

Result<std::unique_ptr<Control>> Control::create(Host host) {
    return without_exceptions("a node's control thread cannot be started", [&]() -> Result<std::unique_ptr<Control>> {
        std::unique_ptr<Control> control(new Control(std::move(host)));
        // Not in a conversation, which would end for ever when memory runs out.
        control->thread_.start(
            [&listener = control->listener_, &host = control->host_, next = Clock::now() + kTurnMax]() mutable {
                listener.go_on();
                if (Clock::now() < next) return;
                next = Clock::now() + kTurnMax;
                host.every_second();
            });
        return control;
    });
}

// Each part is given references to those that it uses. Functions that are given to a part lead to parts made later, and are not called
// before all are made.
Control::Control(Host host)
    : host_(std::move(host)),
      cookie_(host_.options.cookie),
      thread_(host_.name),
      membership_({.self = self_,
                   .members = members_,
                   .ids = host_.ids,
                   .engines = host_.engines,
                   .name = host_.name,
                   .meet_again = [this](NodeId id) { healing_.begin(id); }}),
      healing_({.thread = thread_,
                .members = members_,
                .ids = host_.ids,
                .name = host_.name,
                .meet = [this](NodeId id) { return meetings_.meet_member(id, false); },
                .give_up = [this](NodeId id, const wire::control::PublicKey& key,
                                  const std::string& why) { membership_.give_up(id, key, why); }}),
      links_({.thread = thread_, .engines = host_.engines, .membership = membership_}),
      meetings_({.host = host_,
                 .thread = thread_,
                 .channels = channels_,
                 .cookie = cookie_,
                 .self = self_,
                 .members = members_,
                 .membership = membership_,
                 .links = links_}),
      joining_({.host = host_,
                .thread = thread_,
                .self = self_,
                .members = members_,
                .membership = membership_,
                .meetings = meetings_,
                .healing = healing_}),
      ids_({.self = self_,
            .members = members_,
            .ids = host_.ids,
            .engines = host_.engines,
            .meet_member = [this](NodeId id, bool probe) { return meetings_.meet_member(id, probe); },
            .is_opening = [this](NodeId id) { return meetings_.is_opening(id); }}),
      reception_({.host = host_,
                  .thread = thread_,
                  .self = self_,
                  .members = members_,
                  .membership = membership_,
                  .ids = ids_,
                  .links = links_},
                 cookie_),
      listener_(thread_, host_.name, [this](Socket socket) {
          reception_.receive(std::make_shared<Channel>(std::move(socket), channels_));
      }) {}

Control::~Control() {
    stop();
}

Result<std::string> Control::listen(const std::string& text) {
    if (text.empty()) return std::string();
    return without_exceptions("cannot listen on " + text, [&]() -> Result<std::string> {
        ROVE_TRY(const Address address, listener_.open(text, Clock::now() + host_.options.connect_timeout));
        // Read before any process connects, so that an error reaches the caller that starts the node.
        if (!address.is_unix()) ROVE_CHECK(cookie_.get());
        self_.listens_at(address.to_string());
        return self_.address();
    });
}

void Control::identity_known() {
    asio::post(thread_.io(), [this] {
        if (!self_.address().empty()) membership_.begin_cluster();
    });
}

void Control::accept() {
    listener_.accept();
}

Status Control::join(const std::string& address) {
    return without_exceptions("joining the node at " + address, [&]() -> Status {
        ROVE_TRY(const Address parsed, parse_address(address));
        ROVE_TRY(Endpoints endpoints, resolve_until(parsed, Clock::now() + host_.options.connect_timeout));
        ROVE_CHECK(thread_.run_and_wait(joining_.join(address, std::move(endpoints)), std::nullopt));
        return {};
    });
}

Result<std::shared_ptr<PeerState>> Control::connect(const std::string& address, std::shared_ptr<PeerState> old,
                                                    std::optional<TimePoint> deadline) {
    using Connected = Result<std::shared_ptr<PeerState>>;
    return without_exceptions("meeting the node at " + address, [&]() -> Connected {
        ROVE_TRY(const Address parsed, parse_address(address));
        ROVE_TRY(Endpoints endpoints,
                 resolve_until(parsed, deadline.value_or(Clock::now() + host_.options.connect_timeout)));
        return thread_.run_and_wait(meetings_.reach(address, std::move(endpoints), old), deadline);
    });
}

void Control::stop_accepting() {
    listener_.stop();
}

// In three steps: 1. no new meeting begins, and threads that wait for one are woken; 2. every connection says goodbye and is closed, and
// the thread ends; 3. conversations that have not ended are dropped, which gives back what they had taken.
void Control::stop() {
    if (!thread_.is_running()) return;
    stop_accepting();
    thread_.release_waiting();
    thread_.stop([this] {
        const std::vector<Channel*> open(channels_.begin(), channels_.end());
        for (Channel* channel : open) channel->close(wire::control::Goodbye{});
    });
    listener_.drop();
    meetings_.drop();
    reception_.drop();
    healing_.drop();
    thread_.drop();
}

}  // namespace rove::control
