#include "control/control.hpp"

#include <asio/post.hpp>

namespace rove::control {
namespace {

// How often the node looks for functions that wait for each other's locks.
constexpr auto kDeadlockLook = std::chrono::seconds(1);
// Turns an exception into an error. The libraries used here throw only when descriptors, threads or memory have run out.
template <typename Work>
auto without_exceptions(const std::string& what, Work&& work) -> decltype(work()) {
    try {
        return work();
    } catch (const std::exception& error) {
        return fail(ErrorCode::overloaded, "{}: {}", what, error.what());
    }
}

asio::awaitable<void> look_for_deadlocks(ControlThread& thread, const Host& host) {
    for (;;) {
        co_await thread.pause(kDeadlockLook);
        host.every_second();
    }
}

}  // namespace

Result<std::unique_ptr<Control>> Control::create(Host host) {
    return without_exceptions("a node's control thread cannot be started", [&]() -> Result<std::unique_ptr<Control>> {
        std::unique_ptr<Control> control(new Control(std::move(host)));
        control->thread_.start([&listener = control->listener_] { listener.go_on(); });
        control->thread_.spawn(look_for_deadlocks(control->thread_, control->host_), "looking for deadlocks");
        return control;
    });
}

Control::Control(Host host)
    : host_(std::move(host)), thread_(host_.name), listener_(thread_, host_.name, [this](Socket socket) {
          thread_.spawn(receive_one(std::make_shared<Channel>(std::move(socket), channels_)), "a meeting");
      }) {
    heal_room_.emplace(thread_.io(), asio::steady_timer::time_point::max());
}

Control::~Control() {
    stop();
}

Result<std::string> Control::listen(const std::string& text) {
    if (text.empty()) return std::string();
    return without_exceptions("cannot listen on " + text, [&]() -> Result<std::string> {
        ROVE_TRY(const Address address, listener_.open(text, Clock::now() + host_.options.connect_timeout));
        // Read before anybody comes, and with an error that the one who starts the node sees.
        if (!address.is_unix()) ROVE_CHECK(cookie());
        address_ = address.to_string();
        return address_;
    });
}

void Control::identity_known() {
    asio::post(thread_.io(), [this] {
        if (!address_.empty()) {  // the first node of a cluster
            cluster_ = random_id<wire::control::Cluster>();
            i_am(host_.routes.id(), 1);
            certificate_ = certify(host_.routes.id());
        }
    });
}

Result<Cookie> Control::cookie() {
    if (cookie_) return *cookie_;
    ROVE_TRY(const Cookie read, read_or_make_cookie(cookie_path(host_.options.cookie)));
    cookie_ = read;
    return read;
}

void Control::accept() {
    listener_.accept();
}

std::function<void(const Error&)> hang_up_of(std::shared_ptr<Gate> gate, const std::shared_ptr<Channel>& channel) {
    return [gate = std::move(gate), weak = std::weak_ptr(channel)](const Error& why) {
        wire::control::Goodbye goodbye{
            .reason = wire::control::Goodbye::Reason::cut, .code = why.code(), .text = why.message()};
        gate->post([weak, goodbye = std::move(goodbye)] {
            if (const auto open = weak.lock()) open->close(goodbye);
        });
    };
}

Status Control::join(const std::string& address) {
    return without_exceptions("joining the node at " + address, [&]() -> Status {
        ROVE_TRY(const Address parsed, parse_address(address));
        ROVE_TRY(Endpoints endpoints, resolve_until(parsed, Clock::now() + host_.options.connect_timeout));
        ROVE_CHECK(thread_.run_and_wait(join_all(address, std::move(endpoints)), std::nullopt));
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
        return thread_.run_and_wait(reach(address, std::move(endpoints), old), deadline);
    });
}

void Control::stop_accepting() {
    listener_.stop();
}

// In three steps: 1. no new meeting begins, and whoever waits for one is told; 2. every connection says goodbye and is closed, and the
// thread ends; 3. conversations that have not ended are dropped, which gives back what they had taken.
void Control::stop() {
    if (!thread_.is_running()) return;
    stop_accepting();
    thread_.release_waiting();
    thread_.stop([this] {
        const std::vector<Channel*> open(channels_.begin(), channels_.end());
        for (Channel* channel : open) channel->close(Goodbye{});
    });
    listener_.drop();
    drops_all_ = true;
    attempts_.clear();
    strangers_.clear();
    heal_room_.reset();
    thread_.drop();
}

}  // namespace rove::control
