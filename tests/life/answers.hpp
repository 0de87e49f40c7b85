// The least that has to be answered, so that a run in which hardly anything is answered does not pass for a good one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ledger.hpp"

namespace life {

// Of each kind of work. At the usual rate the rarest kind is sent three times a second by each thread; a slow machine takes as long as it
// takes, because `life` waits for these numbers.
inline constexpr std::uint32_t kAnsweredMin = 3;
// By each client, of all kinds together.
inline constexpr std::uint32_t kAnsweredByEachMin = 20;

// Counts what is answered in some clients' ledgers from a moment on. What nobody answers counts where it was posted: whether it ran is for
// the verdict.
class Answers {
public:
    Answers() = default;
    Answers(const Answers&) = delete;
    ~Answers();
    // From now on. Those who share a group's name are counted together, by kinds.
    void watch(const std::string& ledger, const std::string& group);
    // What is too little, in words; "": nothing.
    [[nodiscard]] std::string missing() const;
    // Each group's counts, a line each.
    [[nodiscard]] std::vector<std::string> lines() const;

private:
    using Counts = std::array<std::uint32_t, static_cast<std::size_t>(Kind::count)>;
    struct Watched {
        Ledger* ledger;  // a mapping of its own: the client may end
        std::uint32_t from;
        std::string group;
    };
    [[nodiscard]] static Counts count(const Watched& watched);
    [[nodiscard]] std::map<std::string, Counts> groups() const;

    std::vector<Watched> all_;
};

}  // namespace life
