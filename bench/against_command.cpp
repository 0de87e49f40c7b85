#include "bench/against_command.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <thread>

#include "bench/machine.hpp"
#include "bench/sides.hpp"
#include "rove/error.hpp"
#include "toolchain/process.hpp"

namespace rove::bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// How often it is checked whether the command has ended: seldom, because the check takes time on a core that the command uses.
constexpr milliseconds kLook{20};
// What the command gets to end what it has started elsewhere. Less than the second after which a signal ends this process at the latest.
constexpr milliseconds kGrace{500};

std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string last_line(const std::string& text) {
    std::istringstream lines(text);
    std::string last;
    for (std::string line; std::getline(lines, line);)
        if (!line.empty()) last = line;
    return last;
}

// One run of a command.
class Run {
public:
    Run(const std::string& command, std::size_t bytes, milliseconds time_max) : command_(command), time_max_(time_max) {
        const Cores cores = choose_cores();
        const Descriptor out = value_or_throw(open_for_output(out_)), err = value_or_throw(open_for_output(err_));
        process_ = value_or_throw(Process::start(
            {"sh", "-c", command}, {.out = out.number(),
                                    .err = err.number(),
                                    .environment = {fmt::format("ROVE_BENCH_BYTES={}", bytes),
                                                    fmt::format("ROVE_BENCH_CLIENT_CORE={}", cores.client),
                                                    fmt::format("ROVE_BENCH_NODE_CORE={}", cores.node)},
                                    .cores = cores_of(kAnyCore),
                                    .grace = kGrace}));
    }

    // What it has printed.
    std::string output() {
        const Clock::time_point late = Clock::now() + time_max_;
        while (!process_.ended()) {
            value_or_throw(toolchain::not_interrupted());
            if (Clock::now() > late)
                complain(ErrorCode::timed_out,
                         fmt::format("has not ended after {} s, which is all that it gets for one run",
                                     std::chrono::duration<double>(time_max_).count()));
            check_output();
            std::this_thread::sleep_for(kLook);
        }
        value_or_throw(toolchain::not_interrupted());
        check_output();
        if (const int status = *process_.ended(); status != 0)
            complain(ErrorCode::failed, fmt::format("has ended with status {}: {}", status, last_line(text_of(err_))));
        return text_of(out_);
    }

    [[noreturn]] void complain(ErrorCode code, const std::string& what) const {
        throw Error(code, fmt::format("the command `{}` (--against-command) {}", command_, what));
    }

private:
    void check_output() const {
        for (const fs::path& path : {out_, err_})
            if (fs::file_size(path) > kCommandOutputBytesMax)
                complain(ErrorCode::failed, fmt::format("has printed more than {} KiB", kCommandOutputBytesMax / 1024));
    }

    const std::string& command_;
    milliseconds time_max_;
    Scratch scratch_;
    fs::path out_ = scratch_.path() / "out", err_ = scratch_.path() / "err";
    Process process_;
};

// Nothing: it is no positive number.
std::optional<double> positive(std::string_view text) {
    while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value <= 0) return {};
    return value;
}

}  // namespace

double figure_of_command(const std::string& command, const std::string& key, std::size_t bytes, milliseconds time_max) {
    Run run(command, bytes, time_max);
    std::istringstream lines(run.output());
    std::optional<double> found;
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with(key + "=")) continue;
        if (found) run.complain(ErrorCode::failed, fmt::format("has printed {}= more than once", key));
        found = positive(std::string_view(line).substr(key.size() + 1));
        if (!found)
            run.complain(ErrorCode::failed, fmt::format("has printed '{}', whose value is no positive number", line));
    }
    if (!found)
        run.complain(ErrorCode::failed,
                     fmt::format("has printed no line {}=NUMBER; its last line is '{}'", key, last_line(lines.str())));
    return *found;
}

std::optional<double> command_figure(const Settings& settings, const std::string& key, std::size_t bytes) {
    if (settings.against_command.empty()) return {};
    return figure_of_command(settings.against_command, key, bytes);
}

}  // namespace rove::bench
