// What the demo prints: steps as they are done, and one table at the end.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace archive_walk {

// One way of doing something: its runs' median, and what went over the client's link in one run.
struct Figure {
    double time_ms = 0;  // the median
    double time_ms_min = 0;
    double time_ms_max = 0;
    std::uint64_t bytes = 0;

    [[nodiscard]] static Figure of(std::vector<double> times_ms, std::uint64_t bytes);
    [[nodiscard]] nlohmann::json json() const;
};

// The same thing done in two ways: by a function that is sent to the data, and by fetching the data.
struct Comparison {
    std::string what;
    std::string over;  // the link between the client and the nodes
    Figure sent;
    Figure fetched;

    [[nodiscard]] double times_faster() const { return fetched.time_ms / sent.time_ms; }
    [[nodiscard]] double times_fewer_bytes() const {
        return static_cast<double>(fetched.bytes) / static_cast<double>(sent.bytes);
    }
    [[nodiscard]] nlohmann::json json() const;
};

// 1234567 as "1,234,567".
[[nodiscard]] std::string grouped(std::uint64_t number);
[[nodiscard]] std::string time_text(double milliseconds);

// Writes to stdout, or to stderr where stdout is for JSON. Colours and a line that shows what is under way are for
// terminals; NO_COLOR and TERM=dumb are respected.
class Report {
public:
    explicit Report(bool json);

    template <typename... Args>
    // NOLINTNEXTLINE(performance-unnecessary-value-param): as fmt takes it
    void say(fmt::format_string<Args...> text, Args&&... args) const {
        print(fmt::format(text, std::forward<Args>(args)...) + '\n');
    }
    // "  nodes      4 times `rove node` …       0.185 s": one step, by what it returns, and how long it took.
    template <typename Step>
    void step(std::string_view name, Step&& what) const {
        announce(name);
        const auto begun = std::chrono::steady_clock::now();
        const std::string done = what();
        const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begun;
        say("{}  {:<10} {:<66} {:6.2f} s", clear_line(), name, done, time.count());
    }
    void title(std::string_view text) const { say("\n{}", painted(text, kBold)); }
    void removed_line(std::string_view line) const { say("{}", painted(fmt::format("  - {}", line), kRed)); }
    void added_line(std::string_view line) const { say("{}", painted(fmt::format("  + {}", line), kGreen)); }
    void table(const std::vector<Comparison>& rows) const;
    // The end of what is under way, for an error's message.
    [[nodiscard]] std::string_view clear_line() const { return terminal_ ? "\r\x1b[K" : ""; }

private:
    static constexpr std::string_view kBold = "1";
    static constexpr std::string_view kRed = "31";
    static constexpr std::string_view kGreen = "32";
    void announce(std::string_view name) const;
    void print(const std::string& text) const;
    [[nodiscard]] std::string painted(std::string_view text, std::string_view colour) const;
    [[nodiscard]] std::string gain(double times, int width) const;

    std::FILE* out_;
    bool terminal_;
    bool colours_;
};

}  // namespace archive_walk
