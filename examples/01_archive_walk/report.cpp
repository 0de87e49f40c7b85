#include "report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace archive_walk {

Figure Figure::of(std::vector<double> times_ms, std::uint64_t bytes) {
    std::sort(times_ms.begin(), times_ms.end());
    return {times_ms.at(times_ms.size() / 2), times_ms.front(), times_ms.back(), bytes};
}

nlohmann::json Figure::json() const {
    return {{"time_ms", time_ms}, {"time_ms_min", time_ms_min}, {"time_ms_max", time_ms_max}, {"bytes", bytes}};
}

nlohmann::json Comparison::json() const {
    return {{"what", what},
            {"over", over},
            {"sent", sent.json()},
            {"fetched", fetched.json()},
            {"times_faster", times_faster()},
            {"times_fewer_bytes", times_fewer_bytes()}};
}

std::string grouped(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
    return text;
}

std::string time_text(double milliseconds) {
    return fmt::format("{:.{}f} ms", milliseconds, milliseconds < 1 ? 3 : milliseconds < 10 ? 2 : 1);
}

Report::Report(bool json) : out_(json ? stderr : stdout) {
    const char* kind = std::getenv("TERM");
    terminal_ = isatty(fileno(out_)) != 0 && kind != nullptr && std::string_view(kind) != "dumb";
    const char* no_colours = std::getenv("NO_COLOR");
    colours_ = terminal_ && (no_colours == nullptr || *no_colours == '\0');
}

void Report::print(const std::string& text) const {
    std::fputs(text.c_str(), out_);
    std::fflush(out_);
}

void Report::announce(std::string_view name) const {
    if (terminal_) print(fmt::format("  {:<10} …", name));
}

std::string Report::painted(std::string_view text, std::string_view colour) const {
    return colours_ ? fmt::format("\x1b[{}m{}\x1b[0m", colour, text) : std::string(text);
}

std::string Report::gain(double times, int width) const {
    const std::string number =
        times >= 100 ? grouped(static_cast<std::uint64_t>(times)) : fmt::format("{:.{}f}", times, times < 0.1 ? 3 : 1);
    return painted(fmt::format("{:>{}}", number + " x", width), times >= 1 ? kGreen : kRed);
}

void Report::table(const std::vector<Comparison>& rows) const {
    say("  {:<26}{:<15}{:>22}{:>24}{:>19}", "", "", "function sent", "data fetched", "gained");
    say("  {:<26}{:<15}{:>12}{:>10}{:>12}{:>12}{:>9}{:>10}", "", "over", "time", "bytes", "time", "bytes", "time",
        "bytes");
    for (const Comparison& row : rows)
        say("  {:<26}{:<15}{:>12}{:>10}{:>12}{:>12}{}{}", row.what, row.over, time_text(row.sent.time_ms),
            grouped(row.sent.bytes), time_text(row.fetched.time_ms), grouped(row.fetched.bytes),
            gain(row.times_faster(), 9), gain(row.times_fewer_bytes(), 10));
}

}  // namespace archive_walk
