// A peer that has used a handle which this node had forgotten: what that meant concerns calls by that handle only.
#include <gtest/gtest.h>

#include <atomic>

#include "../api/nodes.hpp"
#include "engine/gathering.hpp"
#include "engine/here.hpp"
#include "engine_view.hpp"
#include "node/core.hpp"
#include "soon.hpp"

namespace rove::test {
namespace {

std::atomic<NodeCore*> core{nullptr};
std::atomic<const code::Function*> function{nullptr};
std::atomic<NodeId> caller{kNoNode};
std::size_t take(Here& here, const std::string& text) {
    core = &here.raw()->node();
    function = here.raw()->function;
    caller = here.caller().node();
    return text.size();
}

class ForgottenHandle : public OnFabrics {
protected:
    void SetUp() override {
        OnFabrics::SetUp();
        (void)peer().sync(fn<take>, "");
    }
    void call_large() { EXPECT_EQ(peer().sync(fn<take>, text_), text_.size()); }
    static void was_told_of(std::uint32_t handle) {
        const std::shared_ptr<PeerState> from = EngineView::on_the_way_to(core.load()->first_engine(), caller);
        const Hold hold(core.load()->first_engine().lock());
        from->code.aliases.learn(handle, function.load()->id);
    }
    static std::uint64_t gathered() { return core.load()->first_engine().gatherings().done(); }

private:
    const std::string text_ = std::string(1'000'000, 'x');
};

TEST_P(ForgottenHandle, OthersArgumentsAreReadAsTheyArrive) {
    was_told_of(function.load()->handle + 1000);
    EXPECT_TRUE(soon([&] {
        call_large();
        return gathered() > 0;
    }));
}

TEST_P(ForgottenHandle, ItsOwnAreNot) {
    was_told_of(function.load()->handle);
    for (int i = 0; i < 20; ++i) call_large();
    EXPECT_EQ(gathered(), 0U);
}

// Elsewhere no arguments are read as they arrive.
ROVE_ON_DIRECT_FABRICS(ForgottenHandle);

}  // namespace
}  // namespace rove::test
