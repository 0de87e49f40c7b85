#include "peer/own_functions.hpp"

#include <gtest/gtest.h>

#include "some_package.hpp"

namespace rove::test {
namespace {

TEST(OwnFunctions, EachFunctionOfAPackageIsFound) {
    OwnFunctions own;
    const auto package = some_package({"first", "second"}, {});
    EXPECT_EQ(own.package_of(package->function_ids()[0]), nullptr);
    own.keep(package);
    own.keep(some_package({"first", "second"}, {}));  // another copy of the same
    EXPECT_EQ(own.package_of(package->function_ids()[0]), package);
    EXPECT_EQ(own.package_of(package->function_ids()[1]), package);
}

TEST(OwnFunctions, AResidentIsKnownByTheIdByWhichItTravels) {
    OwnFunctions own;
    const auto package = some_package({"first", "second"}, {});
    const FunctionId resident = package->function_ids()[0], shipped = package->function_ids()[1];
    EXPECT_EQ(own.shipped_as(resident), resident);
    own.note_shipped(resident, shipped);
    EXPECT_EQ(own.shipped_as(resident), shipped);
}

}  // namespace
}  // namespace rove::test
