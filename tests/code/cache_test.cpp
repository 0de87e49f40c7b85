// The cache without a node around it: forms that come one by one, a budget that nothing fits, interfaces, and ends.
#include <algorithm>
#include <fstream>
#include <future>
#include <map>
#include <optional>
#include <thread>
#include <tuple>

#include "cache_fixture.hpp"

namespace rove::code {

struct Shape;  // of packages

namespace {

TEST_F(CacheTest, AFunctionIsFoundByIdNameAndHandle) {
    CodeCache cache(options());
    const auto package = build("counter.c", kCounter);
    ASSERT_TRUE(cache.add(package, false));
    Function* function = cache.find("counter:count");
    ASSERT_NE(function, nullptr);
    EXPECT_EQ(cache.find(function->id), function);
    EXPECT_EQ(cache.find(function->id.hex()), function);
    EXPECT_EQ(cache.by_handle(function->handle), function);
    EXPECT_EQ(cache.by_handle(function->handle + 1), nullptr);
    EXPECT_EQ(cache.by_handle(function->handle ^ 0x8000'0000U), nullptr) << "a handle of another generation";
    EXPECT_EQ(cache.find("counter:other"), nullptr);
}

TEST_F(CacheTest, CountsOnThroughTiersAndReportsThem) {
    CodeCache cache(options());
    ASSERT_TRUE(cache.add(build("counter.c", kCounter), false));
    Function* function = cache.find("counter:count");
    RanAs ran{};
    EXPECT_EQ(call(cache, *function, &ran), 41);
    EXPECT_EQ(ran, RanAs::image);
    cache.wait_for_tiers();
    EXPECT_EQ(call(cache, *function, &ran), 42);
    EXPECT_EQ(ran, RanAs::bitcode);
}

// The smallest budget there is: each call's code goes as the call ends, and comes again; the static stays.
TEST_F(CacheTest, CountsOnThroughEvictionsWhateverFormComesNext) {
    CodeCache cache(options(Forms::both, 1));
    const auto whole = build("counter.c", kCounter);
    ASSERT_TRUE(cache.add(PackageStore::from_manifest(whole->manifest_bytes()).value(), false));
    Function* function = cache.find("counter:count");
    long expected = 40;
    for (const Forms form :
         {Forms::image, Forms::image, Forms::bitcode, Forms::image, Forms::bitcode, Forms::bitcode}) {
        EXPECT_TRUE(waits_for_code(cache, *function));
        ASSERT_TRUE(cache.add(arriving(*whole, {form}), false));
        RanAs ran{};
        EXPECT_EQ(call(cache, *function, &ran), ++expected);
        EXPECT_EQ(ran, form == Forms::image ? RanAs::image : RanAs::bitcode);
    }
    EXPECT_EQ(cache.usage().evictions, 6U);
}

// The image arrives while the compiler works on the bitcode: still one counter.
TEST_F(CacheTest, AnImageThatComesDuringTheFirstCompileBringsNoSecondStatics) {
    const auto whole = build("counter.c", kCounter);
    for (int i = 0; i < 20; ++i) {
        CodeCache cache(options());
        const auto image = arriving(*whole, {Forms::image});
        ASSERT_TRUE(cache.add(arriving(*whole, {Forms::bitcode}), false));
        Function* function = cache.find("counter:count");
        const auto first = cache.enter(*function);
        ASSERT_TRUE(std::holds_alternative<Awaited>(first));
        std::this_thread::sleep_for(std::chrono::microseconds(100 * i));
        ASSERT_TRUE(cache.add(image, false));
        EXPECT_EQ(call(cache, *function), 41);
        cache.wait_for_tiers();
        EXPECT_EQ(call(cache, *function), 42) << "the compiled code has a counter of its own";
    }
}

TEST_F(CacheTest, RunningCodeIsNotEvicted) {
    CodeCache cache(options(Forms::image, 1));
    const auto counter = build("counter.c", kCounter);
    const auto other = build("other.c", kCounter);
    ASSERT_TRUE(cache.add(counter, false));
    auto held = cache.enter(*cache.find("counter:count"));
    ASSERT_TRUE(std::holds_alternative<Entered>(held));
    ASSERT_TRUE(cache.add(other, false));
    EXPECT_EQ(call(cache, *cache.find("other:count")), 41);  // leaving it evicts what it can
    long answer = 0;
    std::get<Entered>(held).run(nullptr, &answer, sizeof answer);
    EXPECT_EQ(answer, 41);
}

// Every call evicts, from several threads at once; slices come again as a peer would send them.
TEST_F(CacheTest, ThreadsThatEvictOneAnothersCodeLoseNoCall) {
    CodeCache cache(options(Forms::image, 1));
    constexpr const char* kAtomic =
        "ROVE_ENTRY void count(rove_here *h, const void *p, size_t n) { static long c; *(long *)p = "
        "__atomic_add_fetch(&c, 1, 5); (void)h, (void)n; }";
    const std::vector<std::shared_ptr<PackageStore>> packages = {build("one.c", kAtomic), build("two.c", kAtomic),
                                                                 build("three.c", kAtomic)};
    for (const auto& package : packages) ASSERT_TRUE(cache.add(arriving(*package, {Forms::image}), false));
    constexpr int kThreads = 4, kCalls = 300;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < kCalls;) {
                const auto& package = packages[static_cast<std::size_t>(t + i) % packages.size()];
                Function* function = cache.find(package->function_ids().front());
                auto entered = cache.enter(*function);
                if (auto* running = std::get_if<Entered>(&entered)) {
                    long answer = 0;
                    running->run(nullptr, &answer, sizeof answer);
                    ++i;
                } else if (std::holds_alternative<Awaited>(entered)) {
                    (void)cache.add(arriving(*package, {Forms::image}), false);
                } else {
                    ADD_FAILURE() << std::get<Error>(entered).message();
                    return;
                }
            }
        });
    for (std::thread& thread : threads) thread.join();
    long calls = 0;
    for (const auto& package : packages) {
        (void)cache.add(arriving(*package, {Forms::image}), false);
        calls += call(cache, *cache.find(package->function_ids().front())) - 1;
    }
    EXPECT_EQ(calls, kThreads * kCalls);
    EXPECT_GT(cache.usage().evictions, 0U);
}

TEST_F(CacheTest, AMissingSymbolIsNamedWithItsFunctionAndNode) {
    const std::string needy =
        "void nowhere_to_be_found(void); ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { "
        "nowhere_to_be_found(); (void)h, (void)p, (void)n; }";
    const auto package = build("needy.c", needy);
    CodeCache cache(options());
    ASSERT_TRUE(cache.add(package, false));
    const std::string error = error_of(cache, *cache.find("needy:go"));
    EXPECT_NE(error.find("no symbol 'nowhere_to_be_found' for needy:go on node 7; load an interface that has it"),
              std::string::npos)
        << error;
    EXPECT_EQ(error_of(cache, *cache.find("needy:go")), error) << "the error is kept";
}

// The message says to load an interface; so that has to help.
TEST_F(CacheTest, AnInterfaceThatComesLaterHealsWhatMissedIt) {
    for (const Forms forms : {Forms::image, Forms::bitcode}) {
        CodeCache cache(options(forms));
        ASSERT_TRUE(cache.add(build("user.c",
                                    "long shelf(void); ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { "
                                    "*(long *)p = shelf(); (void)h, (void)n; }"),
                              false));
        Function* function = cache.find("user:go");
        (void)cache.enter(*function);
        cache.wait_for_tiers();
        EXPECT_NE(error_of(cache, *function), "");
        const auto shelf = cache.add(build("shelf.c", "long shelf(void) { return 5; }", true), false);
        ASSERT_TRUE(shelf);
        ASSERT_TRUE(cache.load_interface(*shelf));
        EXPECT_EQ(call(cache, *function), 5);
    }
}

// Even where no code fits and the compiler's thread evicts.
TEST_F(CacheTest, AnInterfaceStaysAndANewerOneTakesItsNames) {
    for (const auto& [forms, form] : {std::pair{Forms::image, Forms::image}, {Forms::bitcode, Forms::bitcode}}) {
        CodeCache cache(options(forms, 1));
        const std::string user =
            "long shelf(void); ROVE_ENTRY void go(rove_here *h, const void *p, size_t n) { *(long *)p = shelf() + "
            "SALT; (void)h, (void)n; }";
        const auto one = cache.add(arriving(*build("shelf.c", "long shelf(void) { return 1; }", true), {form}), false);
        ASSERT_TRUE(one);
        const auto first = cache.load_interface(*one);
        ASSERT_TRUE(first) << first.error().message();
        EXPECT_TRUE(first->replaced.empty());
        const auto early = build("early.c", "#define SALT 10\n" + user);
        ASSERT_TRUE(cache.add(early, true));
        EXPECT_EQ(call(cache, *cache.find("early:go")), 11);
        const auto two = cache.add(arriving(*build("shelf2.c", "long shelf(void) { return 2; }", true), {form}), false);
        ASSERT_TRUE(two);
        const auto second = cache.load_interface(*two);
        ASSERT_TRUE(second) << second.error().message();
        EXPECT_EQ(second->replaced, std::vector<std::string>{"shelf (was of package shelf)"});
        ASSERT_TRUE(cache.add(build("late.c", "#define SALT 20\n" + user), false));
        EXPECT_EQ(call(cache, *cache.find("late:go")), 22);
        EXPECT_EQ(call(cache, *cache.find("early:go")), 11) << "what was linked before keeps its names";
    }
}

TEST_F(CacheTest, DestructorsOfShippedStaticsRunWhenTheCacheEnds) {
    constexpr const char* kGuest = R"(
extern "C" void note(long);
struct Guest { long id; explicit Guest(long n) : id(n) { note(id); } ~Guest() { note(-id); } };
static Guest first(1), second(2);
ROVE_ENTRY void touch(rove_here*, const void* p, size_t) { *(long*)p = first.id + second.id; }
)";
    for (const Forms forms : {Forms::image, Forms::bitcode, Forms::both}) {
        noted.clear();
        {
            CodeCache cache(options(forms));
            ASSERT_TRUE(cache.add(build("guest.cpp", kGuest), false));
            EXPECT_EQ(call(cache, *cache.find("guest:touch")), 3);
            cache.wait_for_tiers();
            EXPECT_EQ(call(cache, *cache.find("guest:touch")), 3);
            EXPECT_EQ(noted, (std::vector<long>{1, 2})) << "constructed once, whatever the tier";
        }
        EXPECT_EQ(noted, (std::vector<long>{1, 2, -2, -1}));
    }
}

