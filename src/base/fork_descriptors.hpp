// Sockets that a fork's child must not keep: its copies would hide this process's end from whoever is at the other end. The child
// of a fork that does not exec closes them before fork() returns in it.
//
// What the child must not touch again: only for descriptors of objects that it leaves alone (lifetime.cpp).
//
// Threads: any. One that forks while another is opening a socket may give its child a copy that it keeps.
#pragma once

#include <cstddef>

namespace rove {

// By number: one bit each, 8 KiB. A node has two sockets a peer and 1024 peers. Sockets with higher numbers are kept by children.
inline constexpr std::size_t kForkDescriptorsMax = 65536;

// From here on the child of a fork closes it.
void close_in_forks(int descriptor) noexcept;
// It is about to be closed, or given to somebody else.
void keep_in_forks(int descriptor) noexcept;

}  // namespace rove
