#include "control/control.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <asio/co_spawn.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>
#include <future>

#include "base/float_environment.hpp"
#include "base/log.hpp"

namespace rove::control {
namespace {

// How often the node looks for functions that wait for each other's locks.
constexpr auto kDeadlockLook = std::chrono::seconds(1);
// How long the control thread waits after memory has run out. Without a pause it would find none again, and keep a core busy.
constexpr auto kMemoryPause = std::chrono::milliseconds(10);
constexpr auto kAwait = asio::experimental::as_tuple(asio::use_awaitable);

// Turns an exception into an error. The libraries used here throw only when descriptors, threads or memory have run out.
template <typename Work>
auto without_exceptions(const std::string& what, Work&& work) -> decltype(work()) {
    try {
        return work();
    } catch (const std::exception& error) {
        return fail(ErrorCode::overloaded, "{}: {}", what, error.what());
    }
}

Error ending() {
    return {ErrorCode::cancelled, "this node is ending: it meets nobody any more"};
}

}  // namespace

Result<std::unique_ptr<Control>> Control::create(Host host) {
    return without_exceptions("a node's control thread cannot be started", [&]() -> Result<std::unique_ptr<Control>> {
        std::unique_ptr<Control> control(new Control(std::move(host)));
        control->start_thread();
        control->spawn(control->look_for_deadlocks(), "looking for deadlocks");
        return control;
    });
}

Control::Control(Host host) : host_(std::move(host)), io_(std::make_unique<asio::io_context>(1)) {
    keep_.emplace(io_->get_executor());
    heal_room_.emplace(*io_, asio::steady_timer::time_point::max());
}

void Control::start_thread() {
    thread_ = rove::start_thread([this] {
        for (;;) try {
                if (std::exchange(accepts_no_more_, false) && acceptor_->is_open()) accept();
                if (io_->run_one() == 0) return;
            } catch (const std::exception& error) {  // out of memory, in a handler: the others go on
                log().error("{}: the control thread: {}", host_.name(), error.what());
                std::this_thread::sleep_for(kMemoryPause);
            }
    });
    const MutexLock lock(gate_->mutex);
    gate_->io = io_.get();
}

Control::~Control() {
    stop();
}

Result<std::string> Control::listen(const std::string& text) {
    if (text.empty()) return std::string();
    return without_exceptions("cannot listen on " + text, [&]() -> Result<std::string> {
        ROVE_TRY(Address address, parse_address(text));
        ROVE_TRY(const auto endpoints, resolve_until(address, Clock::now() + host_.options.connect_timeout));
        const auto& endpoint = endpoints.front();
        std::optional<PathLock> path_lock;
        if (address.is_unix()) path_lock.emplace(address.path);
        const AtPath found = address.is_unix() ? clear_path(address.path) : AtPath::nothing;
        if (found == AtPath::no_socket)
            return fail(ErrorCode::invalid, "cannot listen on {}: it is there and is no socket; choose another path",
                        text);
        asio::error_code error;
        acceptor_.emplace(*io_);
        acceptor_->open(endpoint.protocol(), error);
        if (!error) (void)fcntl(acceptor_->native_handle(), F_SETFD, FD_CLOEXEC);
        if (!error) close_in_forks(acceptor_->native_handle());  // nobody would answer whom the child's copy lets in
        if (!error && !address.is_unix()) acceptor_->set_option(asio::socket_base::reuse_address(true), error);
        const auto bind = [&] {
            acceptor_->bind(endpoint, error);
            return !error;
        };
        if (!error && address.is_unix())
            socket_file_.make(address.path, bind);
        else if (!error)
            (void)bind();
        if (!error) acceptor_->listen(asio::socket_base::max_listen_connections, error);
        if (error == asio::error::address_in_use)
            return fail(ErrorCode::invalid, "cannot listen on {}: another process does; choose another{}", text,
                        address.is_unix() ? " path" : " port, or port 0 for a free one");
        if (error) return fail(ErrorCode::invalid, "cannot listen on {}: {}", text, error.message());
        if (address.is_unix()) {
            chmod(address.path.c_str(), 0600);
        } else {
            ROVE_CHECK(cookie());  // before anybody comes, and with an error that the one who starts the node sees
            address = *parse_address(endpoint_text(acceptor_->local_endpoint()));
        }
        address_ = address.to_string();
        return address_;
    });
}

void Control::identity_known() {
    asio::post(*io_, [this] {
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

// If memory runs out, the exception ends this one conversation. The destructors of its coroutine frame give back what it had taken.
void Control::spawn(asio::awaitable<void> work, const char* what) {
    asio::co_spawn(*io_, std::move(work), [this, what](const std::exception_ptr& failed) {
        if (!failed) return;
        try {
            std::rethrow_exception(failed);
        } catch (const std::exception& error) {
            log().error("{}: {}: {}", host_.name(), what, error.what());
        } catch (...) {
            log().error("{}: {}: unknown exception", host_.name(), what);
        }
    });
}

asio::awaitable<void> Control::pause(std::chrono::milliseconds time) {
    asio::steady_timer timer(*io_, time);
    (void)co_await timer.async_wait(kAwait);
}

asio::awaitable<void> Control::look_for_deadlocks() {
    for (;;) {
        co_await pause(kDeadlockLook);
        host_.every_second();
    }
}

void Control::accept() {
    spawn(accept_all(Accepting(&accepts_no_more_)), "accepting connections");
}

// If there is no memory to wait for the next connection, the exception leaves this coroutine; the control thread starts another one.
asio::awaitable<void> Control::accept_all(Accepting /*accepting*/) {
    for (bool told = false;;) {
        try {
            auto [error, socket] = co_await acceptor_->async_accept(*io_, kAwait);
            if (error == asio::error::operation_aborted || !acceptor_->is_open()) co_return;
            if (!error) {
                told = false;
                spawn(receive_one(std::make_shared<Channel>(std::move(socket), channels_)), "a meeting");
                continue;
            }
            // For example, no descriptor is free; one may be soon.
            if (!std::exchange(told, true))
                log().error("{} cannot take connections ({}); who connects waits until it can", host_.name(),
                            error.message());
            co_await pause(std::chrono::milliseconds(100));
        } catch (const std::bad_alloc&) {  // the connection is closed
            log().error("{} cannot take a connection: memory ran out", host_.name());
        }
    }
}

// Any thread may hang up; who does it says why, and the other end is told.
std::function<void(const Error&)> Control::hang_up_of(const std::shared_ptr<Channel>& channel) {
    return [gate = gate_, weak = std::weak_ptr(channel)](const Error& why) {
        const MutexLock lock(gate->mutex);
        if (gate->io == nullptr) return;
        Goodbye goodbye{.reason = Goodbye::Reason::cut, .code = why.code(), .text = why.message()};
        asio::post(*gate->io, [weak, goodbye = std::move(goodbye)] {
            if (const auto open = weak.lock()) open->close(goodbye);
        });
    };
}

Result<std::shared_ptr<PeerState>> Control::run_and_wait(asio::awaitable<Result<std::shared_ptr<PeerState>>> work,
                                                         std::optional<TimePoint> deadline) {
    const auto awaited = std::make_shared<Awaited>();
    const LockOf lock(waiting_mutex_);
    if (stopped_) return tl::unexpected<Error>(ending());
    asio::co_spawn(*io_, std::move(work),
                   [this, awaited](const std::exception_ptr& failed, Result<std::shared_ptr<PeerState>> value) {
                       const LockOf guard(waiting_mutex_);
                       awaited->result.emplace(failed ? tl::unexpected<Error>(no_memory()) : std::move(value));
                       ended_.notify_all();
                   });
    ++waiting_;
    while (!awaited->result && !stopped_ && (!deadline || Clock::now() < *deadline)) {
        if (deadline)
            (void)ended_.wait_until(waiting_mutex_, *deadline);
        else
            ended_.wait(waiting_mutex_);
    }
    --waiting_;
    ended_.notify_all();
    if (!awaited->result && !stopped_)  // the meeting goes on, for whoever wants it next
        return fail(ErrorCode::timed_out, "no link to it was made in the time that was given");
    if (!awaited->result) return tl::unexpected<Error>(ending());
    return *awaited->result;
}

Status Control::join(const std::string& address) {
    return without_exceptions("joining the node at " + address, [&]() -> Status {
        ROVE_TRY(const Address parsed, parse_address(address));
        ROVE_TRY(Endpoints endpoints, resolve_until(parsed, Clock::now() + host_.options.connect_timeout));
        ROVE_CHECK(run_and_wait(join_all(address, std::move(endpoints)), std::nullopt));
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
        return run_and_wait(reach(address, std::move(endpoints), old), deadline);
    });
}

void Control::close_acceptor() {
    if (!acceptor_ || !acceptor_->is_open()) return;
    asio::error_code ignored;
    keep_in_forks(acceptor_->native_handle());
    acceptor_->close(ignored);
}

void Control::stop_accepting() {
    {
        const MutexLock lock(gate_->mutex);
        if (gate_->io != nullptr) asio::post(*gate_->io, [this] { close_acceptor(); });
    }
    socket_file_.remove();
}

// In three steps: 1. no new meeting begins, and whoever waits for one is told; 2. every connection says goodbye and is closed, and the
// thread ends; 3. conversations that have not ended are dropped, which gives back what they had taken.
void Control::stop() {
    if (!thread_.joinable()) return;
    stop_accepting();
    {
        const LockOf lock(waiting_mutex_);
        stopped_ = true;
        ended_.notify_all();
        while (waiting_ > 0) ended_.wait(waiting_mutex_);
    }
    {
        const MutexLock lock(gate_->mutex);
        gate_->io = nullptr;
    }
    asio::post(*io_, [this] {
        const std::vector<Channel*> open(channels_.begin(), channels_.end());
        for (Channel* channel : open) channel->close(Goodbye{});
        io_->stop();
    });
    thread_.join();
    close_acceptor();
    acceptor_.reset();
    drops_all_ = true;
    attempts_.clear();
    strangers_.clear();
    heal_room_.reset();
    keep_.reset();
    io_.reset();
}

}  // namespace rove::control
