// What holds for each Unix socket that another process may send to.
//
// Threads: any.
#pragma once

#include <sys/socket.h>

namespace rove {

#ifndef SO_PASSRIGHTS  // the kernel's headers have it since Linux 6.16
inline constexpr int SO_PASSRIGHTS = 83;
#endif

// Refuses descriptors that are sent to the socket (SCM_RIGHTS). Whoever reads the bytes that came with one closes it, and a connection is closed for as
// long as its sender has asked for (SO_LINGER). What a listening socket accepts inherits this. Kernels before Linux 6.16, and sockets of other
// kinds, cannot.
inline void refuse_descriptors(int socket) {
    const int no = 0;
    (void)setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof no);
}

}  // namespace rove
