// The floor of answers, over ledgers that are written here.
#include "answers.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../node/process.hpp"

namespace life {
namespace {

// A client's ledger, as the client would write it.
class Book {
public:
    explicit Book(const std::string& name, std::uint32_t client)
        : path_((rove::test::scratch() / name).string()), ledger_(map_ledger(path_, true)) {
        ledger_->header.client = client;
    }
    ~Book() {
        munmap(ledger_, sizeof(Ledger));
        unlink(path_.c_str());
    }
    Book(const Book&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }
    void write(Kind kind, State state, unsigned times = 1) {
        for (unsigned i = 0; i < times; ++i) {
            Entry& entry = ledger_->entries[ledger_->header.used.fetch_add(1)];
            entry.kind = kind;
            entry.state = state;
        }
    }
    // As much of each kind as is asked for.
    void write_enough() {
        for (unsigned kind = 0; kind < static_cast<unsigned>(Kind::roll); ++kind) {
            const auto each = static_cast<Kind>(kind);
            const bool posted = each == Kind::post || each == Kind::typed_post || each == Kind::batch;
            write(each, posted ? State::posted : State::answered, kAnsweredMin);
        }
    }

private:
    std::string path_;
    Ledger* ledger_;
};

TEST(LifeAnswers, HaveAFloorForEachKindOfWork) {
    Book book("one", 7);
    book.write_enough();  // before it is watched
    Answers answers;
    answers.watch(book.path(), "build 1");
    EXPECT_NE(answers.missing().find("build 1: 0 of 3 call"), std::string::npos) << answers.missing();
    EXPECT_NE(answers.missing().find("client 7: 0 of 20"), std::string::npos) << answers.missing();
    book.write(Kind::shelf, State::failed, 100);
    book.write(Kind::call, State::posted, 100);
    book.write(Kind::call, State::wrong, 100);
    EXPECT_NE(answers.missing().find("build 1: 0 of 3 call"), std::string::npos) << answers.missing();
    EXPECT_NE(answers.missing().find("build 1: 0 of 3 shelf"), std::string::npos) << answers.missing();
    book.write_enough();
    EXPECT_EQ(answers.missing(), "");
    ASSERT_EQ(answers.lines().size(), 1U);
    EXPECT_EQ(answers.lines()[0].find("build 1: 3 call 3 large 3 inlined 3 batch"), 0U) << answers.lines()[0];
}

TEST(LifeAnswers, OfAGroupAreCountedTogetherAndEachClientHasSome) {
    Book busy("busy", 1), idle("idle", 2);
    Answers answers;
    answers.watch(busy.path(), "clients");
    answers.watch(idle.path(), "clients");
    busy.write_enough();
    EXPECT_EQ(answers.missing(), "client 2: 0 of 20");
    idle.write(Kind::typed, State::answered, kAnsweredByEachMin);
    EXPECT_EQ(answers.missing(), "");
}

}  // namespace
}  // namespace life
