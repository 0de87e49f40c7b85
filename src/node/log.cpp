#include "node/log.hpp"

#include <poll.h>
#include <spdlog/sinks/ansicolor_sink-inl.h>  // spdlog's library has it for its own locks only
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "base/made_once.hpp"

namespace rove {

namespace {

// What spdlog's sinks for terminals lock while they write: one that a fork's child finds free.
struct HeldAcrossForks {
    using mutex_t = std::mutex;
    static mutex_t& mutex() {
        static constinit MadeOnce<std::mutex> kept;
        return kept.get([] {
            auto* made = new std::mutex;
            hold_across_forks(*made);
            return made;
        });
    }
};

// A line that stderr does not take at once is left out, and counted: a pipe that nobody reads must not hold up a node.
class Stderr : public spdlog::sinks::ansicolor_stderr_sink<HeldAcrossForks> {
public:
    Stderr() { (void)fstat(STDERR_FILENO, &at_first_); }
    void log(const spdlog::details::log_msg& line) override {
        if (is_taken()) return;
        pollfd error{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
        if (poll(&error, 1, 0) != 1 || (error.revents & POLLOUT) == 0 || (error.revents & (POLLERR | POLLNVAL)) != 0) {
            left_out_.fetch_add(1, std::memory_order_relaxed);
            return;
        }
        if (const unsigned count = left_out_.exchange(0, std::memory_order_relaxed); count > 0) {
            const std::string text = fmt::format("{} lines are left out here: nobody was reading", count);
            ansicolor_stderr_sink::log({line.time, {}, line.logger_name, spdlog::level::warn, text});
        }
        ansicolor_stderr_sink::log(line);
    }

private:
    // A function has closed stderr, and a socket or a memory file of this node's has its number by now.
    [[nodiscard]] bool is_taken() const {
        struct stat now{};
        if (fstat(STDERR_FILENO, &now) != 0) return true;
        if (now.st_dev == at_first_.st_dev && now.st_ino == at_first_.st_ino) return false;
        return S_ISSOCK(now.st_mode) || (S_ISREG(now.st_mode) && now.st_nlink == 0) || (now.st_mode & S_IFMT) == 0;
    }
    struct stat at_first_{};
    std::atomic<unsigned> left_out_{0};
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