// A thread that has made some calls, and is there until it may end.
class OtherThread {
public:
    template <typename Calls>
    explicit OtherThread(Calls calls)
        : thread_([this, calls] {
              calls();
              called_.set_value();
              word_.get_future().wait();
          }) {
        called_.get_future().wait();
    }
    ~OtherThread() { end(); }
    OtherThread(const OtherThread&) = delete;
    void end() {
        if (!thread_.joinable()) return;
        word_.set_value();
        thread_.join();
    }

private:
    std::promise<void> called_, word_;
    std::thread thread_;
};

// As natively main()'s are destroyed before statics; and those of other threads, which go on, may use statics when they end.
TEST_F(CacheTest, StaticsStayForThreadLocalObjectsThatMayReferToThem) {
    constexpr const char* kGuest = R"(
extern "C" void note(long);
struct Log { long id; ~Log() { note(id); } };
static Log log{1};
struct Mine { long id = 2; ~Mine() { note(10 * log.id + id); } };
static thread_local Mine mine;
ROVE_ENTRY void touch(rove_here*, const void* p, size_t) { *(long*)p = mine.id; }
)";
    {
        CodeCache cache(options(Forms::image));
        ASSERT_TRUE(cache.add(build("guest.cpp", kGuest), false));
        EXPECT_EQ(call(cache, *cache.find("guest:touch")), 2);
    }
    EXPECT_EQ(noted, (std::vector<long>{12, 1})) << "of the thread that ends the cache";
    noted.clear();
    std::optional<OtherThread> other;
    {
        CodeCache cache(options(Forms::image));
        ASSERT_TRUE(cache.add(build("guest.cpp", kGuest), false));
        other.emplace([&cache] { EXPECT_EQ(call(cache, *cache.find("guest:touch")), 2); });
    }
    EXPECT_TRUE(noted.empty());
    other->end();
    EXPECT_EQ(noted, std::vector<long>{12}) << "the static is still there";
}

