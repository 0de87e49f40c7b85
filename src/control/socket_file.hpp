// The file that a node's Unix socket has in the file system.
//
// Threads: any; one at a time for each object. All files of the process are in one list with its own lock, which is held across forks.
//
// Invariants: a SocketFile that has made its file is in that list once. A file is removed only if it still is the one that this process made.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace rove::control {

// What exists at a path on which a node wants to listen. A socket on which no process answers any more, because its process was killed, is
// removed. Never waits: a listener whose queue of connections is full is a listener, too.
enum class AtPath : std::uint8_t { nothing, listener, no_socket };
[[nodiscard]] AtPath clear_path(const std::string& path);

// Held from the check of the path until a process listens there, so that processes that start at the same time do this one after the other. It
// is a lock of the directory, which leaves no file. After a second this continues without it, because any process that may read the directory
// can take it.
class PathLock {
public:
    explicit PathLock(const std::string& path);
    PathLock(const PathLock&) = delete;
    PathLock& operator=(const PathLock&) = delete;
    ~PathLock();

private:
    int directory_;
};

class SocketFile {
public:
    SocketFile() = default;
    SocketFile(const SocketFile&) = delete;
    SocketFile& operator=(const SocketFile&) = delete;
    ~SocketFile() { remove(); }

    // Precondition: it has made none. Calls `bind`, which says whether it has made the file of that path.
    void make(const std::string& path, const std::function<bool()>& bind);
    void remove();  // not if another process has made its own there since

private:
    bool is_made_ = false;
};

// Ends the process at once, without destructors, and leaves none of its nodes' socket files behind.
[[noreturn]] void exit_without_socket_files(int status);

}  // namespace rove::control
