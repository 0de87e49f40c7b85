// A call that was sent on is answered although the link to its caller's node was cut meanwhile.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "../api/nodes.hpp"
#include "node/here.hpp"
#include "node/offload.hpp"

namespace rove::test {
namespace {

using namespace std::chrono_literals;

// Three nodes: the first calls the second, which sends the call on to the third.

constexpr auto kPatience = 30s;
bool soon(const std::function<bool()>& true_now) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!true_now()) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::sleep_for(2ms);
    }
    return true;
}

std::atomic<bool> arrived = false, go_on = false, ends = false;
std::function<void()> before_its_end;
// As rove_forward does, with the function's own id.
void pass_on(Here& here, std::uint32_t to) {
    if (here.raw()->core->id() != to) {
        EXPECT_EQ(rove_forward(here.raw(), to, &to, sizeof to), 0);
        return;
    }
    arrived = true;
    while (!go_on) std::this_thread::sleep_for(1ms);
    if (before_its_end) before_its_end();
    ends = true;
}

class Healing : public OnFabrics {
protected:
    void SetUp() override {
        before_its_end = nullptr;
        const auto joins = [this](const std::string& address) {
            NodeOptions joining = options(true);
            joining.join = address;
            return std::make_unique<Node>(joining);
        };
        first_ = std::make_unique<Node>(options(true));
        second_ = joins(first_->address());
        third_ = joins(first_->address());
        go_on = true;
        first_->connect(third_->address()).sync(fn<pass_on>, third_->id());  // it knows the function from here on
        arrived = go_on = ends = false;
    }
    void TearDown() override {
        go_on = true;
        third_.reset();
        second_.reset();
        first_.reset();
    }
    [[nodiscard]] static std::shared_ptr<PeerState> state(Node& of, const Node& to) {
        return detail::Edge::state(of.connect(to.address()));
    }
    std::unique_ptr<Node> first_, second_, third_;
};
ROVE_ON_FABRICS(Healing);

TEST_P(Healing, ForwardedCallsAreAnsweredWhenTheirCallersNodeIsMetAgain) {
    const Peer second = first_->connect(second_->address());
    const Peer to_first = third_->connect(first_->address());
    const auto core = detail::Edge::core(to_first);
    const std::shared_ptr<PeerState> cut = detail::Edge::state(to_first);
    Call<void> call = second.async(fn<pass_on>, third_->id());
    ASSERT_TRUE(soon([] { return arrived.load(); }));
    const std::uint64_t before = cut->meeting;
    before_its_end = [&] { core->lose(cut, before, Error(ErrorCode::disconnected, "the test cut it")); };
    go_on = true;  // its reply finds no link
    ASSERT_TRUE(call.wait_for(kPatience)) << "nobody answers";
    call.get();
    EXPECT_TRUE(soon([&] { return cut->meeting != before && core->linked(*cut); }));
    EXPECT_EQ(core->replies_kept(), 0U);
}

TEST_P(Healing, NothingIsKeptForAMemberThatIsGone) {
    const Peer to_first = third_->connect(first_->address());
    const auto core = detail::Edge::core(to_first);
    const Peer second = first_->connect(second_->address());
    Call<void> call = second.async(fn<pass_on>, third_->id());
    ASSERT_TRUE(soon([] { return arrived.load(); }));
    call.cancel();
    first_.reset();
    ASSERT_TRUE(soon([&] { return !core->linked(*detail::Edge::state(to_first)); }));
    go_on = true;
    ASSERT_TRUE(soon([] { return ends.load(); }));
    second_->connect(third_->address()).sync(fn<pass_on>, third_->id());
    EXPECT_TRUE(soon([&] { return core->replies_kept() == 0; }));
}

}  // namespace
}  // namespace rove::test
