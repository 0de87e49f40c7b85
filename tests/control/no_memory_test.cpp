// A control plane that is refused memory where a link ends.
#include "../watched_new.hpp"
#include "control/link_watch.hpp"
#include "control_parts.hpp"

namespace {
bool is_next_refused = false;
}

void rove::test::asked_for(std::size_t /*bytes*/) {
    if (std::exchange(is_next_refused, false)) throw std::bad_alloc();
}

namespace rove::test {
namespace {

using control::LinkWatch;

class ControlWithoutMemory : public ControlParts {
protected:
    void SetUp() override { begin_as(3); }
    void TearDown() override { is_next_refused = false; }
};

// Its engine, where memory runs out as soon as a peer was lost.
class RefusesAfterwards final : public control::Engines {
public:
    explicit RefusesAfterwards(OneEngine& engine) : engine_(engine) {}
    control::ChosenEngine choose(const PeerState* old, NodeId member) override { return engine_.choose(old, member); }
    void release(const control::ChosenEngine& chosen) noexcept override { engine_.release(chosen); }
    Result<Peers::Adopted> adopt(const control::ChosenEngine& by, Meeting meeting, std::unique_ptr<fabric::Link>& link,
                                 std::shared_ptr<PeerState> old) override {
        return engine_.adopt(by, std::move(meeting), link, std::move(old));
    }
    [[nodiscard]] bool linked(const PeerState& peer) const override { return engine_.linked(peer); }
    void lose(const std::shared_ptr<PeerState>& peer, std::uint64_t meeting, Error why) override {
        engine_.lose(peer, meeting, std::move(why));
        is_next_refused = true;
    }
    void member_expected(NodeId member, const AbsentMembers::Process& process, const std::string& why) override {
        engine_.member_expected(member, process, why);
    }
    void member_gone(NodeId member, const std::string& why) override { engine_.member_gone(member, why); }

private:
    OneEngine& engine_;
};

TEST_F(ControlWithoutMemory, AMemberToWhomNoGoodbyeCanBeSaidIsMetAgain) {
    RefusesAfterwards engines(engines_);
    LinkWatch watch({.thread = thread_, .engines = engines, .membership = membership_});
    const Linked linked = meet(1);
    watch.begin(linked.channel, {watch, {.peer = linked.adopted.peer, .meeting = linked.adopted.meeting, .member = 1}},
                "a test");
    const ByteBuffer undue = encode(wire::control::Hello{});
    ASSERT_EQ(::send(linked.socket, undue.data(), undue.size(), 0), static_cast<ssize_t>(undue.size()));
    for (int turns = 0; linked.channel->is_open() && turns < 100; ++turns)
        thread_.io().run_one_for(std::chrono::seconds(20));
    EXPECT_FALSE(is_next_refused) << "the goodbye needs memory";
    EXPECT_FALSE(linked.channel->is_open());
    EXPECT_EQ(state_of(1), State::lost);
    EXPECT_EQ(met_again_, std::vector<NodeId>{1});
}

}  // namespace
}  // namespace rove::test
