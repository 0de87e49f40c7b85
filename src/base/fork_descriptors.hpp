// Sockets that the child of a fork must not keep, because with its copies open the peers would not notice this process's end. A child
// that does not exec closes them before fork() returns in it.
//
// Only for descriptors of objects that the child never uses again (lifetime.cpp).
//
// Threads: any. If one thread forks while another opens a socket, the child may keep a copy of that socket.
#pragma once

#include <cstddef>

namespace rove {

// One bit per descriptor number, 8 KiB. A node has at most two sockets per peer and 16,384 peers. Children keep sockets with higher numbers.
inline constexpr std::size_t kForkDescriptorsMax = 65536;

// The child of a fork closes the descriptor from now on.
void close_in_forks(int descriptor) noexcept;
// To be called before the descriptor is closed or given away.
void keep_in_forks(int descriptor) noexcept;

}  // namespace rove
