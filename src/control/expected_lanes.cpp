#include "control/expected_lanes.hpp"

#include <sodium.h>
#include <unistd.h>

#include <asio/experimental/as_tuple.hpp>
#include <asio/use_awaitable.hpp>
#include <utility>

#include "control/identity.hpp"

namespace rove::control {

Status ExpectedLanes::bring(Channel& channel, const wire::control::Ticket& ticket) {
    Place* found = nullptr;
    for (Place* each : places_)  // all of them, so that the time does not depend on the ticket
        if (sodium_memcmp(each->ticket_.bytes.data(), ticket.bytes.data(), sizeof ticket) == 0) found = each;
    if (found == nullptr || found->socket_ >= 0)
        return fail(ErrorCode::refused, "no lane is expected with that ticket");
    found->socket_ = channel.release();
    found->arrived_.cancel();
    return {};
}

ExpectedLanes::Place::Place(ExpectedLanes& all, asio::io_context& io)
    : all_(all), ticket_(random_id<wire::control::Ticket>()), arrived_(io) {
    all_.places_.push_back(this);
}

ExpectedLanes::Place::~Place() {
    std::erase(all_.places_, this);
    if (socket_ >= 0) ::close(socket_);
}

asio::awaitable<Result<int>> ExpectedLanes::Place::wait(std::chrono::milliseconds time) {
    arrived_.expires_after(time);
    if (socket_ < 0) (void)co_await arrived_.async_wait(asio::experimental::as_tuple(asio::use_awaitable));
    if (socket_ < 0) co_return fail(ErrorCode::timed_out, "it opened no stream");
    co_return std::exchange(socket_, -1);
}

}  // namespace rove::control
