// The file that a node's Unix socket has in the file system.
//
// Threads: any; one at a time for each object.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace rove::control {

// What there is at a path that a node wants to listen on. A socket that nobody answers on any more, because its process was killed, is
// removed. Never waits: a listener whose queue of connections is full is one, too.
enum class AtPath : std::uint8_t { nothing, listener, no_socket };
[[nodiscard]] AtPath clear_path(const std::string& path);

class SocketFile {
public:
    SocketFile() = default;
    SocketFile(const SocketFile&) = delete;
    SocketFile& operator=(const SocketFile&) = delete;
    ~SocketFile() { remove(); }

    // Calls `bind`, which says whether it has made the file of that path.
    void make(const std::string& path, const std::function<bool()>& bind);
    void remove();

private:
    std::string path_;  // empty: there is none
};

// Ends the process at once, without destructors, and leaves none of its nodes' socket files behind.
[[noreturn]] void exit_without_socket_files(int status);

}  // namespace rove::control
