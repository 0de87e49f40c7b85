// The other process of processes_test: meets over its standard input and output, then answers each call by a reply with
// the same bytes until its input ends or it is killed.  test_fabric_peer direct|stream_unix|stream_tcp|ucx_shm|ucx_tcp
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <string_view>

#include "open_fabric.hpp"
#include "wire/control.hpp"

namespace {

using namespace rove;
using namespace rove::fabric;

bool meet(Link& link) {
    std::uint32_t size = static_cast<std::uint32_t>(link.offer().size());
    if (write(1, &size, sizeof size) != sizeof size || write(1, link.offer().data(), size) != size) return false;
    if (read(0, &size, sizeof size) != sizeof size || size > wire::control::kOfferBytesMax) return false;
    ByteBuffer offer(size);
    for (std::size_t at = 0; at < size;) {
        const ssize_t got = read(0, offer.data() + at, size - at);
        if (got <= 0) return false;
        at += static_cast<std::size_t>(got);
    }
    return link.connect(offer).has_value();
}

bool input_ended() {
    pollfd input{0, POLLIN, 0};
    return poll(&input, 1, 0) != 0;
}

void answer(Link& link, const wire::Frame& call) {
    std::byte* reply = link.reserve(Traffic::prompt, wire::kHeaderBytes + call.payload.size());
    if (reply == nullptr) return;  // the test asks again for nothing: it never lets replies pile up
    std::memcpy(reply + wire::kHeaderBytes, call.payload.data(), call.payload.size());
    wire::FrameHeader header = call.header;
    header.kind = wire::Kind::reply;
    link.publish(Traffic::prompt, header);
}

}  // namespace

int main(int, char** arguments) {
    auto fabric = open_fabric(arguments[1]);
    if (!fabric) return 2;
    const bool stream = std::string_view(arguments[1]).starts_with("stream");
    auto link = stream ? (*fabric)->open_stream(kStreamDescriptor, kOtherTestKeys) : (*fabric)->open_link();
    if (!link || (!stream && !meet(**link))) return 3;
    for (unsigned turn = 1;; ++turn) {
        (*fabric)->progress();
        wire::Frame call;
        while ((*link)->next(Traffic::calls, call)) {
            answer(**link, call);
            (*link)->release(Traffic::calls);
        }
        if ((*link)->broken() != nullptr) return 0;
        if (turn % 1024 == 0 && input_ended()) return 0;
    }
}