// Which statics stay is decided once for each package: a thread may end while those of others are destroyed.
TEST_F(CacheTest, StaticsThatStayForAThreadStayAlsoWhereItEndsMeanwhile) {
    constexpr long kPackages = 8;
    const auto stays = [](long number) {
        return "extern \"C\" void note(long); struct Log { long id; ~Log() { note(id); } }; static Log log{" +
               std::to_string(number) +
               "};\nstruct Mine { long id = 2; ~Mine() { note(10 * log.id + id); } }; static thread_local Mine mine;\n"
               "ROVE_ENTRY void touch(rove_here*, const void* p, size_t) { *(long*)p = mine.id; }";
    };
    constexpr const char* kJoins =
        "extern \"C\" void end_thread(); struct Joins { long id = 3; ~Joins() { end_thread(); } }; static Joins "
        "joins;\n"
        "ROVE_ENTRY void touch(rove_here*, const void* p, size_t) { *(long*)p = joins.id; }";
    static OtherThread* other;
    std::optional<OtherThread> made;
    std::vector<EntryPoint> kept;
    {
        CodeOptions given = options(Forms::image);
        given.host_symbols.push_back({"end_thread", reinterpret_cast<void*>(+[] { other->end(); })});
        CodeCache cache(std::move(given));
        const auto name = [](long number) { return "stays" + std::to_string(number); };
        for (long i = 1; i <= kPackages; ++i) ASSERT_TRUE(cache.add(build(name(i) + ".cpp", stays(i)), false));
        ASSERT_TRUE(cache.add(build("joins.cpp", kJoins), false));
        EXPECT_EQ(call(cache, *cache.find("joins:touch")), 3);
        made.emplace([&cache, name] {
            for (long i = 1; i <= kPackages; ++i) EXPECT_EQ(call(cache, *cache.find(name(i) + ":touch")), 2);
        });
        other = &*made;
        for (long i = 1; i <= kPackages; ++i) kept.push_back(cache.find(name(i) + ":touch")->target.load());
    }
    // Those that were to be ended after the thread have ended; the order is their digests'.
    for (long i = 1; i <= kPackages; ++i) {
        EXPECT_EQ(std::ranges::count(noted, 10 * i + 2), 1);
        if (std::ranges::count(noted, i) != 0) continue;
        long answer = 0;
        kept[static_cast<std::size_t>(i) - 1](nullptr, &answer, sizeof answer);
        EXPECT_EQ(answer, 2) << "what was not destroyed stays, with its code";
    }
}

