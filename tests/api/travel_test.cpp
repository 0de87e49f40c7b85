// Reading arguments and results: whatever their bytes are, it ends with a value or with one of Rove's errors.
#include "rove/detail/travel.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <functional>
#include <random>

#include "error_of.hpp"
#include "rove/detail/schema.hpp"
#include "travelled.hpp"

namespace rove::test {
namespace {

struct Chain {  // one holds the next
    int value = 0;
    std::unique_ptr<Chain> next;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(value, next);
    }
};
struct SharedChain {
    int value = 0;
    std::shared_ptr<SharedChain> next;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(value, next);
    }
};
struct Tree {
    int value = 0;
    std::vector<Tree> children;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(value, children);
    }
};
struct Point {
    double x = 0, y = 0;
    auto operator<=>(const Point&) const = default;
};
struct Person {
    std::string name;
    std::vector<Point> places;
    std::optional<int> age;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(name, places, age);
    }
};

Chain chain_of(int length) {
    Chain first;
    for (int i = 1; i < length; ++i) {
        auto next = std::make_unique<Chain>();
        next->next = std::move(first.next);
        first.next = std::move(next);
    }
    return first;
}

// The bytes that a hostile peer writes: `levels` objects, each of which announces another one within it.
std::vector<std::byte> deep(std::size_t levels, std::initializer_list<std::uint8_t> level) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < levels; ++i)
        for (const std::uint8_t each : level) bytes.push_back(std::byte{each});
    return bytes;
}

TEST(Travel, HoldsValuesInValuesUpToALimit) {
    // The Chain itself, and for each further one its pointer and itself.
    constexpr int kLongest = static_cast<int>((kValueDepthMax - 1) / 2 + 1);
    const Chain back = value_of<Chain>(bytes_of(chain_of(kLongest)));
    int count = 0;
    for (const Chain* at = &back; at != nullptr; at = at->next.get()) ++count;
    EXPECT_EQ(count, kLongest);

    const Error error = error_of([] { (void)bytes_of(chain_of(kLongest + 1)); });
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_NE(error.message().find(std::to_string(kValueDepthMax)), std::string::npos) << error.message();
}

TEST(Travel, BytesThatNestDeeperThanThatAreAnError) {
    constexpr std::size_t kLevels = 60'000;
    const auto expect_limit = [](const std::function<void()>& read) {
        const Error error = error_of(read);
        EXPECT_EQ(error.code(), ErrorCode::invalid);
        EXPECT_NE(error.message().find("deep"), std::string::npos) << error.message();
    };
    // value, "there is one"
    expect_limit([] { (void)value_of<Chain>(deep(kLevels, {7, 0, 0, 0, 1})); });
    // value, one child
    expect_limit([] { (void)value_of<Tree>(deep(kLevels, {7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})); });
    std::vector<std::byte> shared;
    for (std::uint32_t i = 1; i <= kLevels; ++i) {
        const std::uint32_t level[]{7, i | cereal::detail::msb_32bit};
        const auto bytes = std::as_bytes(std::span(level));
        shared.insert(shared.end(), bytes.begin(), bytes.end());
    }
    expect_limit([&] { (void)value_of<SharedChain>(shared); });
}

TEST(Travel, SharedObjectsStaySharedAndOfOneType) {
    using Pair = std::pair<std::shared_ptr<std::string>, std::shared_ptr<std::string>>;
    const auto text = std::make_shared<std::string>("shared");
    const Pair back = value_of<Pair>(bytes_of(Pair{text, text}));
    EXPECT_EQ(*back.first, "shared");
    EXPECT_EQ(back.first, back.second);

    // An object and its first member: one address, two types.
    struct Outer {
        Point first;
    };
    const auto outer = std::make_shared<Outer>(Outer{{1, 2}});
    using Inside = std::pair<std::shared_ptr<Outer>, std::shared_ptr<Point>>;
    const Inside inside = value_of<Inside>(bytes_of(Inside{outer, {outer, &outer->first}}));
    EXPECT_EQ(inside.first->first, (Point{1, 2}));
    EXPECT_EQ(*inside.second, (Point{1, 2}));
}

