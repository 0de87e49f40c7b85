// Every kind of argument and result, of every size, sent there and back; and bytes that contradict themselves.
#include <chrono>
#include <complex>
#include <filesystem>
#include <limits>
#include <numeric>
#include <system_error>
#include <thread>

#include "nodes.hpp"
#include "travelled.hpp"

namespace rove::test {

template <typename T>
T echo(T value) {
    return value;
}

enum class Colour : std::uint8_t { red, green };
struct Point {
    double x = 0, y = 0;
    bool operator==(const Point&) const = default;
};
struct alignas(32) Wide {
    std::array<double, 4> lanes{};
    bool operator==(const Wide&) const = default;
};
struct Empty {
    bool operator==(const Empty&) const = default;
};
struct WithoutDefault {
    explicit WithoutDefault(int n) : number(n) {}
    int number;
    bool operator==(const WithoutDefault&) const = default;
};
struct Person {
    std::string name;
    std::vector<Point> places;
    std::optional<int> age;
    bool operator==(const Person&) const = default;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(name, places, age);
    }
};
struct Tree {
    int value = 0;
    std::vector<Tree> children;
    bool operator==(const Tree&) const = default;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(value, children);
    }
};
class Matrix {  // travels as another type
public:
    Matrix() = default;
    Matrix(std::size_t rows, std::vector<float> cells) : rows_(rows), cells_(std::move(cells)) {}
    [[nodiscard]] std::size_t rows() const { return rows_; }
    [[nodiscard]] const std::vector<float>& cells() const { return cells_; }
    bool operator==(const Matrix&) const = default;

private:
    std::size_t rows_ = 0;
    std::vector<float> cells_;
};
union Bits {  // its bytes travel because we say so
    float number;
    std::uint32_t bits;
};

struct Angle {
    int degrees;
};

}  // namespace rove::test

template <>
struct rove::migratable<rove::test::Matrix> {
    using wire = std::pair<std::uint64_t, std::vector<float>>;
    static wire pack(const rove::test::Matrix& matrix) { return {matrix.rows(), matrix.cells()}; }
    static rove::test::Matrix unpack(wire&& wire) { return {wire.first, std::move(wire.second)}; }
};
// A specialisation for a vector of plain values has the last word, too.
template <>
struct rove::migratable<std::vector<rove::test::Angle>> {
    using wire = std::string;
    static wire pack(const std::vector<rove::test::Angle>& angles) { return std::string(angles.size(), 'a'); }
    static std::vector<rove::test::Angle> unpack(wire&& wire) { return {wire.size(), rove::test::Angle{42}}; }
};
// As docs/cpp.md shows it.
template <>
struct rove::migratable<std::filesystem::path> {
    using wire = std::string;
    static wire pack(const std::filesystem::path& path) { return path.string(); }
    static std::filesystem::path unpack(wire&& text) { return std::move(text); }
};
// A program may know better than Rove what these mean in another process of its own.
template <>
struct rove::migratable<std::thread::id> {
    static constexpr bool safe = true;
};
template <>
struct rove::migratable<std::error_code> {
    using wire = int;
    static wire pack(const std::error_code& code) { return code.value(); }
    static std::error_code unpack(wire&& value) { return {value, std::system_category()}; }
};
template <>
struct rove::migratable<rove::test::Bits> {
    static constexpr bool safe = true;
};

