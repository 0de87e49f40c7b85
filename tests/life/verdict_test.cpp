// The verdict on one piece of work, over a ledger and a record of runs that are written here.
#include "verdict.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

#include "../node/process.hpp"
#include "rove/rove.h"
#include "work.h"

namespace life {
namespace {

struct Told {
    State state;
    unsigned code = 0;
    unsigned last_step = 0;
};

// What is wrong with a call of which the client was told so, and whose steps ran so often; "": nothing.
std::string fault_of(const Told& told, const std::vector<unsigned>& runs_by_step) {
    const std::string ledger_path = (rove::test::scratch() / "ledger").string();
    const std::string runs_path = (rove::test::scratch() / "runs").string();
    Ledger* ledger = map_ledger(ledger_path, true);
    Entry& entry = ledger->entries[0];
    entry.state = told.state;
    entry.code = static_cast<std::uint8_t>(told.code);
    entry.last_step = static_cast<std::uint8_t>(told.last_step);
    entry.ends = told.state == State::failed ? 1 : 0;
    ledger->header.used = 1;
    munmap(ledger, sizeof(Ledger));
    std::ofstream runs(runs_path, std::ios::binary);
    for (unsigned step = 0; step < runs_by_step.size(); ++step)
        for (unsigned i = 0; i < runs_by_step[step]; ++i) {
            const life_run run{.number = std::uint64_t{1} << 32U,
                               .time_ns = i,
                               .pid = 0,
                               .thread = 0,
                               .version = 1,
                               .step = static_cast<std::uint16_t>(step),
                               .node = 0};
            runs.write(reinterpret_cast<const char*>(&run), sizeof run);
        }
    runs.close();
    const Verdict verdict = judge(runs_path, {{.number = 1, .ledger = ledger_path}});
    unlink(ledger_path.c_str());
    unlink(runs_path.c_str());
    return verdict.faults.empty() ? "" : verdict.faults[0].what;
}

TEST(LifeVerdict, WhatWasNotSentDidNotRun) {
    for (const unsigned code : {ROVE_DISCONNECTED, ROVE_TIMED_OUT, ROVE_CANCELLED, ROVE_OVERLOADED}) {
        EXPECT_EQ(fault_of({State::not_sent, code}, {}), "");
        EXPECT_EQ(fault_of({State::not_sent, code}, {1}), "was not sent, and ran") << code;
        EXPECT_EQ(fault_of({State::not_sent, code, 1}, {1, 0}), "was not sent, and ran") << code;
    }
}

TEST(LifeVerdict, WhatWasSentAndFailedMayHaveRunWhereItsCodeSaysSo) {
    for (const unsigned code : {ROVE_DISCONNECTED, ROVE_TIMED_OUT, ROVE_CANCELLED})
        EXPECT_EQ(fault_of({State::failed, code}, {1}), "") << code;
    EXPECT_EQ(fault_of({State::failed, ROVE_OVERLOADED}, {1}),
              "failed with a code that says it did not run, and its last step ran");
    EXPECT_EQ(fault_of({State::failed, ROVE_OVERLOADED, 1}, {1, 0}), "");  // it was not sent on
    EXPECT_EQ(fault_of({State::failed, ROVE_DISCONNECTED}, {2}), "ran more than once");
}

}  // namespace
}  // namespace life
