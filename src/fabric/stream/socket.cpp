#include "fabric/stream/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/fork_descriptors.hpp"

namespace rove::fabric {

Result<StreamSocket> StreamSocket::open(Descriptor socket, const StreamKeys& keys) {
    int type = 0;
    socklen_t size = sizeof type;
    if (getsockopt(socket.number(), SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM)
        return fail(ErrorCode::invalid, "descriptor {} is no stream socket", socket.number());
    const int on = 1;
    (void)setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // a Unix socket has no such option
    close_in_forks(socket.number());
    return StreamSocket(std::move(socket), keys);
}

StreamSocket::~StreamSocket() {
    if (!socket_.is_open()) return;               // moved from
    (void)shutdown(socket_.number(), SHUT_RDWR);  // the peer sees the end at once, even if a fork's child has a copy
    keep_in_forks(socket_.number());
}

}  // namespace rove::fabric
