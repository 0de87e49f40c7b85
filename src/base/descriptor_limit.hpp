// The limit of this process's open descriptors: a node takes one or two for each peer, and the soft limit of most systems, 1,024, is there for
// programs that call select(), which cannot take higher numbers.
//
// Threads: allow_all_descriptors() before others are started; restore_descriptor_limit() by any, also in the child of a fork.
#pragma once

namespace rove {

// Raises the soft limit to the hard one. Forks of this process have the new limit, and so has a program that they execute, if they do not restore it.
void allow_all_descriptors() noexcept;
// For a process that is about to execute a program: the soft limit is what it was when this program began. Makes one system call, or none.
void restore_descriptor_limit() noexcept;

}  // namespace rove
