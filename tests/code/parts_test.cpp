// Parts of a code cache by themselves: what it knows, what was used last, what is counted, how long functions take.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cache_parts.hpp"
#include "code/budgets.hpp"
#include "code/compile_queue.hpp"
#include "code/dependencies.hpp"
#include "code/known.hpp"
#include "code/pace.hpp"
#include "code/symbols.hpp"
#include "given_compiler.hpp"
#include "toolchain/files.hpp"
#include "toolchain/process.hpp"

namespace rove::code {
namespace {

using KnownTest = PartsTest;

TEST_F(KnownTest, ANameMeansTheNewestPackage) {
    const LockOf lock(mutex_);
    Known known;
    PackageCode& older = known.add(package("sum", 10, "1"));
    EXPECT_EQ(known.find("sum", "stop1"), older.functions[1].get());
    PackageCode& newer = known.add(package("sum", 10, "2"));
    EXPECT_EQ(known.find("sum", "run"), newer.functions[0].get());
    EXPECT_EQ(known.find("sum", "stop1"), nullptr);
    EXPECT_EQ(known.find(older.functions[1]->id), older.functions[1].get()) << "its id is its own";
    (void)known.forget(newer);
    EXPECT_EQ(known.find("sum", "run"), nullptr) << "an older one may lack what callers have come to expect";
    EXPECT_EQ(known.functions(), 2U);
}

TEST_F(KnownTest, ANameMeansTheResidentPackageAgainWhenTheNewestIsForgotten) {
    const LockOf lock(mutex_);
    Known known;
    PackageCode& resident = known.add(package("sum", 10, "1"));
    known.note_resident(resident);
    (void)known.forget(known.add(package("sum", 10, "2")));
    EXPECT_EQ(known.find("sum", "stop1"), resident.functions[1].get());
}

TEST_F(KnownTest, AHandleNeverMeansAnotherFunction) {
    const LockOf lock(mutex_);
    Known known;
    PackageCode* first = &known.add(package("sum", 10));
    const std::uint32_t handle = first->functions[0]->handle;
    EXPECT_EQ(known.by_handle(handle), first->functions[0].get());
    const std::size_t room = known.room();
    (void)known.forget(*first);
    EXPECT_EQ(known.by_handle(handle), nullptr);
    EXPECT_EQ(known.room(), room + 2);
    for (int i = 0; i < 4; ++i) {
        PackageCode& other = known.add(package("other" + std::to_string(i), 10));
        EXPECT_EQ(known.by_handle(handle), nullptr) << "although its place is another function's now";
        for (const auto& function : other.functions) EXPECT_EQ(known.by_handle(function->handle), function.get());
        (void)known.forget(other);
    }
}

TEST_F(KnownTest, AFunctionOfTheProgramIsFoundByItsAddress) {
    const LockOf lock(mutex_);
    Known known;
    const auto entry = reinterpret_cast<EntryPoint>(&known);
    const Function* const added = known.add(FunctionId{{1}}, "of_the_program", entry);
    EXPECT_EQ(known.find(entry), added);
    EXPECT_EQ(known.find(FunctionId{{1}}), added);
    EXPECT_EQ(known.by_handle(added->handle), added);
    EXPECT_EQ(known.find(FunctionId{{2}}), nullptr);
}

class RecencyTest : public PartsTest {
protected:
    static bool never(const PackageCode& /*package*/) { return false; }
};

TEST_F(RecencyTest, TheOneUsedLongestAgoIsFirst) {
    const LockOf lock(mutex_);
    RecencyList list(&PackageCode::evictable);
    const auto a = package("a", 10), b = package("b", 10), c = package("c", 10);
    std::uint64_t now = 0;
    for (PackageCode* each : {a.get(), b.get(), c.get()}) {
        Uses::note_call(*each, ++now);
        list.keep(*each, true);
    }
    EXPECT_EQ(list.oldest(now, never), a.get());
    Uses::note_call(*a, ++now);  // as calls do: the list does not hear of it
    EXPECT_EQ(list.oldest(now, never), b.get());
    list.keep(*b, false);
    EXPECT_EQ(list.oldest(now, never), c.get());
    list.keep(*c, false);
    EXPECT_EQ(list.oldest(now, never), a.get());
    list.keep(*a, false);
    EXPECT_EQ(list.oldest(now, never), nullptr);
    EXPECT_EQ(list.size(), 0U);
}

TEST_F(RecencyTest, WhoIsBusyIsPassedOverAndCountsAsUsed) {
    const LockOf lock(mutex_);
    RecencyList list(&PackageCode::evictable);
    const auto busy = package("busy", 10), idle = package("idle", 10);
    Uses::note_call(*busy, 1);
    Uses::note_call(*idle, 2);
    list.keep(*busy, true);
    list.keep(*idle, true);
    EXPECT_EQ(list.oldest(3, [&](const PackageCode& each) { return &each == busy.get(); }), idle.get());
    EXPECT_EQ(busy->last_used.load(), 3U);
    EXPECT_EQ(list.oldest(3, [](const PackageCode&) { return true; }), nullptr) << "and it ends";
    EXPECT_EQ(list.size(), 2U);
}

class BudgetsTest : public PartsTest {
protected:
    std::size_t slices_of(const PackageCode& package) { return package.store->slice_bytes_held(); }

