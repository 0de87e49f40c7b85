#include "cut.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace life {
namespace {

// The address of a socket's other end as nodes write it; "" where there is none.
std::string other_end(int socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
    if (address.ss_family == AF_UNIX && size > sizeof(sa_family_t))
        return std::string("unix:") + reinterpret_cast<const sockaddr_un*>(&address)->sun_path;
    if (address.ss_family != AF_INET) return {};
    const auto* in = reinterpret_cast<const sockaddr_in*>(&address);
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
    return std::string(text) + ":" + std::to_string(ntohs(in->sin_port));
}

}  // namespace

unsigned cut_connections(pid_t process, const std::string& address) {
    const int handle = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    if (handle < 0) return 0;
    unsigned cut = 0;
    std::error_code ignored;
    for (const auto& each : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd", ignored)) {
        const std::string what = std::filesystem::read_symlink(each.path(), ignored).string();
        if (!what.starts_with("socket:")) continue;
        const int number = std::atoi(each.path().filename().c_str());
        const int copy = static_cast<int>(syscall(SYS_pidfd_getfd, handle, number, 0));
        if (copy < 0) continue;
        if (other_end(copy) == address && shutdown(copy, SHUT_RDWR) == 0) ++cut;
        close(copy);
    }
    close(handle);
    return cut;
}

}  // namespace life
