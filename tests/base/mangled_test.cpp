// Names as this compiler makes them.
#include "base/mangled.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <typeinfo>
#include <vector>

enum ColorL1 { kRed, kGreen = 12 };
struct CacheL2 {};
struct EntryL3 {};
struct UlE_ {};
struct MangledUlvE_ {
    static int member(int n) { return n; }
};
template <auto value, typename... T>
struct Of {};

// As in rove/detail/offload.hpp.
struct rove_here;
namespace rove::detail {
template <auto function, typename... T>
struct Offload {
    static void run(rove_here* /*here*/, const void* /*payload*/, std::size_t /*size*/) {}
    static void runs(rove_here* /*here*/, const void* /*payload*/, std::size_t /*size*/) {}
};
}  // namespace rove::detail

int updateL1(int n) {
    return n;
}
int with_cache(const CacheL2& /*cache*/, const EntryL3& /*entry*/, const std::vector<CacheL2>& /*caches*/) {
    return 0;
}
int UlvE_sum(UlE_ /*named*/) {
    return 0;
}
template <ColorL1 color, int number, bool yes>
int templated(CacheL2 /*cache*/) {
    return number;
}
namespace in_L5 {
struct L1 {
    static int call(int n) { return n; }
};
int plain(L1 /*one*/, std::array<L1, 10> /*ten*/) {
    return 0;
}
[[maybe_unused]] static int in_file(int n) {
    return n;
}
}  // namespace in_L5
static int in_file(CacheL2 /*cache*/) {
    return 0;
}

namespace rove::test {
namespace {

int unnamed(int n) {
    return n;
}

template <auto function>
std::string name() {
    return typeid(Of<function, CacheL2>).name();
}

TEST(Mangled, OrdinaryNamesAreKnownEverywhere) {
    for (const std::string& each :
         {name<&updateL1>(), name<&with_cache>(), name<&UlvE_sum>(), name<&MangledUlvE_::member>(),
          name<&templated<kGreen, 3, true>>(), name<&templated<kRed, -12, false>>(), name<&in_L5::L1::call>(),
          name<&in_L5::plain>(), std::string(typeid(Of<kGreen, UlE_, EntryL3>).name()),
          std::string(typeid(Of<in_L5::L1{}, CacheL2>).name())}) {
        EXPECT_FALSE(names_internal(each)) << each;
        EXPECT_FALSE(names_a_lambda(each)) << each;
    }
}

TEST(Mangled, InternalNamesAreKnownInTheirFileAlone) {
    for (const std::string& each : {name<&unnamed>(), name<static_cast<int (*)(CacheL2)>(&::in_file)>(),
                                    name<&in_L5::in_file>(), std::string("_ZL6updatei"), std::string("_ZL3foo3Bar")})
        EXPECT_TRUE(names_internal(each)) << each;
}

TEST(Mangled, WhatIsSentIsFoundByItsType) {
    using Sent = detail::Offload<&UlvE_sum, int>;
    const std::string symbol = symbol_of_offload(typeid(Sent).name());
    EXPECT_NE(name<&Sent::run>().find(symbol), std::string::npos) << name<&Sent::run>() << " has not " << symbol;
    EXPECT_TRUE(names_offload(symbol));
    for (const std::string& each : {symbol.substr(1), std::string("_ZN4rove6detail7OffloadILi1EE4runsEP9rove_herePKvm"),
                                    std::string("_ZN4rove6detail8OffloadsILi1EE3runEP9rove_herePKvm"), std::string()})
        EXPECT_FALSE(names_offload(each)) << each;
    EXPECT_EQ(name<&Sent::runs>().find(symbol), std::string::npos);
}

TEST(Mangled, LambdasAreTold) {
    const auto one = [](CacheL2 /*cache*/) { return 1; };
    const auto with_e = [](EntryL3 /*entry*/) { return 1; };
    const auto other = [](int n) { return n; };
    for (const std::string& each :
         {std::string(typeid(one).name()), std::string(typeid(with_e).name()), std::string(typeid(other).name()),
          std::string(typeid(Of<other, EntryL3>).name()), std::string("3fooMUlvE_"), std::string("N5outerUlvE0_E")})
        EXPECT_TRUE(names_a_lambda(each)) << each;
}

}  // namespace
}  // namespace rove::test
