// Types that are derived from others that can be serialised: what they lose, and what is taken for them.
#include <gtest/gtest.h>

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_set>
#include <variant>
#include <vector>

#include "rove/detail/schema.hpp"
#include "rove/detail/travel.hpp"
#include "travelled.hpp"

namespace rove::test {
namespace {

struct Point {
    double x = 0, y = 0;
};
struct Serialised {  // by a member
    std::string text;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(text);
    }
};
struct Saved {  // by two
    std::string text;
    template <typename Archive>
    void save(Archive& archive) const {
        archive(text);
    }
    template <typename Archive>
    void load(Archive& archive) {
        archive(text);
    }
};
struct Minimal {  // as another value
    std::string text;
    template <typename Archive>
    [[nodiscard]] std::string save_minimal(const Archive& /*archive*/) const {
        return text;
    }
    template <typename Archive>
    void load_minimal(const Archive& /*archive*/, const std::string& value) {
        text = value;
    }
};
struct Outside {  // by a function
    std::string text;
};
template <typename Archive>
void serialize(Archive& archive, Outside& value) {
    archive(value.text);
}
struct Versioned {  // by a function that is told a version
    std::string text;
};
template <typename Archive>
void serialize(Archive& archive, Versioned& value, std::uint32_t /*version*/) {
    archive(value.text);
}

template <typename Base>
struct With : Base {
    int number = 0;
};
template <typename Base>
struct Only : Base {
    using Base::Base;
};
template <typename Base>
struct WithBoth : Base {
    int number = 0;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(cereal::base_class<Base>(this), number);
    }
};
struct OutsideToo : Outside {
    int number = 0;
};
template <typename Archive>
void serialize(Archive& archive, OutsideToo& value) {
    archive(static_cast<Outside&>(value), value.number);
}
struct Chosen : std::vector<int> {
    int number = 0;
};
template <typename Archive>
void save(Archive& archive, const Chosen& value) {
    archive(static_cast<const std::vector<int>&>(value), value.number);
}
template <typename Archive>
void load(Archive& archive, Chosen& value) {
    archive(static_cast<std::vector<int>&>(value), value.number);
}
template <typename T>
concept Numbered = requires(T value) { value.its_number; };
template <typename Archive, Numbered T>
void serialize(Archive& archive, T& value) {
    archive(value.its_number);
}
struct ByConcept : Point {
    std::string more;
    int its_number = 0;
};
struct TailRoom {  // its last bytes have room for another's members
    std::string text;
    char narrow = 0;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(text, narrow);
    }
};
struct InTheTail : TailRoom {
    char more = 0;
};

template <typename Derived>
struct Visited {  // NOLINT(bugprone-crtp-constructor-accessibility): with a private one nothing of it were an aggregate
    template <typename Archive>
    void serialize(Archive& archive) {
        static_cast<Derived*>(this)->visit(archive);
    }
};
struct VisitedToo : Visited<VisitedToo> {
    std::string text;
    int number = 0;
    template <typename Archive>
    void visit(Archive& archive) {
        archive(text, number);
    }
};
class Private {
    friend class cereal::access;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(text_);
    }
    std::string text_;
};

using travel_types = std::tuple<Serialised, Saved, Minimal, Outside, Versioned, std::string, std::vector<int>,
                                std::deque<int>, std::list<int>, std::map<int, int>, std::unordered_set<int>,
                                std::optional<std::string>, std::pair<int, std::string>, std::tuple<int, std::string>,
                                std::variant<int, std::string>, std::array<std::string, 2>, std::shared_ptr<int>>;

template <typename Base>
void expect_what_is_derived_to_lose_what_it_has() {
    SCOPED_TRACE(typeid(Base).name());
    EXPECT_FALSE(detail::travel::loses_its_own<Base>());
    EXPECT_FALSE(detail::travel::loses_its_own<Only<Base>>()) << "it has no members of its own";
    EXPECT_TRUE(detail::travel::loses_its_own<With<Base>>());
    EXPECT_TRUE(detail::travel::loses_its_own<Only<With<Base>>>());
}

struct alignas(2048) Wide {  // has more room at its end than the compiler follows templates
    std::string text;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(text);
    }
};
struct Json : std::map<std::string, std::vector<Json>> {};
struct Row;
struct Table : std::vector<Row> {};
struct Row : std::map<std::string, Table> {};

TEST(Travel, TypesMayHoldThemselves) {
    Json json;
    json["a"].resize(2);
    json["a"][1]["b"];
    EXPECT_FALSE((detail::travel::is_within<detail::travel::LacksBeginning, Json>()));
    EXPECT_EQ(value_of<Json>(bytes_of(json)), json);
    Table table;
    table.resize(1);
    table[0]["c"].resize(3);
    EXPECT_FALSE((detail::travel::is_within<detail::travel::LacksBeginning, Table>()));
    EXPECT_EQ(value_of<Table>(bytes_of(table))[0].at("c").size(), 3U);
}

