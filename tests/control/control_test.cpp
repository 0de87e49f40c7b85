// A node's control plane as a whole.
#include "control/control.hpp"

#include <atomic>

#include "../node/soon.hpp"
#include "meeting_parts.hpp"

namespace rove::test {
namespace {

using ControlTest = MeetingParts;

TEST_F(ControlTest, LooksEverySecondAlsoAfterMemoryHasRunOut) {
    std::atomic<unsigned> looks{0};
    const auto control = control::Control::create({.options = options_,
                                                   .ids = neighbours_.ids,
                                                   .engines = engines_,
                                                   .functions = functions_,
                                                   .name = &IdleLead::name,
                                                   .every_second = [&looks] {
                                                       if (++looks == 1) throw std::bad_alloc();
                                                   }});
    ASSERT_TRUE(control);
    EXPECT_TRUE(soon([&looks] { return looks > 2; }));
}

}  // namespace
}  // namespace rove::test
