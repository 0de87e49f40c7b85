#include "control/control_thread.hpp"

#include <asio/co_spawn.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include "base/float_environment.hpp"
#include "base/log.hpp"

namespace rove::control {
namespace {

// How long the thread waits after memory has run out. Without a pause it would find none again, and keep a core busy.
constexpr auto kMemoryPause = std::chrono::milliseconds(10);

Error ending() {
    return {ErrorCode::cancelled, "this node is ending: it meets nobody any more"};
}

}  // namespace

ControlThread::ControlThread(std::function<std::string()> name)
    : name_(std::move(name)), io_(std::make_unique<asio::io_context>(1)) {
    keep_.emplace(io_->get_executor());
}

void ControlThread::start(std::function<void()> between) {
    thread_ = rove::start_thread([this, between = std::move(between)] {
        for (;;) try {
                between();
                if (io_->run_one_for(kTurnMax) == 0 && io_->stopped()) return;
            } catch (const std::exception& error) {  // out of memory, in a handler: the others continue
                log().error("{}: the control thread: {}", name_(), error.what());
                std::this_thread::sleep_for(kMemoryPause);
            }
    });
    gate_->open(*io_);
}

void ControlThread::spawn(asio::awaitable<void> conversation, const char* what) {
    asio::co_spawn(*io_, std::move(conversation), [this, what](const std::exception_ptr& failed) {
        if (!failed) return;
        try {
            std::rethrow_exception(failed);
        } catch (const std::exception& error) {
            log().error("{}: {}: {}", name_(), what, error.what());
        } catch (...) {
            log().error("{}: {}: unknown exception", name_(), what);
        }
    });
}

ControlThread::Connected ControlThread::run_and_wait(asio::awaitable<Connected> work,
                                                     std::optional<TimePoint> deadline) {
    const auto awaited = std::make_shared<Awaited>();
    const LockOf lock(mutex_);
    if (is_ending_) return tl::unexpected<Error>(ending());
    asio::co_spawn(*io_, std::move(work), [this, awaited](const std::exception_ptr& failed, Connected value) {
        const LockOf guard(mutex_);
        awaited->result.emplace(failed ? tl::unexpected<Error>(no_memory()) : std::move(value));
        changed_.notify_all();
    });
    ++waiting_;
    while (!awaited->result && !is_ending_ && (!deadline || Clock::now() < *deadline)) {
        if (deadline)
            (void)changed_.wait_until(mutex_, *deadline);
        else
            changed_.wait(mutex_);
    }
    --waiting_;
    changed_.notify_all();
    if (!awaited->result && !is_ending_)  // the meeting continues, for the next thread that asks for it
        return fail(ErrorCode::timed_out, "no link to it was made in the time that was given");
    if (!awaited->result) return tl::unexpected<Error>(ending());
    return *awaited->result;
}

asio::awaitable<void> ControlThread::pause(std::chrono::milliseconds time) {
    asio::steady_timer timer(*io_, time);
    (void)co_await timer.async_wait(asio::experimental::as_tuple(asio::use_awaitable));
}

void ControlThread::release_waiting() {
    const LockOf lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
    while (waiting_ > 0) changed_.wait(mutex_);
}

void ControlThread::stop(const std::function<void()>& last) {
    gate_->close();
    asio::post(*io_, [this, &last] {
        last();
        io_->stop();
    });
    thread_.join();
}

void ControlThread::drop() {
    keep_.reset();
    io_.reset();
}

}  // namespace rove::control
