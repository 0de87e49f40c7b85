// The bitcode takes over from the image what the image has put into statics: addresses of functions, constants and labels among it.
#include "cache_fixture.hpp"

namespace rove::code {
namespace {

struct Sample {
    const char* file;
    const char* what;
    const char* text;  // entry `count`; gives 1 in its first call and 2, 3, ... in those that follow, if all is well
};

constexpr const char* kHead = R"(
#define CALL(n) ROVE_ENTRY extern "C" void count(rove_here *, const void *payload, size_t) { *(long *)payload = n; }
)";

constexpr Sample kSamples[] = {
    {"function.cpp", "a function kept in a static compares equal to itself", R"(
__attribute__((noinline)) static long one(long n) { return n + 1; }
__attribute__((noinline)) static long two(long n) { return n + 1 + (n > 100); }
static long (*kept)(long);
static long calls;
static long next() {
    if (kept == nullptr) kept = calls > 100 ? two : one;
    if (kept != one) return -1;
    return calls = kept(calls);
}
CALL(next()))"},
    {"sentinel.cpp", "the address of a constant marks the end", R"(
struct node { const node *next; long value; };
static const node nil = {nullptr, 7};
static const node *end;
static long calls;
__attribute__((noinline)) static bool is_end(const node *n) { return n == &nil; }
static long next() {
    if (end == nullptr) end = &nil;
    return is_end(end) && end->value == 7 ? ++calls : -1;
}
CALL(next()))"},
    {"text.cpp", "a text is known by where it is", R"(
static const char *const words[] = {"idle", "busy", "done"};
static const char *now;
static long calls;
__attribute__((noinline)) static long number(const char *word) {
    for (long i = 0; i < 3; ++i) if (words[i] == word) return i;
    return -1;
}
static long next() {
    if (now == nullptr) now = words[1];
    return number(now) == 1 ? ++calls : -1;
}
CALL(next()))"},
    {"labels.cpp", "labels kept in a static are jumped to", R"(
struct op { void *label; };
static op program[4];
static long calls;
static long run(bool fill) {
    static void *const labels[] = {&&add, &&twice, &&half, &&done};
    for (int i = 0; i < 4; ++i) {
        if (fill) program[i].label = labels[i];
        if (program[i].label != labels[i]) return -1;
    }
    if (fill) return 0;
    const op *at = program;
    goto *(at++)->label;
add: ++calls; goto *(at++)->label;
twice: calls *= 2; goto *(at++)->label;
half: calls /= 2; goto *(at++)->label;
done: return calls;
}
static long next() {
    if (program[0].label == nullptr) run(true);
    return run(false);
}
CALL(next()))"},
    {"entry_labels.cpp", "the entry itself has labels", R"(
static void *kept[2];
static long calls;
ROVE_ENTRY extern "C" void count(rove_here *, const void *payload, size_t) {
    if (kept[0] == nullptr) { kept[0] = &&first; kept[1] = &&second; }
    goto *kept[calls & 1];
first: *(long *)payload = ++calls; return;
second: calls += 1; *(long *)payload = calls; return;
})"},
    {"moved_labels.cpp", "labels that the optimiser has moved into their function's caller", R"(
#include <cstring>
static short distances[3], program[4];
static char text[8];
static long calls;
static void execute(const short *at) {
    static void *const labels[] = {&&x, &&y, &&z};
    char *const base = static_cast<char *>(&&x);
    char *to = text;
    if (at == nullptr) {
        for (int i = 0; i < 3; ++i) distances[i] = static_cast<short>(static_cast<char *>(labels[i]) - base);
        return;
    }
x: *to++ = 'x'; goto *(base + *at++);
y: *to++ = 'y'; if (to == text + sizeof text) return; goto *(base + *at++);
z: *to++ = 'z'; *to = 0;
}
static long next() {
    execute(nullptr);
    program[0] = program[2] = distances[1];
    program[1] = distances[0];
    program[3] = distances[2];
    execute(program);
    return std::strcmp(text, "xyxyz") == 0 ? ++calls : -1;
}
CALL(next()))"},
    {"own.cpp", "an entry and its own address", R"(
static void *kept;
static long calls;
ROVE_ENTRY extern "C" void count(rove_here *, const void *payload, size_t) {
    if (kept == nullptr) kept = reinterpret_cast<void *>(&count);
    *(long *)payload = kept == reinterpret_cast<void *>(&count) ? ++calls : -1;
})"},
    {"library.cpp", "std::function knows its target, and a map its keys", R"(
#include <functional>
#include <map>
__attribute__((noinline)) static long one(long n) { return n + 1; }
static std::function<long(long)> kept;
static std::map<long (*)(long), long> counts;
static long next() {
    if (!kept) kept = one;
    const auto target = kept.target<long (*)(long)>();
    if (target == nullptr || *target != one) return -1;
    counts[one] = kept(counts[one]);
    return counts.size() == 1 ? counts[one] : -2;
}
CALL(next()))"},
    {"objects.cpp", "objects of the first tier are used and destroyed by the second", R"(
#include <exception>
#include <memory>
#include <typeinfo>
namespace {
struct shape { virtual ~shape() = default; virtual long sides() const = 0; };
struct square final : shape { long sides() const override { return 4; } };
struct triangle final : shape { long sides() const override { return 3; } };
struct mistake {};
}
static std::unique_ptr<shape> kept;
static std::exception_ptr thrown;
static const std::type_info *type;
static long calls;
static long next() {
    if (calls == 0) {
        kept = std::make_unique<square>();
        thrown = std::make_exception_ptr(mistake());
        type = &typeid(triangle);
    }
    const auto *as_square = dynamic_cast<square *>(kept.get());
    if (as_square == nullptr || as_square->sides() != 4) return -1;
    triangle other;
    const shape &any = other;
    if (typeid(any) != *type) return -2;
    try { std::rethrow_exception(thrown); } catch (const mistake &) { kept = std::make_unique<square>(); return ++calls; } catch (...) { return -3; }
}
CALL(next()))"},
    {"table.cpp", "a table of distances finds its texts", R"(
static const char *kept;
static long calls;
__attribute__((noinline)) static const char *name(long n) {
    switch (n & 7) {
        case 0: return "zero"; case 1: return "one and more"; case 2: return "two"; case 3: return "three";
        case 4: return "four"; case 5: return "five"; case 6: return "six"; default: return "seven";
    }
}
static long next() {
    if (kept == nullptr) kept = name(1);
    return kept == name(1) && name(calls)[0] != 0 ? ++calls : -1;
}
CALL(next()))"},
};

class Anchors : public CacheTest, public testing::WithParamInterface<Sample> {};

TEST_P(Anchors, HaveOneAddressInBothForms) {
    const auto package = build(GetParam().file, std::string(kHead) + GetParam().text);
    for (const Forms forms : {Forms::both, Forms::image, Forms::bitcode}) {
        CodeCache cache(options(forms));
        const std::vector<Forms> first = {forms == Forms::bitcode ? Forms::bitcode : Forms::image};
        ASSERT_TRUE(cache.add(arriving(*package, first), false));
        const std::string file = GetParam().file;
        Function* function = cache.find(file.substr(0, file.find('.')) + ":count");
        ASSERT_NE(function, nullptr);
        RanAs ran{};
        for (long expected = 1; expected <= 4; ++expected) {
            EXPECT_EQ(call(cache, *function, &ran), expected)
                << GetParam().what << "; call " << expected << " with forms " << static_cast<int>(forms);
            if (expected == 2) {
                ASSERT_TRUE(cache.add(arriving(*package, {Forms::bitcode}), false));
                cache.slices_added(package->digest());
            }
            cache.wait_for_tiers();
        }
        // An entry that holds labels runs the image's code always.
        const bool holds_labels = file == "entry_labels.cpp" || file == "moved_labels.cpp";
        const bool as_image = forms == Forms::image || (forms == Forms::both && holds_labels);
        EXPECT_EQ(ran, as_image ? RanAs::image : RanAs::bitcode) << file << " with forms " << static_cast<int>(forms);
    }
}

// The interface's own functions go on with the variable that others were linked to.
TEST_F(CacheTest, AnInterfaceHasItsVariablesOnceInBothForms) {
    const auto package = build("shelf.c",
                               "long level = 40;\n"
                               "ROVE_ENTRY void count(rove_here *h, const void *p, size_t n) { *(long *)p = ++level; "
                               "(void)h, (void)n; }",
                               true);
    const auto user = build("user.c",
                            "extern long level; ROVE_ENTRY void count(rove_here *h, const void *p, size_t n) "
                            "{ *(long *)p = ++level; (void)h, (void)n; }");
    CodeCache cache(options());
    ASSERT_TRUE(cache.add(arriving(*package, {Forms::image}), false));
    ASSERT_TRUE(cache.load_interface(cache.package(package->digest())));
    ASSERT_TRUE(cache.add(user, false));
    Function *shelf = cache.find("shelf:count"), *other = cache.find("user:count");
    RanAs ran{};
    EXPECT_EQ(call(cache, *shelf, &ran), 41);
    EXPECT_EQ(ran, RanAs::image);
    EXPECT_EQ(call(cache, *other), 42);
    ASSERT_TRUE(cache.add(arriving(*package, {Forms::bitcode}), false));
    cache.slices_added(package->digest());
    cache.wait_for_tiers();
    EXPECT_EQ(call(cache, *shelf, &ran), 43);
    EXPECT_EQ(ran, RanAs::bitcode);
    EXPECT_EQ(call(cache, *other), 44);
}

INSTANTIATE_TEST_SUITE_P(, Anchors, testing::ValuesIn(kSamples), [](const auto& each) {
    const std::string file = each.param.file;
    return file.substr(0, file.find('.'));
});

}  // namespace
}  // namespace rove::code