TEST(Travel, TypesThatAreSerialisedAsTheirBaseAreKnown) {
    [&]<typename... Bases>(const std::tuple<Bases...>* /*bases*/) {
        (expect_what_is_derived_to_lose_what_it_has<Bases>(), ...);
    }(static_cast<const travel_types*>(nullptr));
    EXPECT_TRUE(detail::travel::loses_its_own<InTheTail>());
    EXPECT_TRUE(detail::travel::loses_its_own<With<Wide>>());
    EXPECT_FALSE(detail::travel::loses_its_own<Only<Wide>>());
    EXPECT_FALSE(detail::travel::loses_its_own<Only<TailRoom>>());
}

TEST(Travel, TypesThatAreSerialisedThemselvesLoseNothing) {
    EXPECT_FALSE(detail::travel::loses_its_own<WithBoth<Serialised>>());
    EXPECT_FALSE(detail::travel::loses_its_own<Only<WithBoth<Outside>>>());
    EXPECT_FALSE(detail::travel::loses_its_own<OutsideToo>());
    EXPECT_FALSE(detail::travel::loses_its_own<Chosen>());
    EXPECT_FALSE(detail::travel::loses_its_own<ByConcept>());
    EXPECT_FALSE(detail::travel::loses_its_own<VisitedToo>());
    EXPECT_FALSE(detail::travel::loses_its_own<Private>());
    EXPECT_FALSE(detail::travel::loses_its_own<Point>());
    EXPECT_FALSE(detail::travel::loses_its_own<std::weak_ptr<int>>());

    WithBoth<Serialised> both;
    both.text = "text";
    both.number = 7;
    const auto back = value_of<WithBoth<Serialised>>(bytes_of(both));
    EXPECT_EQ(back.text, "text");
    EXPECT_EQ(back.number, 7);
    Only<std::string> named("a name");
    EXPECT_EQ(value_of<Only<std::string>>(bytes_of(named)), "a name");
}

template <typename Base>
struct WithSaveAndLoad : Base {
    int number = 0;
    template <typename Archive>
    void save(Archive& archive) const {
        archive(cereal::base_class<Base>(this), number);
    }
    template <typename Archive>
    void load(Archive& archive) {
        archive(cereal::base_class<Base>(this), number);
    }
};
template <typename Base>
struct AsNumber : Base {
    int number = 0;
    template <typename Archive>
    [[nodiscard]] int save_minimal(const Archive& /*archive*/) const {
        return number;
    }
    template <typename Archive>
    void load_minimal(const Archive& /*archive*/, const int& value) {
        number = value;
    }
};
template <typename Base>
struct WithVersion : Base {
    int number = 0;
    template <typename Archive>
    void serialize(Archive& archive, std::uint32_t /*version*/) {
        archive(cereal::base_class<Base>(this), number);
    }
};
struct SaysSo : std::string {
    int number = 0;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(cereal::base_class<std::string>(this), number);
    }
};

}  // namespace
}  // namespace rove::test
CEREAL_SPECIALIZE_FOR_ALL_ARCHIVES(rove::test::SaysSo, cereal::specialization::member_serialize)
namespace rove::test {
namespace {

template <typename T>
void expect_number_arrives() {
    SCOPED_TRACE(typeid(T).name());
    T sent;
    sent.number = 7;
    EXPECT_TRUE(detail::travel::Travels<T>);
    EXPECT_FALSE(detail::travel::loses_its_own<T>());
    EXPECT_EQ(value_of<T>(bytes_of(sent)).number, 7);
    EXPECT_EQ(value_of<std::vector<T>>(bytes_of(std::vector<T>(2, sent))).at(1).number, 7);
}

TEST(Travel, MembersOfATypesOwnAreTakenBeforeItsBases) {
    [&]<typename... Bases>(const std::tuple<Bases...>* /*bases*/) {
        (expect_number_arrives<WithBoth<Bases>>(), ...);
        (expect_number_arrives<WithSaveAndLoad<Bases>>(), ...);
        (expect_number_arrives<WithVersion<Bases>>(), ...);
        (expect_number_arrives<AsNumber<Bases>>(), ...);
    }(static_cast<const travel_types*>(nullptr));
    expect_number_arrives<SaysSo>();
    expect_number_arrives<Chosen>();
    WithBoth<std::string> path;
    path.assign("a name");
    EXPECT_EQ(value_of<WithBoth<std::string>>(bytes_of(path)), "a name");
    EXPECT_NE(detail::schema_of<WithBoth<std::string>>(), detail::schema_of<std::string>());
}

}  // namespace
}  // namespace rove::test
