#include "verdict.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <span>

#include "processes.hpp"
#include "rove/rove.h"
#include "work.h"

namespace life {
namespace {

constexpr unsigned kSteps = LIFE_STOPS_MAX + 1;

using Runs = std::span<const life_run>;  // of one number, by step and time

std::vector<life_run> read_runs(const std::string& path) {
    const std::string bytes = read_file(path);
    std::vector<life_run> runs(bytes.size() / sizeof(life_run));
    if (!runs.empty()) std::memcpy(runs.data(), bytes.data(), runs.size() * sizeof(life_run));
    std::ranges::sort(runs, [](const life_run& a, const life_run& b) {
        return std::tie(a.number, a.step, a.time_ns) < std::tie(b.number, b.step, b.time_ns);
    });
    return runs;
}

std::string describe(const Entry& entry, Runs runs, const ClientRecord& client) {
    const auto name = [](const char* const* names, auto value) { return names[static_cast<unsigned>(value)]; };
    std::string text = fmt::format("client {} (build {}{}): {} to node {} at {} ms, {}", client.number, client.build,
                                   client.killed ? ", killed" : "", name(kKindNames, entry.kind), entry.target,
                                   entry.sent_ms, name(kStateNames, entry.state.load()));
    if (entry.code != 0) text += fmt::format(" {}", kCodeNames[std::min<unsigned>(entry.code, 9)]);
    if (entry.state == State::answered || entry.state == State::wrong)
        text += fmt::format(" by step {} of {} (error {})", entry.answer_step, entry.last_step, entry.answer_error);
    if (entry.ends.load() != 0) text += fmt::format(", {} time(s), after {} ms", entry.ends.load(), entry.answered_ms);
    text += "; ran:";
    for (const life_run& run : runs)
        text +=
            fmt::format(" step {} on node {} (process {}.{}, version {}, at {}.{:06} s)", run.step, run.node, run.pid,
                        run.thread, run.version, run.time_ns / 1'000'000'000, run.time_ns / 1'000 % 1'000'000);
    if (runs.empty()) text += " never";
    return text;
}

// A call that was sent and failed with such a code.
bool may_have_run(unsigned code) {
    return code == ROVE_DISCONNECTED || code == ROVE_TIMED_OUT || code == ROVE_CANCELLED;
}

// What is wrong with one number; null: nothing.
const char* fault_of(const Entry& entry, Runs runs, const ClientRecord& client) {
    std::array<unsigned, kSteps> times{};
    for (const life_run& run : runs) {
        if (run.step >= kSteps) return "a step that no work has";
        ++times[run.step];
    }
    if (std::ranges::any_of(times, [](unsigned n) { return n > 1; })) return "ran more than once";
    for (unsigned step = 1; step < kSteps; ++step)
        if (times[step] > times[step - 1]) return "was sent on by a step that did not run";
    if (entry.ends > 1) return "was told to have ended more than once";
    const unsigned last = entry.last_step;
    switch (entry.state.load()) {
        case State::none: return runs.empty() ? nullptr : "ran without having been sent";
        case State::sending:
        case State::sent:
            // With the client's end every call in flight ends.
            return client.killed ? nullptr : "no answer and no error";
        case State::unanswered: return "unanswered 20 s after the trouble";
        case State::wrong: return "answered with a wrong value";
        case State::answered:
            if (times[entry.answer_step] != 1) return "answered, and did not run";
            if (entry.answer_step < last && times[entry.answer_step + 1] != 0 && !may_have_run(entry.answer_error))
                return "ran on a node that it is said not to have been sent on to";
            return nullptr;
        case State::failed:
            if (entry.on_purpose && entry.code == ROVE_FAILED)
                return times[0] == 1 ? nullptr : "failed on purpose, and did not run";
            if (!may_have_run(entry.code) && times[last] != 0)
                return "failed with a code that says it did not run, and its last step ran";
            return nullptr;
        case State::not_sent: return runs.empty() ? nullptr : "was not sent, and ran";  // whatever the code
        case State::posted: return client.quiet && times[0] == 0 ? "posted in quiet times, and did not run" : nullptr;
        default: return nullptr;
    }
}

void count(Verdict& verdict, const Entry& entry, Runs runs) {
    ++verdict.pieces;
    const State state = entry.state.load();
    ++verdict.states[static_cast<unsigned>(entry.kind)][static_cast<unsigned>(state)];
    if (state == State::failed || state == State::not_sent) ++verdict.codes[std::min<unsigned>(entry.code, 9)];
    if (entry.ends != 0) verdict.slowest_ms = std::max<std::uint64_t>(verdict.slowest_ms, entry.answered_ms);
    if (state == State::posted) {
        ++verdict.posts;
        verdict.posts_run += runs.empty() ? 0 : 1;
    }
}

}  // namespace

Verdict judge(const std::string& runs_path, const std::vector<ClientRecord>& clients) {
    const std::vector<life_run> runs = read_runs(runs_path);
    Verdict verdict;
    verdict.runs = runs.size();
    auto at = runs.begin();
    for (const ClientRecord& client : clients) {  // in the order of their numbers
        Ledger* ledger = map_ledger(client.ledger, false);
        const std::uint32_t used = std::min(ledger->header.used.load(), kEntriesMax);
        for (std::uint32_t i = 0; i < used; ++i) {
            const std::uint64_t number = std::uint64_t{client.number} << 32U | i;
            for (; at != runs.end() && at->number < number; ++at)
                verdict.faults.push_back({"ran without having been sent", fmt::format("number {:#x}", at->number)});
            const auto end = std::find_if(at, runs.end(), [&](const life_run& run) { return run.number != number; });
            const Runs of_it(at, end);
            at = end;
            const Entry& entry = ledger->entries[i];
            count(verdict, entry, of_it);
            if (const char* fault = fault_of(entry, of_it, client))
                verdict.faults.push_back(
                    {fault, fmt::format("number {:#x}: {}", number, describe(entry, of_it, client))});
        }
        munmap(ledger, sizeof(Ledger));
    }
    for (; at != runs.end(); ++at)
        verdict.faults.push_back({"ran without having been sent", fmt::format("number {:#x}", at->number)});
    return verdict;
}

}  // namespace life
