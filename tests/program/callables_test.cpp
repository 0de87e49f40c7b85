// The functions of a program, enrolled by hand as the templates of rove/detail/offload.hpp do, and the way to their packages.
#include "program/callables.hpp"

#include <gtest/gtest.h>

#include <array>
#include <typeinfo>

#include "../node/some_package.hpp"
#include "package/bundle.hpp"
#include "package/digest.hpp"
#include "rove/detail/offload.hpp"

namespace rove::test {

struct KnownEverywhere {};  // a function's type that all files know

namespace {

using detail::Callable;
using detail::callable_of;
using detail::resident_of_entry;
using detail::TypeFacts;

struct KnownHere {};  // one that only this file knows

// A function of its own for each number. They are never called.
template <int kNumber>
void code(rove_here* /*here*/, const void* /*payload*/, std::size_t /*size*/) {
    ADD_FAILURE() << kNumber;
}

template <typename Tag>
const Callable& enrol(rove_code code, const char* name, const char* source,
                      std::array<TypeFacts, 2> types = {{{&typeid(int), 4, 4, 0}, {&typeid(double), 8, 8, 0}}}) {
    return detail::add_callable({.tag = &typeid(Tag),
                                 .function = &typeid(Tag),
                                 .name = name,
                                 .source = source,
                                 .code = code,
                                 .types = types.data(),
                                 .type_count = types.size()});
}

TEST(Callables, AFunctionIsFoundByItsCodeAndByItsNamesInPackages) {
    EXPECT_EQ(callable_of(&code<0>), nullptr);
    const Callable& first = enrol<KnownHere>(&code<0>, nullptr, "src/first.cpp");
    EXPECT_EQ(callable_of(&code<0>), &first);
    EXPECT_EQ(callable_of(&code<1>), nullptr);
    const std::string entry = Bundle::entry_of(first.key);
    for (const std::string& name : {entry, entry + ".readable", Bundle::entry_of(Bundle::without_file(first.key))}) {
        const Resident* const found = resident_of_entry(name);
        ASSERT_NE(found, nullptr) << name;
        EXPECT_EQ(found->id, first.resident);
        EXPECT_EQ(found->signature, "int (double)");
    }
    EXPECT_EQ(resident_of_entry("nothing"), nullptr);
    EXPECT_EQ(Residents::find(first.resident), resident_of_entry(entry));
}

TEST(Callables, FunctionsOfOneNameInTwoFilesAreTwo) {
    struct OfTwo {};
    const Callable& one = enrol<OfTwo>(&code<2>, nullptr, "src/one.cpp");
    const Callable& two = enrol<OfTwo>(&code<3>, nullptr, "src/two.cpp");
    EXPECT_NE(one.resident, two.resident);
    EXPECT_EQ(callable_of(&code<2>), &one);
    EXPECT_EQ(callable_of(&code<3>), &two);
    EXPECT_EQ(resident_of_entry(Bundle::entry_of(one.key))->id, one.resident);
    EXPECT_EQ(resident_of_entry(Bundle::entry_of(two.key))->id, two.resident);
}

TEST(Callables, TheIdOfANamedFunctionIsMadeOfItsNameAndItsTypes) {
    const Callable& named = enrol<KnownEverywhere>(&code<4>, "shop.price", "src/shop.cpp");
    EXPECT_EQ(named.name, "shop.price");
    EXPECT_EQ(named.resident, resident_id({"named", "shop.price",
                                           std::string(typeid(int).name()) + ' ' + typeid(double).name() + ' '}));
}

TEST(Callables, TheSchemaDependsOnTheSizeOfEachType) {
    const auto schema_of = [](rove_code code, const char* name, std::size_t bytes, std::uint32_t members) {
        return enrol<KnownEverywhere>(code, name, "src/shop.cpp",
                                      {{{&typeid(int), 4, 4, 0}, {&typeid(double), bytes, 8, members}}})
            .schema;
    };
    const std::uint32_t schema = schema_of(&code<5>, "schema.a", 8, 0);
    EXPECT_EQ(schema_of(&code<6>, "schema.b", 8, 0), schema);
    EXPECT_NE(schema_of(&code<7>, "schema.c", 16, 0), schema);
    EXPECT_NE(schema_of(&code<8>, "schema.d", 8, 1), schema);
}

TEST(Callables, TheReasonWhyAFunctionDoesNotTravelIsFoundOnce) {
    const Callable& here = enrol<KnownEverywhere>(&code<9>, "stays", "src/stays.cpp");
    const Callable::Code* const found = value_or_throw(detail::code_of(here));
    EXPECT_EQ(found->package, nullptr);
    EXPECT_NE(found->why_not.find("its program carries no code that could travel"), std::string::npos)
        << found->why_not;
    EXPECT_EQ(value_or_throw(detail::code_of(here)), found);
}

TEST(Callables, OnlyPackagesOfOneFunctionAreComparedByTheirForms) {
    const auto forms = [](std::vector<std::string> entries, const std::vector<std::pair<Forms, std::size_t>>& slices) {
        return detail::forms_of_one(*some_package(std::move(entries), slices));
    };
    EXPECT_EQ(forms({"one", "two"}, {{Forms::image, 64}}), 0U);
    const std::uint32_t image = forms({"one"}, {{Forms::image, 64}});
    EXPECT_NE(image, 0U);
    EXPECT_EQ(forms({"other"}, {{Forms::image, 128}}), image);
    EXPECT_NE(forms({"one"}, {{Forms::image, 64}, {Forms::bitcode, 64}}), image);
}

}  // namespace
}  // namespace rove::test