namespace rove::test {

class Types : public OnFabrics {
protected:
    template <typename T>
    void there_and_back(const T& value) {
        const T back = peer().sync(fn<echo<T>>, value);
        EXPECT_TRUE(back == value) << typeid(T).name();
        ++count_;
    }
    int count_ = 0;
};
ROVE_ON_FABRICS(Types);

TEST_P(Types, AVectorTravelsAsItsSpecialisationSays) {
    const auto first = [](const std::vector<Angle>& angles) { return angles.at(0).degrees; };
    EXPECT_EQ(peer().sync(first, std::vector<Angle>{{1}, {2}}), 42);
    EXPECT_EQ(
        peer().sync([](int count) { return std::vector<Angle>(static_cast<std::size_t>(count)); }, 3).at(2).degrees,
        42);
}

// Values that cannot be assigned.
struct Fixed {
    const int value;
};

TEST_P(Types, AVectorOfWhatCannotBeAssignedTravels) {
    EXPECT_EQ(
        peer().sync([](const std::vector<Fixed>& values) { return values.at(1).value; }, std::vector<Fixed>{{1}, {2}}),
        2);
    const std::vector<Fixed> many(200'000, Fixed{7});
    for (int i = 0; i < 5; ++i)
        EXPECT_EQ(peer().sync([](const std::vector<Fixed>& values) { return values.back().value; }, many), 7);
}

TEST_P(Types, AllTravelThereAndBack) {
    there_and_back(true);
    there_and_back('c');
    there_and_back(std::int8_t{-8});
    there_and_back(std::uint8_t{8});
    there_and_back(std::int16_t{-16});
    there_and_back(std::uint16_t{16});
    there_and_back(-32);
    there_and_back(32U);
    there_and_back(std::numeric_limits<std::int64_t>::min());
    there_and_back(std::numeric_limits<std::uint64_t>::max());
    there_and_back(1.5F);
    there_and_back(-2.25);
    there_and_back(static_cast<long double>(3.125));
    there_and_back(L'w');
    there_and_back(u'u');
    there_and_back(std::byte{7});
    there_and_back(Colour::green);
    there_and_back(std::array<int, 3>{1, 2, 3});
    there_and_back(std::array<std::string, 2>{"a", "b"});
    there_and_back(Point{1, 2});
    there_and_back(Wide{{1, 2, 3, 4}});
    there_and_back(Empty{});
    there_and_back(WithoutDefault(4));
    there_and_back(std::complex<double>(1, -1));
    there_and_back(std::chrono::milliseconds(17));
    there_and_back(std::string());
    there_and_back(std::string("with a \0 inside", 15));
    there_and_back(std::string(100'000, 'x'));
    there_and_back(std::wstring(L"wide"));
    there_and_back(std::vector<int>{});
    there_and_back(std::vector<int>{1, 2, 3});
    there_and_back(std::vector<bool>{true, false, true});
    there_and_back(std::vector<Point>{{1, 2}, {3, 4}});
    there_and_back(std::vector<std::string>{"", "one", "two"});
    there_and_back(std::vector<std::vector<std::vector<int>>>{{{1}, {2, 3}}, {}, {{}}});
    there_and_back(std::deque<int>{1, 2});
    there_and_back(std::list<std::string>{"a", "b"});
    there_and_back(std::optional<std::string>{});
    there_and_back(std::optional<std::string>{"here"});
    there_and_back(std::optional<int>{3});
    there_and_back(std::variant<int, std::string, Point>{std::string("second")});
    there_and_back(std::variant<int, std::string, Point>{Point{5, 6}});
    there_and_back(std::pair<int, std::string>{1, "one"});
    there_and_back(std::tuple<int, double, std::string, std::vector<int>>{1, 2.5, "three", {4, 5}});
    there_and_back(std::tuple<>{});
    there_and_back(std::map<std::string, int>{{"a", 1}, {"b", 2}});
    there_and_back(std::map<int, std::map<int, std::string>>{{1, {{2, "x"}}}});
    there_and_back(std::multimap<int, int>{{1, 1}, {1, 2}});
    there_and_back(std::unordered_map<std::string, Point>{{"p", {1, 2}}});
    there_and_back(std::set<std::string>{"x", "y"});
    there_and_back(std::unordered_set<int>{1, 2, 3});
    there_and_back(Person{"Ada", {{1, 2}}, 36});
    there_and_back(std::vector<Person>{{"Ada", {}, {}}, {"Bo", {{3, 4}}, 1}});
    there_and_back(Tree{1, {{2, {}}, {3, {{4, {}}}}}});
    there_and_back(Matrix(2, {1, 2, 3, 4}));
    there_and_back(std::map<int, Matrix>{{1, Matrix(1, {9})}});
    there_and_back(std::filesystem::path("/tmp/one two"));
    there_and_back(std::map<int, std::filesystem::path>{{1, "a"}, {2, "b/c"}});
    there_and_back(std::vector<std::error_code>{{2, std::system_category()}});
    there_and_back(std::this_thread::get_id());
    EXPECT_GE(count_, 40);

    EXPECT_EQ(peer().sync(fn<echo<Bits>>, Bits{.number = 1.0F}).bits, 0x3F80'0000U);
    const auto pointer = peer().sync(
        [](std::unique_ptr<Person> person) {
            if (person) person->name += "!";
            return person;
        },
        std::make_unique<Person>(Person{"Ada", {}, {}}));
    ASSERT_TRUE(pointer);
    EXPECT_EQ(pointer->name, "Ada!");
    EXPECT_FALSE(peer().sync([](std::unique_ptr<Person> person) { return person; }, std::unique_ptr<Person>()));
}

// Its load() forgets a member.
struct Forgetful {
    std::string first = "first", second = "second";
    template <typename Archive>
    void save(Archive& archive) const {
        archive(first, second);
    }
    template <typename Archive>
    void load(Archive& archive) {
        archive(first);
    }
};
std::string next_to(const Forgetful&, const std::string& next) {
    return next;
}
Forgetful give_forgetful() {
    return {};
}
TEST_P(Types, WhatIsNotReadIsNotTakenForTheNextArgument) {
    for (const Error& error : {error_of([&] { (void)peer().sync(fn<next_to>, Forgetful{}, "next"); }),
                               error_of([&] { (void)peer().sync(fn<give_forgetful>); })}) {
        EXPECT_EQ(error.code(), ErrorCode::invalid) << error.message();
        EXPECT_NE(error.message().find("more bytes came"), std::string::npos) << error.message();
    }
}

TEST_P(Types, ViewsAreNotCopied) {
    const std::vector<double> numbers{1, 2, 3};
    const auto aligned = [](std::span<const double> view, char, std::string_view text, std::span<const double> second) {
        return reinterpret_cast<std::uintptr_t>(view.data()) % alignof(double) == 0 &&
               reinterpret_cast<std::uintptr_t>(second.data()) % alignof(double) == 0 && view[2] == 3 &&
               text == "abc" && second.size() == 3;
    };
    EXPECT_TRUE(peer().sync(aligned, numbers, 'x', "abc", numbers));
    EXPECT_EQ(peer().sync([](std::span<const double> view) { return view.size(); }, std::vector<double>{}), 0U);
    EXPECT_EQ(peer().sync([](std::string_view text) { return std::string(text); }, "view"), "view");
}

TEST_P(Types, ConversionsAreTheCallers) {
    EXPECT_EQ(peer().sync(fn<echo<double>>, 1), 1.0);
    EXPECT_EQ(peer().sync(fn<echo<std::string>>, "literal"), "literal");
    EXPECT_EQ(peer().sync(fn<echo<std::int64_t>>, std::int32_t{-1}), -1);
    EXPECT_EQ(peer().sync(fn<echo<std::optional<int>>>, 3), 3);
    EXPECT_EQ(peer().sync([](const auto& text) { return text + "!"; }, "generic"), "generic!");
}

TEST_P(Types, SizesFromNothingToSixteenMebibytes) {
    for (const std::size_t size : {0UL, 1UL, 31UL, 32UL, 33UL, 1000UL, 65'536UL, 261'000UL, 261'120UL, 262'144UL,
                                   1'000'003UL, 16UL * 1024 * 1024}) {
        std::vector<std::uint8_t> bytes(size);
        std::iota(bytes.begin(), bytes.end(), static_cast<std::uint8_t>(size));
        EXPECT_TRUE(peer().sync(fn<echo<std::vector<std::uint8_t>>>, bytes) == bytes) << size;
    }
    const Error error =
        error_of([&] { (void)peer().sync(fn<echo<std::vector<char>>>, std::vector<char>(40'000'000)); });
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_NE(error.message().find("buffer"), std::string::npos) << error.message();
    const Error result =
        error_of([&] { (void)peer().sync([](std::size_t n) { return std::vector<char>(n); }, 40'000'000UL); });
    EXPECT_EQ(result.code(), ErrorCode::invalid);
    EXPECT_NE(result.message().find("Buffer"), std::string::npos) << result.message();
}

TEST_P(Types, LargeOnesFromSeveralThreads) {
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
            const std::vector<int> data(700'000 + static_cast<std::size_t>(t), t);
            for (int i = 0; i < 3; ++i) wrong += peer().sync(fn<echo<std::vector<int>>>, data) == data ? 0 : 1;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

// ---- without a node: what bytes may claim

TEST(Travel, EndsTooEarlyIsAnError) {
    const Person person{"Ada Lovelace", {{1, 2}, {3, 4}}, 36};
    const std::vector<std::byte> whole = bytes_of(person);
    EXPECT_EQ(value_of<Person>(whole), person);
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_EQ(error_of([&] {
                      (void)value_of<Person>({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
                  }).code(),
                  ErrorCode::invalid)
            << size;
}

TEST(Travel, SizesAreBoundedByTheBytesThatAreLeft) {
    for (const std::uint64_t size :
         {std::uint64_t{5000}, std::uint64_t{1} << 32U, ~std::uint64_t{0}, ~std::uint64_t{0} / 8}) {
        std::vector<std::byte> lie(16);
        std::memcpy(lie.data(), &size, sizeof size);
        EXPECT_THROW((void)value_of<std::string>(lie), Error);
        EXPECT_THROW((void)value_of<std::vector<double>>(lie), Error);
        EXPECT_THROW((void)value_of<std::vector<std::string>>(lie), Error);
        EXPECT_THROW((void)(value_of<std::map<int, int>>(lie)), Error);
        std::vector<std::byte> behind(4);
        behind.insert(behind.end(), lie.begin(), lie.end());
        EXPECT_THROW((void)value_of<Tree>(behind), Error);
        behind.insert(behind.begin(), 4, std::byte{0});
        EXPECT_THROW((void)value_of<Matrix>(behind), Error);
    }
}

// A member whose own members are hidden counts with its size, and the schema covers the members after it.
struct Shown {
    constexpr explicit Shown(long first) : hidden_(first) {}

private:
    [[maybe_unused]] long hidden_;
};
template <typename First, typename Second>
struct Two {
    First first;
    Second second;
};
TEST(Travel, MembersAfterOneThatShowsNothingAreLookedAt) {
    using std::chrono::seconds;
    EXPECT_NE((detail::schema_of<Two<seconds, float>>()), (detail::schema_of<Two<seconds, int>>()));
    EXPECT_NE((detail::schema_of<Two<Shown, float>>()), (detail::schema_of<Two<Shown, int>>()));
    EXPECT_NE((detail::schema_of<Two<__int128, float>>()), (detail::schema_of<Two<__int128, int>>()));
    EXPECT_NE((detail::schema_of<Two<seconds, Two<Shown, float>>>()),
              (detail::schema_of<Two<seconds, Two<Shown, int>>>()));
    // By its size alone, also where that of the whole is the same.
    EXPECT_EQ((detail::schema_of<Two<seconds, float>>()), (detail::schema_of<Two<Shown, float>>()));
    EXPECT_NE((detail::schema_of<Two<std::chrono::duration<int>, double>>()),
              (detail::schema_of<Two<seconds, double>>()));
}

#ifdef __FLT16_MANT_DIG__
TEST_P(Types, NumbersOfSixteenBitsTravelAsOthers) {
    const auto half = [](_Float16 number) { return static_cast<_Float16>(number / 2); };
    EXPECT_TRUE(peer().sync(half, static_cast<_Float16>(3)) == static_cast<_Float16>(1.5));
    there_and_back(std::vector<_Float16>{1, -2, 3});
    there_and_back(std::array<_Float16, 2>{1, -2});
    there_and_back(std::optional<_Float16>(2));
    const auto sum = [](std::span<const _Float16> numbers) {
        float all = 0;
        for (const _Float16 each : numbers) all += static_cast<float>(each);
        return all;
    };
    EXPECT_EQ(peer().sync(sum, std::vector<_Float16>{1, 2, 4}), 7);
    const Buffer<_Float16> buffer = peer().allocate<_Float16>(3).get();
    peer().put(std::vector<_Float16>{2, 4, 8}, buffer).get();
    EXPECT_EQ(peer().sync(sum, buffer), 14);
    std::vector<_Float16> back(3);
    peer().get(buffer, back).get();
    EXPECT_TRUE((back == std::vector<_Float16>{2, 4, 8}));
}
static_assert(detail::travel::Bitwise<const _Float16>);
#ifdef ROVE_HAS_BF16
TEST(Travel, NumbersOfSixteenBitsDiffer) {
    EXPECT_NE(detail::schema_of<__bf16>(), detail::schema_of<_Float16>());
    EXPECT_NE(detail::schema_of<_Float16>(), detail::schema_of<short>());
    EXPECT_NE(detail::schema_of<_Float16>(), detail::schema_of<unsigned short>());
    EXPECT_NE((detail::schema_of<Two<_Float16, int>>()), (detail::schema_of<Two<short, int>>()));
    EXPECT_TRUE(detail::travel::Travels<std::vector<__bf16>>);
}
#endif
#endif

static_assert(detail::travel::Travels<int> && detail::travel::Travels<std::vector<Person>> &&
              detail::travel::Travels<std::unique_ptr<Point>>);
static_assert(!detail::travel::Travels<int*> && !detail::travel::Travels<std::vector<int*>> &&
              !detail::travel::Travels<int&>);
static_assert(!detail::travel::Travels<std::optional<const char*>> && !detail::travel::Travels<std::pair<int, void*>>);
struct PointsSomewhere {
    int* where;
};
static_assert(!detail::travel::Travels<PointsSomewhere> && !detail::travel::Travels<std::array<PointsSomewhere, 2>>);

}  // namespace rove::test
