#include "node/control/socket_file.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <vector>

#include "base/fork.hpp"
#include "base/made_once.hpp"

namespace rove::control {
namespace {

struct Files {
    // Held while a file is made or removed: whoever ends the process knows of each that there is.
    std::mutex mutex;
    std::vector<std::string> paths;
};
// Never destroyed: a program's globals may hold nodes.
Files& all_files() {
    static constinit MadeOnce<Files> kept;
    return kept.get([] {
        auto* made = new Files;
        hold_across_forks(made->mutex);
        return made;
    });
}

// Of a path that fits (parse_address).
bool is_refused(const std::string& path) {
    const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe < 0) return false;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const bool refused =
        connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 && errno == ECONNREFUSED;
    close(probe);
    return refused;
}

}  // namespace

AtPath clear_path(const std::string& path) {
    struct stat facts{};
    if (lstat(path.c_str(), &facts) != 0) return AtPath::nothing;
    if (!S_ISSOCK(facts.st_mode)) return AtPath::no_socket;
    if (!is_refused(path)) return AtPath::listener;
    unlink(path.c_str());
    return AtPath::nothing;
}

void SocketFile::make(const std::string& path, const std::function<bool()>& bind) {
    Files& all = all_files();
    const std::lock_guard lock(all.mutex);
    all.paths.push_back(path);  // first, because it may throw
    if (bind())
        path_ = path;
    else
        all.paths.pop_back();
}

void SocketFile::remove() {
    if (path_.empty()) return;
    Files& all = all_files();
    const std::lock_guard lock(all.mutex);
    unlink(path_.c_str());
    all.paths.erase(std::find(all.paths.begin(), all.paths.end(), path_));
    path_.clear();
}

void exit_without_socket_files(int status) {
    Files& all = all_files();
    const std::lock_guard lock(all.mutex);  // no other is made any more
    for (const std::string& path : all.paths) unlink(path.c_str());
    _exit(status);
}

}  // namespace rove::control