// Its users may call it: at their threads' ends, too.
TEST_F(CacheTest, AnInterfacesStaticsStayForUsersThatStay) {
    std::optional<OtherThread> other;
    {
        CodeCache cache(options(Forms::image));
        const auto shelf =
            cache.add(build("shelf.cpp",
                            "extern \"C\" void note(long);\nstruct Book { long id; ~Book() { note(id); id = 0; } };\n"
                            "static Book book{7}; extern \"C\" long shelf() { return book.id; }",
                            true),
                      false);
        ASSERT_TRUE(shelf && cache.load_interface(*shelf));
        ASSERT_TRUE(
            cache.add(build("guest.cpp",
                            "extern \"C\" { void note(long); long shelf(); }\n"
                            "struct Mine { long id = 2; ~Mine() { note(10 * shelf() + id); } };\n"
                            "static thread_local Mine mine;\n"
                            "ROVE_ENTRY void touch(rove_here*, const void* p, size_t) { *(long*)p = mine.id; }"),
                      false));
        other.emplace([&cache] { EXPECT_EQ(call(cache, *cache.find("guest:touch")), 2); });
    }
    EXPECT_TRUE(noted.empty());
    other->end();
    EXPECT_EQ(noted, std::vector<long>{72});
}

// A destructor may call an interface: interfaces end last, the newest first.
TEST_F(CacheTest, DestructorsMayStillCallInterfaces) {
    {
        CodeCache cache(options());
        const auto shelf = cache.add(build("shelf.c", "long shelf(void) { return 7; }", true), false);
        ASSERT_TRUE(shelf && cache.load_interface(*shelf));
        for (int i = 0; i < 4; ++i) {
            const std::string name = "guest" + std::to_string(i);
            ASSERT_TRUE(cache.add(build(name + ".cpp",
                                        "extern \"C\" { void note(long); long shelf(); }\nstruct Guest { long id = 0; "
                                        "Guest() { note(0); } ~Guest() { note(shelf()); } };\n"
                                        "static Guest guest;\nROVE_ENTRY void touch(rove_here*, const void* p, size_t) "
                                        "{ *(long*)p = ++guest.id; }"),
                                  false));
            EXPECT_EQ(call(cache, *cache.find(name + ":touch")), 1);
        }
    }
    EXPECT_EQ(noted, (std::vector<long>{0, 0, 0, 0, 7, 7, 7, 7}));
}

