#include "control/socket_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/fork.hpp"
#include "base/made_once.hpp"

namespace rove::control {
namespace {

constexpr auto kPathLockFor = std::chrono::seconds(1);
constexpr auto kPathLockAgain = std::chrono::milliseconds(1);

struct Files {
    // Held while a file is made or removed, so that the thread that ends the process sees every file that exists.
    Mutex mutex;
    struct Made {
        const SocketFile* of;  // a path may be that of several: somebody may have removed the file of the first
        std::string path;
        dev_t device;
        ino_t inode;
        // Removes the file only if it is this process's: another process may have considered this one dead, and made its own.
        void unlink() const {
            struct stat facts{};
            if (lstat(path.c_str(), &facts) == 0 && facts.st_dev == device && facts.st_ino == inode)
                ::unlink(path.c_str());
        }
    };
    std::vector<Made> made GUARDED_BY(mutex);
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

// Whether no process listens there. The path is short enough: parse_address() has checked that.
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

PathLock::PathLock(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    directory_ = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const TimePoint until = Clock::now() + kPathLockFor;
    while (directory_ >= 0 && flock(directory_, LOCK_EX | LOCK_NB) != 0 && Clock::now() < until)
        std::this_thread::sleep_for(kPathLockAgain);
}

PathLock::~PathLock() {
    if (directory_ >= 0) close(directory_);
}

void SocketFile::make(const std::string& path, const std::function<bool()>& bind) {
    Files& all = all_files();
    const MutexLock lock(all.mutex);
    all.made.push_back({.of = this, .path = path});  // first, because it may throw
    struct stat facts{};
    if (bind() && lstat(path.c_str(), &facts) == 0) {
        all.made.back().device = facts.st_dev;
        all.made.back().inode = facts.st_ino;
        is_made_ = true;
    } else {
        all.made.pop_back();
    }
}

void SocketFile::remove() {
    if (!is_made_) return;
    Files& all = all_files();
    const MutexLock lock(all.mutex);
    const auto mine =
        std::find_if(all.made.begin(), all.made.end(), [this](const auto& each) { return each.of == this; });
    mine->unlink();
    all.made.erase(mine);
    is_made_ = false;
}

void exit_without_socket_files(int status) {
    Files& all = all_files();
    const MutexLock lock(all.mutex);  // held to the end, so that no other file is made
    for (const Files::Made& each : all.made) each.unlink();
    _exit(status);
}

}  // namespace rove::control