TEST(Travel, ANumberOfASharedObjectIsGoodForItsTypeOnly) {
    using Numbers = std::pair<std::shared_ptr<std::uint64_t>, std::shared_ptr<std::uint64_t>>;
    using Confused = std::pair<std::shared_ptr<std::uint64_t>, std::shared_ptr<std::string>>;
    const auto chosen = std::make_shared<std::uint64_t>(0x4141'4141'4141'4141U);
    const std::vector<std::byte> bytes = bytes_of(Numbers{chosen, chosen});
    EXPECT_EQ(*value_of<Numbers>(bytes).second, *chosen);
    EXPECT_EQ(error_of([&] { (void)value_of<Confused>(bytes); }).code(), ErrorCode::invalid);
    // One that was never written, one that is written twice.
    for (const std::uint32_t number : {std::uint32_t{9}, std::uint32_t{0x7FFF'FFFF}, std::uint32_t{0x8000'0001}}) {
        std::vector<std::byte> other = bytes;
        std::memcpy(other.data() + 12, &number, sizeof number);
        EXPECT_EQ(error_of([&] { (void)value_of<Numbers>(other); }).code(), ErrorCode::invalid) << number;
    }
}

struct Parent {
    std::shared_ptr<Parent> child;
    std::weak_ptr<Parent> parent;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(child, parent);
    }
};

TEST(Travel, AnObjectThatHoldsItselfIsAnError) {
    // Number 1, whose `next` is number 1: nobody would ever free it.
    std::vector<std::byte> bytes = bytes_of(SharedChain{1, std::make_shared<SharedChain>()});
    const std::uint32_t itself = 1;
    std::memcpy(bytes.data() + bytes.size() - sizeof itself, &itself, sizeof itself);
    EXPECT_EQ(error_of([&] { (void)value_of<SharedChain>(bytes); }).code(), ErrorCode::invalid);

    const auto circle = std::make_shared<SharedChain>();
    circle->next = circle;
    EXPECT_EQ(error_of([&] { (void)bytes_of(circle); }).code(), ErrorCode::invalid);
    circle->next.reset();

    const auto parent = std::make_shared<Parent>();
    parent->child = std::make_shared<Parent>();
    parent->child->parent = parent;
    const auto back = value_of<std::shared_ptr<Parent>>(bytes_of(parent));
    EXPECT_EQ(back->child->parent.lock(), back);
}

TEST(Travel, ABoolIsFalseOrTrue) {
    EXPECT_EQ(static_cast<int>(value_of<bool>({std::byte{0x50}})), 1);
    std::vector<std::byte> bytes = bytes_of(std::vector<bool>{true, false});
    bytes[8] = std::byte{0x7F};
    EXPECT_EQ((value_of<std::vector<bool>>(bytes)), (std::vector<bool>{true, false}));
}

TEST(Travel, WhatCerealFindsWrongIsAnErrorOfRoves) {
    std::vector<std::byte> bytes = bytes_of(std::variant<int, std::string>{std::string("x")});
    bytes[0] = std::byte{7};
    EXPECT_EQ(error_of([&] { (void)value_of<std::variant<int, std::string>>(bytes); }).code(), ErrorCode::invalid);
}

TEST(Travel, WhatIsLargerThanAMessageIsCountedAndNotKept) {
    std::vector<std::byte> bytes;
    detail::travel::Output out(bytes);
    const std::vector<char> piece(1'000'000);
    for (int i = 0; i < 64; ++i) out.write(piece.data(), piece.size());
    EXPECT_FALSE(out.fits());
    EXPECT_EQ(out.size(), 64'000'000U);
    EXPECT_LE(bytes.size(), ROVE_MESSAGE_BYTES_MAX);
}

// ---- random damage

template <typename T>
void damage(const T& value, std::mt19937_64& random) {
    const std::vector<std::byte> whole = bytes_of(value);
    for (int round = 0; round < 300; ++round) {
        std::vector<std::byte> bytes = whole;
        if (!bytes.empty() && random() % 3 == 0) bytes.resize(random() % bytes.size());
        const std::uint64_t flips = random() % 4;
        for (std::uint64_t i = 0; i < flips && !bytes.empty(); ++i)
            bytes[random() % bytes.size()] ^= static_cast<std::byte>(1U << random() % 8);
        if (random() % 4 == 0 && bytes.size() >= 8) {  // a size or number of an attacker's choice
            const std::uint64_t chosen = random() >> random() % 64;
            std::memcpy(bytes.data() + random() % (bytes.size() - 7), &chosen, sizeof chosen);
        }
        try {
            (void)value_of<T>(bytes);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::invalid) << error.message();
        }
    }
}

