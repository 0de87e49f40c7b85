// Descriptors that are sent over a Unix socket (SCM_RIGHTS).
#pragma once

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/unix_socket.hpp"

namespace rove::test {

// From Linux 6.16 on.
inline bool kernel_refuses_descriptors(int socket) {
    int passes = 0;
    socklen_t size = sizeof passes;
    return getsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &passes, &size) == 0;
}
// Sends a byte, with that descriptor if it is one: errno, or 0.
inline int error_of_sending(int socket, int descriptor) {
    char byte = 1;
    iovec bytes{.iov_base = &byte, .iov_len = 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptor)> control{};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof descriptor);
        std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1 ? 0 : errno;
}

}  // namespace rove::test
