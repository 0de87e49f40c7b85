#include "control/both_ends.hpp"

#include <cstring>

#include "engine/engine.hpp"

namespace rove::control {

PendingLink::~PendingLink() {
    drop();
    if (engine_ != ChosenEngine{}) engines_.release(engine_);
}

bool PendingLink::has_streams() const {
    return engine_.fabric->has_streams();
}

Status PendingLink::open() {
    Result<std::unique_ptr<fabric::Link>> opened = engine_.fabric->open_link();
    if (opened)
        link_ = std::move(*opened);
    else if (opened.error().code() != ErrorCode::unsupported || !has_streams())
        return tl::unexpected<Error>(opened.error());
    return {};
}

Status PendingLink::connect(Bytes offer) {
    return engine_.fabric->connect(*link_, offer);
}

Status PendingLink::open_stream(int socket, const fabric::StreamKeys& keys) {
    ROVE_TRY(link_, engine_.fabric->open_stream(socket, keys));
    return {};
}

void PendingLink::drop() {
    if (link_) engine_.fabric->drop(std::move(link_));
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

fabric::StreamKeys stream_keys(const wire::control::LaneSecret& secret, bool node) {
    std::uint64_t to_opener = 0;
    std::uint64_t to_node = 0;
    std::memcpy(&to_opener, secret.bytes.data(), sizeof to_opener);
    std::memcpy(&to_node, secret.bytes.data() + sizeof to_opener, sizeof to_node);
    return node ? fabric::StreamKeys{.incoming = to_node, .outgoing = to_opener}
                : fabric::StreamKeys{.incoming = to_opener, .outgoing = to_node};
}

}  // namespace rove::control
