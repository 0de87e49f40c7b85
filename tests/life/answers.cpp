#include "answers.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <numeric>

namespace life {
namespace {

bool is_posted(Kind kind) {
    return kind == Kind::post || kind == Kind::typed_post || kind == Kind::batch;
}

}  // namespace

Answers::~Answers() {
    for (const Watched& each : all_) munmap(each.ledger, sizeof(Ledger));
}

void Answers::watch(const std::string& ledger, const std::string& group) {
    Ledger* mapped = map_ledger(ledger, false);
    const std::uint32_t from = mapped->header.used.load();
    if (from + 1000 > kEntriesMax) {  // it has sent all that it may
        munmap(mapped, sizeof(Ledger));
        return;
    }
    all_.push_back({mapped, from, group});
}

Answers::Counts Answers::count(const Watched& watched) {
    Counts counts{};
    const std::uint32_t used = std::min(watched.ledger->header.used.load(), kEntriesMax);
    for (std::uint32_t i = watched.from; i < used; ++i) {
        const Entry& entry = watched.ledger->entries[i];
        const State state = entry.state.load();  // the kind is written before it
        if (state == State::none) continue;
        if (state == (is_posted(entry.kind) ? State::posted : State::answered))
            ++counts[static_cast<std::size_t>(entry.kind)];
    }
    return counts;
}

std::map<std::string, Answers::Counts> Answers::groups() const {
    std::map<std::string, Counts> groups;
    for (const Watched& each : all_) {
        const Counts counts = count(each);
        Counts& sum = groups[each.group];
        std::ranges::transform(sum, counts, sum.begin(), std::plus());
    }
    return groups;
}

std::string Answers::missing() const {
    std::string missing;
    for (const auto& [group, counts] : groups())
        for (std::size_t kind = 0; kind < counts.size(); ++kind)
            if (static_cast<Kind>(kind) != Kind::roll && counts[kind] < kAnsweredMin)
                missing += fmt::format("{}{}: {} of {} {}", missing.empty() ? "" : ", ", group, counts[kind],
                                       kAnsweredMin, kKindNames[kind]);
    for (const Watched& each : all_) {
        const Counts counts = count(each);
        const auto sum = std::reduce(counts.begin(), counts.end());
        if (sum < kAnsweredByEachMin)
            missing += fmt::format("{}client {}: {} of {}", missing.empty() ? "" : ", ", each.ledger->header.client,
                                   sum, kAnsweredByEachMin);
    }
    return missing;
}

std::vector<std::string> Answers::lines() const {
    std::vector<std::string> lines;
    for (const auto& [group, counts] : groups()) {
        std::string& line = lines.emplace_back(group + ":");
        for (std::size_t kind = 0; kind < counts.size(); ++kind)
            if (counts[kind] != 0) line += fmt::format(" {} {}", counts[kind], kKindNames[kind]);
    }
    return lines;
}

}  // namespace life