TEST(Travel, NoDamagedBytesDoHarm) {
    const std::uint64_t seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    RecordProperty("seed", std::to_string(seed));
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    std::mt19937_64 random(seed);
    using std::string;
    damage(true, random);
    damage(std::array<string, 2>{"a", "b"}, random);
    damage(string("text of some length"), random);
    damage(std::wstring(L"wide"), random);
    damage(std::vector<int>{1, 2, 3}, random);
    damage(std::vector<bool>{true, false, true}, random);
    damage(std::vector<Point>{{1, 2}, {3, 4}}, random);
    damage(std::vector<string>{"", "one", "two"}, random);
    damage(std::vector<std::vector<std::vector<int>>>{{{1}, {2, 3}}, {}, {{}}}, random);
    damage(std::deque<int>{1, 2}, random);
    damage(std::list<string>{"a", "b"}, random);
    damage(std::optional<string>{"here"}, random);
    damage(std::variant<int, string, Point>{string("second")}, random);
    damage(std::tuple<int, double, string, std::vector<int>>{1, 2.5, "three", {4, 5}}, random);
    damage(std::map<string, int>{{"a", 1}, {"b", 2}}, random);
    damage(std::map<int, std::map<int, string>>{{1, {{2, "x"}}}}, random);
    damage(std::multimap<int, int>{{1, 1}, {1, 2}}, random);
    damage(std::unordered_map<string, Point>{{"p", {1, 2}}}, random);
    damage(std::set<string>{"x", "y"}, random);
    damage(std::unordered_set<int>{1, 2, 3}, random);
    damage(Person{"Ada", {{1, 2}}, 36}, random);
    damage(std::vector<Person>{{"Ada", {}, {}}, {"Bo", {{3, 4}}, 1}}, random);
    damage(Tree{1, {{2, {}}, {3, {{4, {}}}}}}, random);
    damage(chain_of(20), random);
    const auto shared = std::make_shared<SharedChain>(SharedChain{1, std::make_shared<SharedChain>()});
    damage(std::tuple{shared, shared, std::make_shared<string>("x"), std::make_shared<Point>()}, random);
}

// Takes far more memory than bytes; reading one fails where the bytes say so.
struct Roomy {
    static inline std::size_t made = 0;
    Roomy() { ++made; }
    std::array<char, 256> room{};
    std::string text;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(text);
    }
    bool operator==(const Roomy& other) const { return text == other.text; }
};
struct HashOfRoomy {
    std::size_t operator()(const Roomy& of) const { return std::hash<std::string>()(of.text); }
};

// A count is good for as many elements as can be read, and no memory is taken for others.
template <typename Container>
void expect_read_one_by_one() {
    constexpr std::uint64_t kCount = 100'000;
    std::vector<std::byte> bytes(2 * sizeof kCount + kCount);
    std::memcpy(bytes.data(), &kCount, sizeof kCount);
    const std::uint64_t text_bytes = 2 * kCount;  // of the first one: more than there are
    std::memcpy(bytes.data() + sizeof kCount, &text_bytes, sizeof text_bytes);
    Roomy::made = 0;
    EXPECT_EQ(error_of([&] { (void)value_of<Container>(bytes); }).code(), ErrorCode::invalid);
    EXPECT_LE(Roomy::made, 2U) << "made before they were read";
}

TEST(Travel, ElementsAreMadeAsTheyAreRead) {
    expect_read_one_by_one<std::vector<Roomy>>();
    expect_read_one_by_one<std::deque<Roomy>>();
    expect_read_one_by_one<std::list<Roomy>>();
    expect_read_one_by_one<std::unordered_set<Roomy, HashOfRoomy>>();
}

TEST(Travel, ContainersThatAreReadOneByOneAreWhatWasWritten) {
    const std::vector<std::string> texts{"a", "", std::string(1000, 'x')};
    EXPECT_EQ(value_of<std::vector<std::string>>(bytes_of(texts)), texts);
    const std::deque<std::string> queue(texts.begin(), texts.end());
    EXPECT_EQ(value_of<std::deque<std::string>>(bytes_of(queue)), queue);
    const std::list<std::string> list(texts.begin(), texts.end());
    EXPECT_EQ(value_of<std::list<std::string>>(bytes_of(list)), list);
    const std::unordered_set<std::string> set(texts.begin(), texts.end());
    EXPECT_EQ(value_of<std::unordered_set<std::string>>(bytes_of(set)), set);
    const std::unordered_multiset<int> many{1, 1, 2};
    EXPECT_EQ(value_of<std::unordered_multiset<int>>(bytes_of(many)), many);
    const std::vector<bool> bits{true, false, true};
    EXPECT_EQ(value_of<std::vector<bool>>(bytes_of(bits)), bits);
    const std::vector<std::vector<std::uint32_t>> rows{{1, 2}, {}, {3}};
    EXPECT_EQ(value_of<std::vector<std::vector<std::uint32_t>>>(bytes_of(rows)), rows);
    const std::u16string wide = u"two bytes each";
    EXPECT_EQ(value_of<std::u16string>(bytes_of(wide)), wide);
}