    Candidates candidates_;
    Uses uses_;
    Budgets budgets_{options_, candidates_, uses_};
};

TEST_F(BudgetsTest, EveryByteIsCountedOnceAndGivenBack) {
    const LockOf lock(mutex_);
    budgets_.make_places(2);
    const auto a = package("a", 1000), b = package("b", 5000);
    for (int again = 0; again < 3; ++again)
        for (PackageCode* each : {a.get(), b.get()}) budgets_.count(*each);
    EXPECT_EQ(budgets_.held(Budget::evictable), slices_of(*a) + slices_of(*b));
    EXPECT_GT(budgets_.held(Budget::evictable), 5000U);
    EXPECT_EQ(budgets_.manifest_bytes(), a->store->manifest_bytes_held() + b->store->manifest_bytes_held());
    a->resident = true;
    budgets_.count(*a);
    EXPECT_EQ(budgets_.held(Budget::resident), slices_of(*a));
    EXPECT_EQ(budgets_.held(Budget::evictable), slices_of(*b));
    EXPECT_EQ(budgets_.manifest_bytes(), b->store->manifest_bytes_held());
    for (PackageCode* each : {a.get(), b.get()}) budgets_.uncount(*each);
    for (const Budget each : {Budget::evictable, Budget::pinned, Budget::resident}) EXPECT_EQ(budgets_.held(each), 0U);
    EXPECT_EQ(budgets_.manifest_bytes(), 0U);
}

TEST_F(BudgetsTest, SaysWhenMoreIsHeldThanFits) {
    const LockOf lock(mutex_);
    options_.code_bytes_max = 4000;
    budgets_.make_places(2);
    const auto small = package("small", 1000), large = package("large", 5000);
    budgets_.count(*small);
    EXPECT_FALSE(budgets_.is_over());
    EXPECT_FALSE(uses_.is_over_budget());
    budgets_.count(*large);
    EXPECT_TRUE(budgets_.is_over());
    EXPECT_TRUE(uses_.is_over_budget());
    budgets_.uncount(*large);
    EXPECT_FALSE(budgets_.is_over());
}

TEST_F(BudgetsTest, CodeThatCouldNotStayForACallIsRefused) {
    const LockOf lock(mutex_);
    const auto large = package("large", 100);
    EXPECT_TRUE(budgets_.check_evictable(*large, kAwaitedBytesMax)) << "calls wait for it, whatever the budget";
    const Status refused = budgets_.check_evictable(*large, kAwaitedBytesMax + 1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::overloaded);
    EXPECT_NE(refused.error().message().find("package large takes 134217729 bytes of code, and node 7 keeps 134217728"),
              std::string::npos)
        << refused.error().message();
    options_.code_bytes_max = 2 * kAwaitedBytesMax;
    EXPECT_TRUE(budgets_.check_evictable(*large, kAwaitedBytesMax + 1));
}

TEST_F(BudgetsTest, HalfOfAnyNumberOfPackagesMayStay) {
    const LockOf lock(mutex_);
    const auto one = package("one", 100);
    for (const std::size_t most : {std::size_t{1}, std::size_t{2}, SIZE_MAX}) {
        options_.packages_max = most;
        EXPECT_TRUE(budgets_.fits_among_staying(*one, 0)) << most;
    }
}

TEST_F(BudgetsTest, WhatIsReservedIsCountedUntilItIsGivenBack) {
    const LockOf lock(mutex_);
    budgets_.make_places(1);
    const auto loading = package("loading", 100);
    loading->pinned = true;
    budgets_.count(*loading);
    budgets_.reserve(*loading, 700, 90);
    EXPECT_EQ(budgets_.held(Budget::pinned), 700U);
    EXPECT_EQ(budgets_.static_bytes(), 90U);
    budgets_.give_back(*loading);
    EXPECT_EQ(budgets_.held(Budget::pinned), 0U);
    EXPECT_EQ(budgets_.static_bytes(), 0U);
    EXPECT_EQ(budgets_.held(Budget::evictable), slices_of(*loading));
}

using CompileQueueTest = PartsTest;

TEST_F(CompileQueueTest, NodesTakeTurns) {
    const LockOf lock(mutex_);
    std::vector<std::unique_ptr<PackageCode>> all;
    CompileQueue queue;
    for (const NodeId from : {1, 1, 1, 2, 3, 2}) {
        all.push_back(package("sum" + std::to_string(all.size()), 10));
        all.back()->compiled_for = from;
        all.back()->await();
        queue.push(*all.back());
    }
    EXPECT_FALSE(queue.leave_in_vain());
    std::vector<NodeId> order;
    while (!queue.empty()) order.push_back(queue.begin().compiled_for);
    EXPECT_EQ(order, (std::vector<NodeId>{1, 2, 3, 1, 2, 1}));
}

// The queue of packages that come one after the other while others are compiled.
class ComingPackages : public CompileQueueTest {
protected:
    PackageCode& comes(NodeId from, bool runs = false) REQUIRES(lock_of<CodeCache>) {
        all_.push_back(package("sum" + std::to_string(all_.size()), 10));
        PackageCode& added = *all_.back();
        added.compiled_for = from;
        if (runs) added.module = std::make_unique<GivenModule>();
        added.await();
        queue_.push(added);
        return added;
    }
    CompileQueue queue_;

private:
    std::vector<std::unique_ptr<PackageCode>> all_;
};

// As one process may, which has several clients' ids.
TEST_F(ComingPackages, OfTwoThatBringManyKeepNobodyWaiting) {
    const LockOf lock(mutex_);
    for (int i = 0; i < 10; ++i)
        for (const NodeId from : {1, 2}) comes(from);
    EXPECT_EQ(queue_.begin().compiled_for, 1U);
    comes(3);
    std::vector<NodeId> order;
    while (order.size() < 5) {
        order.push_back(queue_.begin().compiled_for);
        comes(order.back());
    }
    EXPECT_EQ(order, (std::vector<NodeId>{2, 1, 2, 3, 1}));
}

TEST_F(ComingPackages, OfTwoThatBringOneAtATimeKeepNobodyWaiting) {
    const LockOf lock(mutex_);
    comes(3);
    EXPECT_EQ(queue_.begin().compiled_for, 3U);
    comes(3);
    comes(1);
    EXPECT_EQ(queue_.begin().compiled_for, 1U);
    comes(2);
    EXPECT_EQ(queue_.begin().compiled_for, 3U);
    comes(1);
    EXPECT_EQ(queue_.begin().compiled_for, 2U);
    comes(2);
    comes(3);
    std::vector<NodeId> order;
    while (!queue_.empty()) order.push_back(queue_.begin().compiled_for);
    EXPECT_EQ(order, (std::vector<NodeId>{1, 2, 3}));
}

// They wait for a better form only.
TEST_F(ComingPackages, ThatRunCostTheirNodeNoTurn) {
    const LockOf lock(mutex_);
    for (int i = 0; i < 10; ++i) comes(1, true);
    comes(2);
    comes(2);
    const PackageCode& awaited = comes(1);
    EXPECT_EQ(queue_.begin().compiled_for, 2U);
    EXPECT_EQ(&queue_.begin(), &awaited);
    EXPECT_EQ(queue_.begin().compiled_for, 2U);
}

// Whoever sends another one's package first, and asks for it after all of its own, holds up nobody who calls it.
TEST_F(ComingPackages, HaveTheEarliestTurnOfThoseThatWait) {
    const LockOf lock(mutex_);
    for (int i = 0; i < 5; ++i) comes(1);
    PackageCode& called = comes(1);
    const PackageCode& too = comes(1);
    queue_.add_asker(called, 2);
    EXPECT_EQ(queue_.begin().compiled_for, 1U);
    EXPECT_EQ(&queue_.begin(), &called);
    EXPECT_EQ(called.compiled_for, 2U);
    for (int i = 0; i < 4; ++i) EXPECT_NE(&queue_.begin(), &too);
    EXPECT_EQ(&queue_.begin(), &too);
    EXPECT_TRUE(queue_.empty());
}

TEST_F(ComingPackages, AreAskedForAtOneTurnOfTheAskers) {
    const LockOf lock(mutex_);
    const PackageCode& first = comes(2);
    PackageCode& asked = comes(1);
    const PackageCode& second = comes(1);
    PackageCode& third = comes(1);
    for (int i = 0; i < 10; ++i) {
        queue_.add_asker(asked, 2);  // its next comes later
        queue_.add_asker(third, 2);
    }
    const PackageCode& last = comes(2);
    for (const PackageCode* each :
         {&first, static_cast<const PackageCode*>(&asked), static_cast<const PackageCode*>(&third), &second, &last})
        EXPECT_EQ(&queue_.begin(), each);
    queue_.add_asker(asked, 3);
    EXPECT_EQ(asked.compile, PackageCode::Compile::begun);
    EXPECT_EQ(asked.compiled_for, 1U) << "it is not queued any more";
}

// A better form is waited for by nobody.
TEST_F(ComingPackages, ThatRunHaveNobodyElsesTurn) {
    const LockOf lock(mutex_);
    comes(1, true);
    PackageCode& runs = comes(1, true);
    queue_.add_asker(runs, 2);
    EXPECT_EQ(runs.compiled_for, 1U);
}

TEST_F(CompileQueueTest, WhatHasNoCodeComesFirst) {
    const LockOf lock(mutex_);
    const auto runs = package("runs", 10), runs_too = package("runs_too", 10), waits = package("waits", 10);
    for (PackageCode* each : {runs.get(), runs_too.get()}) each->module = std::make_unique<GivenModule>();
    CompileQueue queue;
    for (PackageCode* each : {runs.get(), runs_too.get(), waits.get()}) {
        queue.push(*each);
        EXPECT_EQ(each->compile, PackageCode::Compile::queued);
    }
    EXPECT_EQ(&queue.begin(), waits.get());
    EXPECT_EQ(waits->compile, PackageCode::Compile::begun);
    queue.leave(*waits);
    EXPECT_EQ(waits->compile, PackageCode::Compile::begun) << "it is not queued";
    queue.leave(*runs);
    EXPECT_EQ(runs->compile, PackageCode::Compile::none);
    EXPECT_EQ(&queue.begin(), runs_too.get());
    EXPECT_TRUE(queue.empty());
}

TEST_F(CompileQueueTest, WhatNobodyWaitsForLeaves) {
    const LockOf lock(mutex_);
    const auto awaited = package("awaited", 10), held = package("held", 10), in_vain = package("in_vain", 10);
    CompileQueue queue;
    for (const auto* each : {&in_vain, &held, &awaited}) queue.push(**each);
    awaited->await();
    const Running load(*held);
    EXPECT_EQ(queue.leave_in_vain(), in_vain->store->digest());
    EXPECT_EQ(in_vain->compile, PackageCode::Compile::none);
    EXPECT_FALSE(queue.leave_in_vain());
    EXPECT_EQ(&queue.begin(), held.get());
    EXPECT_EQ(&queue.begin(), awaited.get());
    EXPECT_TRUE(queue.empty());
}

TEST(PaceTest, AFunctionIsLongUntilARunOfItIsShort) {
    Pace pace;
    EXPECT_FALSE(pace.is_long() || pace.is_short() || pace.has_ended());
    pace.seen_long();
    EXPECT_TRUE(pace.is_long());
    pace.ended(2 * Pace::kShort, {});
    EXPECT_TRUE(pace.is_long());
    EXPECT_TRUE(pace.has_ended());
    pace.ended(Pace::kShort / 2, {});
    EXPECT_FALSE(pace.is_long());
    EXPECT_FALSE(pace.is_short()) << "not in place: it had a thread of its own";
    pace.ended_at_once();
    EXPECT_TRUE(pace.is_short());
    pace.seen_long();
    EXPECT_FALSE(pace.is_short());
}

TEST(PaceTest, ReadingALargePayloadDoesNotMakeItLong) {
    Pace pace;
    pace.seen_long();
    pace.ended(4 * Pace::kShort, 5 * Pace::kShort);
    EXPECT_FALSE(pace.is_long());
}

TEST(PaceTest, WhatWasNeverShortIsTriedThreeTimes) {
    Pace never_short, was_short;
    was_short.ended_at_once();
    for (int run = 0; run < 3; ++run) {
        EXPECT_TRUE(never_short.may_be_tried()) << run;
        for (Pace* each : {&never_short, &was_short}) {
            each->seen_long();
            each->ended(2 * Pace::kShort, {});
        }
    }
    EXPECT_FALSE(never_short.may_be_tried());
    EXPECT_TRUE(was_short.may_be_tried());
    was_short.take_place();
    EXPECT_FALSE(was_short.may_be_tried()) << "while a run of it is long";
    was_short.give_place();
    EXPECT_TRUE(was_short.may_be_tried());
}

using LibrariesTest = PartsTest;

TEST_F(LibrariesTest, TheyAreOpenedOnceForEachPackage) {
    Dependencies dependencies;
    PackageCode package(owner_, store({.name = "sum", .dependencies = {"libz.so.1", "libof-nobody.so.7"}}));
    dependencies.open(package);
    EXPECT_TRUE(package.libraries_open);
    EXPECT_EQ(package.scope.libraries.size(), 1U);
    EXPECT_TRUE(package.scope.left_out.starts_with("its library libof-nobody.so.7 cannot be opened"))
        << package.scope.left_out;
    package.scope.libraries.clear();
    dependencies.open(package);
    EXPECT_TRUE(package.scope.libraries.empty());
    EXPECT_FALSE(dependencies.is_opening_any());
    PackageCode without(owner_, store({.name = "without"}));
    dependencies.open(without);
    EXPECT_FALSE(without.libraries_open) << "there was nothing to open";
}

// A sanitizer's own would end the process.
TEST(SymbolsTest, NamesOfInterfacesAreAsOfTheTimeThatIsAskedFor) {
    Symbols symbols{std::vector<HostSymbol>{}};
    int first = 0, second = 0, third = 0;
    const std::uint64_t before = symbols.generation();
    const auto add = [&symbols](int& at) {
        NameMap<void*> names;
        names["shelf"] = &at;
        return symbols.add_interface("of_shelves", names);
    };
    EXPECT_TRUE(add(first).empty());
    const std::uint64_t with_first = symbols.generation();
    EXPECT_EQ(add(second).size(), 1U);
    EXPECT_TRUE(add(second).empty()) << "the same";
    const std::uint64_t with_second = symbols.generation();
    EXPECT_EQ(add(third).size(), 1U);
    EXPECT_EQ(symbols.of_interfaces("shelf"), &third);
    EXPECT_EQ(symbols.of_interfaces("shelf", before), &first) << "the first that came";
    EXPECT_EQ(symbols.of_interfaces("shelf", with_first), &first);
    EXPECT_EQ(symbols.of_interfaces("shelf", with_second), &second);
    EXPECT_EQ(symbols.resolve("shelf", {.as_of = with_first}), &first);
    EXPECT_EQ(symbols.resolve("shelf", {}), &third);
}

TEST(LinkScopeTest, LibrariesOfEveryNodeAreNotOpened) {
    LinkScope scope;
    scope.open({"libasan.so.8", "libtsan.so.2", "libc.so.6", "libz.so.1"});
    EXPECT_EQ(scope.libraries.size(), 1U) << scope.left_out;
    EXPECT_EQ(scope.left_out, "");
}

TEST(LinkScopeTest, LibrariesAreBounded) {
    const auto made_folder = toolchain::TemporaryFolder::make();
    ASSERT_TRUE(made_folder);
    const std::filesystem::path& folder = made_folder->path();
    const std::filesystem::path one = folder / "lib0.so";
    const auto made = toolchain::run({"clang++-19", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", one}, "clang-19");
    ASSERT_TRUE(made && made->status == 0) << (made ? made->out : made.error().message());
    std::vector<std::string> names;
    for (std::size_t i = 0; i <= kLibrariesMax; ++i) {
        names.push_back((folder / ("lib" + std::to_string(i) + ".so")).string());
        if (i > 0) std::filesystem::copy_file(one, names.back());
    }
    // In a child, because they stay open.
    EXPECT_EXIT(
        {
            LinkScope scope;
            scope.open(names);
            const bool bounded = scope.libraries.size() <= kLibrariesMax &&
                                 scope.left_out.find("256 libraries here, the most") != std::string::npos;
            LinkScope again;
            again.open({names.front()});
            _exit(bounded && again.libraries.size() == 1 ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

std::string other_library, refusal;

void open_other_library() {
    LinkScope scope;
    scope.open({other_library});
    refusal = scope.left_out;
}

// Its constructor runs within dlopen(), as another thread may ask for a library at that time.
TEST(LinkScopeTest, ALibraryCountsWhileItIsBeingOpened) {
    const auto made_folder = toolchain::TemporaryFolder::make();
    ASSERT_TRUE(made_folder);
    const std::filesystem::path& folder = made_folder->path();
    const std::filesystem::path source = folder / "asks.c", asks = folder / "asks.so";
    const std::string text =
        "#include <stdlib.h>\n"
        "__attribute__((constructor)) static void ask(void) {\n"
        "    const char* at = getenv(\"ROVE_TEST_ASK\");\n"
        "    if (at != NULL) ((void (*)(void))strtoull(at, NULL, 10))();\n"
        "}\n";
    ASSERT_TRUE(toolchain::write_file(source, as_bytes(text)));
    const auto made = toolchain::run({"clang++-19", "-shared", "-fPIC", "-x", "c", source, "-o", asks}, "clang-19");
    ASSERT_TRUE(made && made->status == 0) << (made ? made->out : made.error().message());
    std::vector<std::string> names;
    for (std::size_t i = 1; i <= kLibrariesMax; ++i) {
        names.push_back((folder / ("lib" + std::to_string(i) + ".so")).string());
        std::filesystem::copy_file(asks, names.back());
    }
    other_library = names.back();
    names.pop_back();
    EXPECT_EXIT(
        {
            LinkScope scope;
            scope.open(names);  // all but one
            setenv("ROVE_TEST_ASK", std::to_string(reinterpret_cast<std::uintptr_t>(&open_other_library)).c_str(), 1);
            LinkScope last;
            last.open({asks.string()});
            const bool refused = refusal.find("256 libraries here, the most") != std::string::npos;
            _exit(scope.libraries.size() == kLibrariesMax - 1 && last.libraries.size() == 1 && refused ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace rove::code
