// Frames that no honest peer sends: who gets one ends that link, and serves everybody else.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "api/access.hpp"
#include "engine/here.hpp"
#include "engine_view.hpp"
#include "hand_made.hpp"
#include "services/memory.hpp"
#include "soon.hpp"
#include "wire/frame.hpp"

namespace rove::test {
namespace {

using fabric::Traffic;
using wire::Kind;

void send_part(const Peer& peer, const wire::Part& part, std::size_t bytes) {
    write_frame(peer, Traffic::calls, {.kind = Kind::part}, raw(part), ByteBuffer(bytes));
}

class Hostile : public BesideAnEnemy {};
ROVE_ON_FABRICS(Hostile);

TEST_P(Hostile, CallsThatContradictThemselves) {
    const wire::Either either{};
    is_cut_off("by its handle, and with an id", [&] {
        write_frame(*link_, Traffic::calls, {.kind = Kind::call, .flags = wire::kByHandle, .handle = handle()},
                    raw(either).first(16));
    });
    is_cut_off("by one id, with two",
               [&] { write_frame(*link_, Traffic::calls, {.kind = Kind::call, .flags = wire::kById}, raw(either)); });
    is_cut_off("with a code inline that is none",
               [&] { write_frame(*link_, Traffic::calls, {.kind = Kind::call, .flags = wire::kInline}, raw(either)); });
    is_cut_off("either, with half the ids", [&] {
        write_frame(*link_, Traffic::calls, {.kind = Kind::call, .flags = wire::kByEither}, raw(either).first(16));
    });
    is_cut_off("with a mark that means nothing yet", [&] {
        write_frame(*link_, Traffic::calls, {.kind = Kind::call, .flags = 128, .handle = handle()}, {}, ByteBuffer(8));
    });
    is_cut_off("in parts, without saying which", [&] {
        write_frame(*link_, Traffic::calls, {.kind = Kind::call, .flags = wire::kParts, .handle = handle()}, {},
                    ByteBuffer(3));
    });
    is_cut_off("in parts that did not come", [&] {
        const wire::Staged which{.number = 7, .total_bytes = 100};
        write_frame(*link_, Traffic::calls, {.kind = Kind::call, .flags = wire::kParts, .handle = handle()}, {},
                    raw(which));
    });
    for (const unsigned marks : {wire::kById, wire::kByEither, wire::kInline, wire::kParts})
        is_cut_off("a batch that says it has what it has not", [&] {
            const auto flags = static_cast<std::uint8_t>(wire::kNoReply | marks);
            write_frame(*link_, Traffic::calls,
                        {.kind = Kind::batch, .flags = flags, .handle = handle(), .generation = 8}, {}, ByteBuffer(8));
        });
    is_cut_off("of another caller", [&] {
        write_frame(*link_, Traffic::calls, {.kind = Kind::call, .handle = handle(), .node = kNoNode - 1}, {},
                    ByteBuffer(8));
    });
    is_cut_off("a package to load, for another caller", [&] {
        write_frame(*link_, Traffic::prompt, {.kind = Kind::load, .node = kNoNode - 1}, ByteBuffer(sizeof(Digest)));
    });
}

TEST_P(Hostile, PartsThatDoNotFit) {
    is_cut_off("of more than a payload may have",
               [&] { send_part(*link_, {.number = 1, .total_bytes = wire::kMessageBytesMax + 1}, 10); });
    is_cut_off("of what has not begun",
               [&] { send_part(*link_, {.number = 1, .offset = 10, .total_bytes = 100}, 10); });
    is_cut_off("that begin twice", [&] {
        send_part(*link_, {.number = 1, .total_bytes = 100}, 10);
        send_part(*link_, {.number = 1, .total_bytes = 100}, 10);
    });
    is_cut_off("out of order", [&] {
        send_part(*link_, {.number = 1, .total_bytes = 100}, 10);
        send_part(*link_, {.number = 1, .offset = 20, .total_bytes = 100}, 10);
    });
    is_cut_off("of another size than it began with", [&] {
        send_part(*link_, {.number = 1, .total_bytes = 100}, 10);
        send_part(*link_, {.number = 1, .offset = 10, .total_bytes = 1000}, 10);
    });
    is_cut_off("that are longer than the whole", [&] { send_part(*link_, {.number = 1, .total_bytes = 10}, 11); });
    is_cut_off("with nothing in them", [&] { send_part(*link_, {.number = 1, .total_bytes = 10}, 0); });
    is_cut_off("with half an extension", [&] {
        write_frame(*link_, Traffic::calls, {.kind = Kind::part}, raw(wire::Part{.total_bytes = 10}).first(0),
                    ByteBuffer(8));
    });
}

TEST_P(Hostile, MoreBegunThanMayArriveAtOnce) {
    is_cut_off("payloads", [&] {
        for (std::uint64_t number = 0; number <= kStagedMax; ++number)
            send_part(*link_, {.number = number, .total_bytes = 100}, 1);
    });
    is_cut_off("bytes", [&] {
        for (std::uint64_t number = 0; number <= kStagedBytesMax / wire::kMessageBytesMax; ++number)
            send_part(*link_, {.number = number, .total_bytes = wire::kMessageBytesMax}, 1);
    });
}

TEST_P(Hostile, WhatStandsOnTheWrongRing) {
    is_cut_off("a reply among calls", [&] { write_frame(*link_, Traffic::calls, {.kind = Kind::reply}, {}); });
    is_cut_off("a call among prompt frames", [&] {
        write_frame(*link_, Traffic::prompt, {.kind = Kind::call, .handle = handle()}, {}, ByteBuffer(8));
    });
    is_cut_off("code among calls that lies outside its item", [&] {
        const wire::CodeChunk chunk{.item = 1, .offset = 90, .total_bytes = 100};
        write_frame(*link_, Traffic::calls, {.kind = Kind::code}, raw(chunk), ByteBuffer(11));
    });
    is_cut_off("code among calls with half an extension", [&] {
        write_frame(*link_, Traffic::calls, {.kind = Kind::code}, raw(wire::CodeChunk{}).first(16), ByteBuffer(16));
    });
}

// Code that nobody has asked for and that belongs to nothing is passed over; so is a part of a result that nobody waits for.
TEST_P(Hostile, WhatMeansNothingIsPassedOver) {
    const wire::CodeChunk chunk{.item = 1, .total_bytes = 16};
    const NodeId server = detail::Inside::state(*link_)->id();
    write_frame(*link_, Traffic::calls, {.kind = Kind::code, .node = server}, raw(chunk), ByteBuffer(16));
    const wire::Part part{.total_bytes = 16};
    write_frame(*link_, Traffic::prompt, {.kind = Kind::part, .generation = 1, .node = server, .call = 1}, raw(part),
                ByteBuffer(16));
    EXPECT_EQ(link_->sync(fn<add>, 3, 2), 5);
}

// Runs with the enemy: answers the call that it is in as it likes.
const Peer* enemys_link = nullptr;
struct PieceOfResult {
    std::uint32_t offset, total_bytes, bytes;
};
void answer(Here& here, const std::vector<PieceOfResult>& pieces, bool ends) {
    const wire::CallContext& call = here.raw()->call;
    const wire::FrameHeader reply{
        .generation = call.generation, .node = detail::Inside::state(*enemys_link)->id(), .call = call.call};
    for (const PieceOfResult& each : pieces) {
        wire::FrameHeader header = reply;
        header.kind = Kind::part;
        write_frame(*enemys_link, Traffic::prompt, header,
                    raw(wire::Part{.offset = each.offset, .total_bytes = each.total_bytes}), ByteBuffer(each.bytes));
    }
    wire::FrameHeader header = reply;
    header.kind = Kind::reply;
    header.flags = wire::kParts;
    if (ends) write_frame(*enemys_link, Traffic::prompt, header, {});
}
// Runs with the honest one.
void ask_back(Here& here, const std::vector<PieceOfResult>& pieces, bool ends) {
    here.caller().sync(fn<answer>, pieces, ends);
}

TEST_P(Hostile, ResultsInPartsThatDoNotFit) {
    enemys_link = link_.get();
    const auto meeting = [this] { return detail::Inside::state(*link_)->meeting(); };
    const auto cost_the_link = [&](const char* what, const std::vector<PieceOfResult>& pieces) {
        SCOPED_TRACE(what);
        EXPECT_EQ(error_of([&] { link_->sync(fn<ask_back>, pieces, false); }).code(), ErrorCode::disconnected);
        EXPECT_EQ(peer().sync(fn<add>, 2, 2), 4);
        EXPECT_EQ(link_->sync(fn<add>, 3, 2), 5);
    };
    cost_the_link("of more than a result may have", {{0, wire::kMessageBytesMax + 1, 10}});
    cost_the_link("that are longer than the whole", {{0, 10, 11}});
    cost_the_link("that begin after the whole", {{11, 10, 1}});
    cost_the_link("of nothing", {{0, 10, 0}});
    // No peer that passes on a part for another can see what was sent before: the call alone ends, and not the link with that peer.
    const std::uint64_t met = meeting();
    const auto cost_the_call = [&](const char* what, const std::vector<PieceOfResult>& pieces) {
        SCOPED_TRACE(what);
        const Error error = error_of([&] { link_->sync(fn<ask_back>, pieces, false); });
        EXPECT_NE(std::string(error.what()).find("out of their order"), std::string::npos) << error.what();
        EXPECT_EQ(link_->sync(fn<add>, 3, 2), 5);
        EXPECT_EQ(meeting(), met);
    };
    cost_the_call("that do not begin at the beginning", {{10, 100, 10}});
    cost_the_call("out of order", {{0, 100, 10}, {20, 100, 10}});
    cost_the_call("of another size than they began with", {{0, 100, 10}, {10, 200, 10}});
    const Error short_of = error_of([&] { link_->sync(fn<ask_back>, std::vector<PieceOfResult>{{0, 100, 10}}, true); });
    EXPECT_NE(std::string(short_of.what()).find("parts did not come"), std::string::npos) << short_of.what();
    EXPECT_EQ(link_->sync(fn<add>, 3, 2), 5);
}

// Another client, whom it names as the one to ask, does not hear of them.
TEST_P(Hostile, QuestionsOfAClientGoToNobodyElse) {
    constexpr int kQuestions = 100;
    const NodeId me = detail::Inside::state(*link_)->my_id(), server = detail::Inside::state(*link_)->id(),
                 other = detail::Inside::state(peer())->my_id();
    const auto others_before = peer().counters().frames_received, mine_before = link_->counters().frames_received;
    for (std::uint32_t i = 0; i < kQuestions; ++i) {
        wire::NeedCode need{.asker = me, .origin = other, .handle = i};
        std::memcpy(&need.function, &i, sizeof i);
        ASSERT_TRUE(soon(
            [&] { return try_write_frame(*link_, Traffic::prompt, {.kind = Kind::need, .node = server}, raw(need)); }));
    }
    // It is told of each that nobody has that code.
    EXPECT_TRUE(soon([&] {
        (void)enemy_->poll();
        return link_->counters().frames_received >= mine_before + kQuestions;
    }));
    EXPECT_EQ(peer().sync(fn<add>, 1, 2), 3);
    EXPECT_EQ(peer().counters().frames_received, others_before + 1);
}

// What a server asks its client for, in the name of others, the client asks no other server for: that one would cut it off.
TEST_P(Hostile, QuestionsOfAServerGoToNoOtherServer) {
    Node other(started(options(true)));
    const Peer to_other = node_->connect(other.address());
    ASSERT_EQ(to_other.sync(fn<add>, 1, 2), 3);
    const std::uint64_t meeting = detail::Inside::state(to_other)->meeting();
    const auto core = detail::Inside::core(server_->connect(other.address()));
    const auto client = EngineView::on_the_way_to(core->first_engine(), detail::Inside::state(peer())->my_id());
    ASSERT_TRUE(client);
    for (std::uint32_t n = 0; n < 8; ++n) {
        wire::NeedCode need{.asker = 0, .origin = kForeignBit | n, .handle = n};
        need.function.bytes[0] = 7;
        const Hold hold(core->first_engine().lock());
        std::byte* const frame = client->link()->reserve(Traffic::prompt, wire::kHeaderBytes + sizeof need);
        ASSERT_NE(frame, nullptr);
        std::memcpy(frame + wire::kHeaderBytes, &need, sizeof need);
        client->link()->publish(Traffic::prompt, {.body_bytes = sizeof need,
                                                  .extra_bytes = sizeof need,
                                                  .kind = Kind::need,
                                                  .node = n % 2 == 0 ? kForeignBit | n / 2 : client->id()});
    }
    peer().sync(fn<nothing>);  // answered behind them
    EXPECT_NO_THROW(to_other.sync(fn<nothing>));
    EXPECT_EQ(detail::Inside::state(to_other)->meeting(), meeting);
}

// What a node says of memory that it has allocated.
TEST_P(Hostile, MemoryThatIsNotWhatItSays) {
    const std::string path = (scratch() / "precious").string();
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(ftruncate(file, 4096), 0);
    struct stat facts{};
    ASSERT_EQ(fstat(file, &facts), 0);
    wire::MemoryPlace place{
        .key = 1, .bytes = 4096, .pid = getpid(), .file = file, .device = facts.st_dev, .inode = facts.st_ino};
    const std::uint64_t meeting = detail::Inside::state(*link_)->meeting();
    // A file that can be made shorter: it is left alone, and the bytes go by message, to a buffer that there is none of.
    const auto memory = detail::Memory::adopt(*link_, meeting, 4096, &place, sizeof place);
    EXPECT_FALSE(memory->is_mapped());
    place.bytes = 1024;
    EXPECT_EQ(error_of([&] { (void)detail::Memory::adopt(*link_, meeting, 4096, &place, sizeof place); }).code(),
              ErrorCode::invalid);
    close(file);
}

// The file of a buffer, as a peer on the same machine opens it: one that could be made shorter would end whoever touches it next.
TEST(HostileToBuffers, TheirFilesKeepTheirSize) {
    MemoryTable table(1 << 24U);
    const auto place = table.allocate(1 << 20U, 1);
    ASSERT_TRUE(place);
    ASSERT_EQ(place->pid, getpid());
    const int file = open(fmt::format("/proc/{}/fd/{}", place->pid, place->file).c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(file, 0);
    EXPECT_EQ(ftruncate(file, 0), -1);
    EXPECT_EQ(ftruncate(file, 1 << 24U), -1);
    EXPECT_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE), -1);
    close(file);
    const std::shared_ptr<Block> block = table.find(place->key);
    std::memset(block->bytes().data(), 1, block->bytes().size());
}

}  // namespace
}  // namespace rove::test
