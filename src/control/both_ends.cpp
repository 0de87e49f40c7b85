#include "control/both_ends.hpp"

#include <cstring>

namespace rove::control {

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
