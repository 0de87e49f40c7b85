// Cuts connections of other processes, as a cable that is pulled would: both ends see it closed, neither has asked for it.
#pragma once

#include <sys/types.h>

#include <string>

namespace life {

// Shuts down the connections that `process` has made to a node's address ("unix:PATH" or "127.0.0.1:PORT"), by copies of its
// descriptors (pidfd_getfd: the same user's right to trace, or root). Gives how many there were.
unsigned cut_connections(pid_t process, const std::string& address);

}  // namespace life