TEST_F(CacheTest, NoFormForThisMachineIsAnErrorThatNamesIt) {
    wire::Manifest manifest;
    manifest.name = "foreign";
    manifest.abi = build("counter.c", kCounter)->manifest().abi;
    manifest.entries = {"go"};
    CodeCache cache(options());
    ASSERT_TRUE(cache.add(PackageStore::from_manifest(wire::encode(manifest)).value(), false));
    EXPECT_NE(error_of(cache, *cache.find("foreign:go")).find(host_triple()), std::string::npos);
}

// What does not fit the table leaves nothing behind in it.
TEST_F(CacheTest, WhatANodeWasToldNotToTakeIsAnErrorThatSaysSo) {
    const auto whole = build("counter.c", kCounter);
    for (const auto& [form, forms, words] :
         {std::tuple{Forms::bitcode, Forms::image, "it has no image for "},
          std::tuple{Forms::image, Forms::bitcode,
                     "the node takes bitcode only (--forms bitcode); ship bitcode, or"}}) {
        const std::size_t slice = *whole->slice_index(host_triple(), form);
        wire::Manifest manifest = whole->manifest();
        manifest.slices = {manifest.slices[slice]};
        auto package = PackageStore::from_manifest(wire::encode(manifest)).value();
        ASSERT_TRUE(package->add_slice(0, *whole->stored_slice(slice)));
        CodeCache cache(options(forms));
        ASSERT_TRUE(cache.add(package, false));
        const std::string error = error_of(cache, *cache.find("counter:count"));
        EXPECT_NE(error.find(words), std::string::npos) << error;
    }
}

TEST_F(CacheTest, ARefusedPackageLeavesNoHandles) {
    const std::uint16_t abi = build("counter.c", kCounter)->manifest().abi;
    const auto many = [abi](int salt) {
        wire::Manifest manifest;
        manifest.name = "many" + std::to_string(salt);
        manifest.abi = abi;
        for (int i = 0; i < 1000; ++i) manifest.entries.push_back("f" + std::to_string(i));
        return PackageStore::from_manifest(wire::encode(manifest)).value();
    };
    CodeCache cache(options(Forms::image));
    for (int i = 0; i < 65; ++i) ASSERT_TRUE(cache.add(many(i), true));  // resident: never forgotten
    const std::size_t functions = cache.usage().functions;
    EXPECT_FALSE(cache.add(many(65), false));
    EXPECT_EQ(cache.usage().functions, functions);
    for (std::uint32_t handle = 0; handle < 65536; ++handle)
        if (const Function* function = cache.by_handle(handle)) EXPECT_EQ(function->handle, handle);
    EXPECT_EQ(cache.by_handle(65500), nullptr);
    EXPECT_FALSE(cache.add(many(65), false)) << "again, with indices that were given back";
}

TEST_F(CacheTest, NothingIsWritableAndExecutableAtOnce) {
    CodeCache cache(options());
    ASSERT_TRUE(cache.add(build("counter.c", kCounter), false));
    EXPECT_EQ(call(cache, *cache.find("counter:count")), 41);
    cache.wait_for_tiers();
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) EXPECT_EQ(line.find("rwx"), std::string::npos) << line;
}

// Each package has vtables of its own.
TEST_F(CacheTest, AnObjectOfAnotherPackageIsOfItsClassStill) {
    const std::string classes =
        "struct Shape { virtual ~Shape() = default; };\n"
        "struct Square final : Shape { long side = 3; };\n";
    const auto head = [](const char* name) {
        return std::string("ROVE_ENTRY void ") + name + "(rove_here*, const void* p, size_t) { ";
    };
    const auto makes = build("makes.cpp", classes + head("make") + "*(Shape**)p = new Square; }\n");
    const auto looks = build("looks.cpp", classes + "static Shape* seen;\n" + head("look") +
                                              "if (!seen) { void make_one(Shape**); make_one(&seen); }\n" +
                                              "auto* square = dynamic_cast<Square*>(seen); "
                                              "*(long*)p = square ? square->side : -1; }\n");
    CodeOptions given = options(Forms::image);
    static Shape* made = nullptr;
    given.host_symbols.push_back({"make_one", reinterpret_cast<void*>(+[](Shape** into) { *into = made; })});
    CodeCache cache(given);
    ASSERT_TRUE(cache.add(makes, false));
    ASSERT_TRUE(cache.add(looks, false));
    made = reinterpret_cast<Shape*>(call(cache, *cache.find("makes:make")));
    EXPECT_EQ(call(cache, *cache.find("looks:look")), 3);
}

}  // namespace
}  // namespace rove::code
