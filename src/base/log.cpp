#include "base/log.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/details/os.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/sink.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <mutex>
#include <utility>

#include "base/made_once.hpp"

namespace rove {

namespace {

// Lines are written to the descriptor, and not to C's stream: a function that runs here may hold the stream's lock for as long as it likes.
// A line that stderr does not take at once is dropped and counted: a pipe or a terminal that no process reads must not delay a node. A pipe
// takes PIPE_BUF bytes whole or not at all, so a line is no longer than that, and one thread writes at a time.
class Stderr : public spdlog::sinks::sink {
public:
    Stderr() {
        (void)fstat(STDERR_FILENO, &at_first_);
        open_own(at_first_);
        in_color_ = isatty(STDERR_FILENO) != 0 && spdlog::details::os::is_color_terminal();
        hold_across_forks(mutex_);
    }
    void log(const spdlog::details::log_msg& line) override {
        const MutexLock lock(mutex_);
        struct stat now{};
        if (fstat(STDERR_FILENO, &now) != 0 || is_taken(now)) return;
        if (!same(now, own_is_) || (own_ >= 0 && !has_own())) open_own(now);
        std::string text;
        if (left_out_ > 0) {
            const std::string left_out = fmt::format("{} lines are left out here: nobody was reading", left_out_);
            text = formatted({line.time, {}, line.logger_name, spdlog::level::warn, left_out});
        }
        left_out_ = takes_one() && write(text + formatted(line)) ? 0 : left_out_ + 1;
    }
    void flush() override {}
    void set_pattern(const std::string& pattern) override {
        set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern));
    }
    void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
        const MutexLock lock(mutex_);
        formatter_ = std::move(formatter);
    }

private:
    [[nodiscard]] static bool takes_one() {
        pollfd error{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
        return poll(&error, 1, 0) == 1 && (error.revents & POLLOUT) != 0 && (error.revents & (POLLERR | POLLNVAL)) == 0;
    }
    [[nodiscard]] std::string formatted(const spdlog::details::log_msg& line) REQUIRES(mutex_) {
        spdlog::memory_buf_t text;
        formatter_->format(line, text);
        const std::string_view whole(text.data(), text.size());
        if (!in_color_ || line.color_range_end <= line.color_range_start) return std::string(whole);
        return fmt::format("{}{}{}\033[m{}", whole.substr(0, line.color_range_start), color_of(line.level),
                           whole.substr(line.color_range_start, line.color_range_end - line.color_range_start),
                           whole.substr(line.color_range_end));
    }
    // False: no part of it was written.
    bool write(std::string text) const REQUIRES(mutex_) {
        if (text.size() > PIPE_BUF) {
            const std::string tail = fmt::format(" [cut: {} bytes]\n", text.size());
            text = text.substr(0, PIPE_BUF - tail.size()) + tail;
        }
        std::string_view rest = text;
        while (!rest.empty()) {
            const ssize_t taken = S_ISSOCK(own_is_.st_mode)
                                      ? send(STDERR_FILENO, rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                                      : ::write(own_ >= 0 ? own_ : STDERR_FILENO, rest.data(), rest.size());
            if (taken < 0 && errno == EINTR) continue;
            if (taken <= 0) break;  // full, or the terminal was closed
            rest.remove_prefix(static_cast<std::size_t>(taken));
        }
        return rest.size() < text.size();
    }
    static std::string_view color_of(spdlog::level::level_enum level) {
        if (level >= spdlog::level::err) return "\033[31m\033[1m";   // red
        if (level == spdlog::level::warn) return "\033[33m\033[1m";  // yellow
        return level == spdlog::level::info ? "\033[32m" : "\033[36m";
    }
    [[nodiscard]] static bool same(const struct stat& a, const struct stat& b) {
        return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    }
    // Whether a function has closed stderr, and a socket or a memory file of this node has its number now.
    [[nodiscard]] bool is_taken(const struct stat& now) const {
        if (same(now, at_first_)) return false;
        return S_ISSOCK(now.st_mode) || (S_ISREG(now.st_mode) && now.st_nlink == 0) || (now.st_mode & S_IFMT) == 0;
    }
    // A function may have closed it, and its number may belong to another file now.
    [[nodiscard]] bool has_own() const REQUIRES(mutex_) {
        struct stat mine{};
        return own_ >= 0 && fstat(own_, &mine) == 0 && same(mine, own_is_);
    }
    // Whether a write blocks is a property of the open file description, which other processes share and may need to block: so this opens
    // another one. A file needs none, because its writes never block, and a socket takes a flag for each write. If none could be opened,
    // poll alone decides what is written.
    void open_own(const struct stat& now) REQUIRES(mutex_) {
        if (has_own()) close(own_);
        own_is_ = now;
        own_ = S_ISFIFO(now.st_mode) || S_ISCHR(now.st_mode)
                   ? open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
                   : -1;
    }
    struct stat at_first_{};
    bool in_color_ = false;
    Mutex mutex_;
    int own_ GUARDED_BY(mutex_) = -1;           // another descriptor of the same place, or -1
    struct stat own_is_ GUARDED_BY(mutex_) {};  // what that place was when it was opened
    unsigned left_out_ GUARDED_BY(mutex_) = 0;
    std::unique_ptr<spdlog::formatter> formatter_ GUARDED_BY(mutex_) = std::make_unique<spdlog::pattern_formatter>();
};

}  // namespace

spdlog::logger& log() {
    static constinit MadeOnce<spdlog::logger> logger;
    return logger.get([] {
        auto* made = new spdlog::logger("rove", std::make_shared<Stderr>());
        made->set_level(spdlog::level::warn);
        made->set_pattern("%H:%M:%S.%e %^%l%$ %v");
        return made;
    });
}

}  // namespace rove