struct ByLowerCase {
    bool operator()(char a, char b) const { return std::tolower(a) < std::tolower(b); }
};
TEST(Travel, ElementsWithEqualKeysKeepTheirOrder) {
    const std::multimap<int, std::string> sent{{1, "b"}, {1, "a"}, {1, "c"}, {0, "z"}, {2, "y"}};
    EXPECT_EQ((value_of<std::multimap<int, std::string>>(bytes_of(sent))), sent);
    const std::multiset<char, ByLowerCase> letters{'b', 'a', 'A', 'B', 'a'};
    EXPECT_EQ((value_of<std::multiset<char, ByLowerCase>>(bytes_of(letters))), letters);
    const std::vector<std::multimap<int, std::multiset<char, ByLowerCase>>> within{
        {{1, {'x'}}, {1, {'B', 'b'}}, {1, {}}}};
    EXPECT_EQ(value_of<std::remove_const_t<decltype(within)>>(bytes_of(within)), within);
}

// Numbers of eight bytes each take eight times what a count by bytes would let them.
struct Deferring {
    std::string text;
    std::shared_ptr<int> later;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(cereal::defer(later), text);
    }
};
TEST(Travel, WhatATypeDefersTravelsLast) {
    const auto back = value_of<Deferring>(bytes_of(Deferring{"text", std::make_shared<int>(7)}));
    EXPECT_EQ(back.text, "text");
    ASSERT_TRUE(back.later);
    EXPECT_EQ(*back.later, 7);
}
// An empty class may lie where its neighbour does.
TEST(Travel, AnEmptyClassLeavesItsNeighbourAsItIs) {
    const std::tuple<std::string, std::monostate> sent{"a text that is long enough to be on the heap", {}};
    EXPECT_EQ(value_of<std::remove_const_t<decltype(sent)>>(bytes_of(sent)), sent);
}
TEST(Travel, PointersToConstantsTravel) {
    EXPECT_EQ(*value_of<std::shared_ptr<const int>>(bytes_of(std::make_shared<const int>(7))), 7);
    EXPECT_TRUE(detail::travel::Travels<std::shared_ptr<const std::string>>);
}

struct Owned : std::enable_shared_from_this<Owned> {
    int value = 3;
    std::string text;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(value, text);
    }
};
struct Named {
    std::string name;

protected:
    Named() = default;
    Named(const Named&) = default;
    ~Named() = default;
};
struct Labelled : Named {
    int number = 0;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(name, number);
    }
};
TEST(Travel, BasesMayHaveProtectedConstructorsAndDestructors) {
    Owned owned;
    owned.value = 4;
    EXPECT_EQ(value_of<Owned>(bytes_of(owned)).value, 4);
    EXPECT_EQ(value_of<std::shared_ptr<Owned>>(bytes_of(std::make_shared<Owned>(owned)))->shared_from_this()->value, 4);
    Labelled labelled;
    labelled.name = "seven";
    const Labelled back = value_of<std::optional<Labelled>>(bytes_of(std::optional(labelled))).value();
    EXPECT_EQ(back.name, "seven");
    EXPECT_NE(detail::schema_of<Owned>(), detail::schema_of<Labelled>());
    EXPECT_NE(detail::schema_of<std::shared_ptr<Owned>>(), 0U);
}

TEST(Travel, NumbersAreCountedByTheirBytes) {
    std::vector<std::byte> bytes(2 * sizeof(std::uint64_t) + 1000);
    const std::uint64_t one = 1, count = 1000;
    std::memcpy(bytes.data(), &one, sizeof one);
    std::memcpy(bytes.data() + sizeof one, &count, sizeof count);
    EXPECT_EQ(error_of([&] { (void)value_of<std::vector<std::vector<double>>>(bytes); }).code(), ErrorCode::invalid);
    EXPECT_EQ(error_of([&] { (void)value_of<std::vector<std::u32string>>(bytes); }).code(), ErrorCode::invalid);
}

}  // namespace
}  // namespace rove::test
