// The functions that every node has, each alone, called as an engine calls it, for a peer that is the far end of a link.
#include "node/built_ins.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "lone_engine.hpp"
#include "package/digest.hpp"
#include "program/residents.hpp"
#include "soon.hpp"
#include "wire/memory.hpp"

namespace rove::test {
namespace {

using fabric::Traffic;
using wire::Kind;
using wire::MemoryPart;

constexpr std::size_t kRoom = 40UL * 1024 * 1024;  // for the buffers of the node

class BuiltInsTest : public LoneEngine {
protected:
    BuiltInsTest() : LoneEngine({.buffer_bytes_max = kRoom}) {}
    // The result of a call of one of them.
    struct End {
        bool is_error = false;
        std::uint8_t status = 0;
        ByteBuffer bytes;  // of its result, or of the error's words
        [[nodiscard]] std::string text() const { return std::string(as_text(Bytes(bytes))); }
        [[nodiscard]] bool is(ErrorCode code) const { return is_error && status == static_cast<std::uint8_t>(code); }
    };
    End ask(const FunctionId& function, Bytes payload) { return ask(function, payload, far_); }
    End ask(const FunctionId& function, Bytes payload, Far& from) {
        run(function, payload, from.id);
        auto replies = of_kind(Neighbours::received_at(*from.link), Kind::reply);
        EXPECT_LE(replies.size(), 1U);
        if (replies.empty()) return {};  // it has returned: that is success
        return {(replies[0].header.flags & wire::kError) != 0, replies[0].header.status, std::move(replies[0].payload)};
    }
    void run(const FunctionId& id, Bytes payload, NodeId caller) {
        const Resident* const known = Residents::find(id);
        ASSERT_NE(known, nullptr);
        code::Function function;
        function.name = known->name;
        rove_here here{.engine = &engine_,
                       .function = &function,
                       .call = {.generation = 9, .node = caller, .call = 5},
                       .ran = RanAs::resident};
        known->entry(&here, payload.data(), payload.size());
    }
    template <typename... Each>
    static ByteBuffer in_a_row(const Each&... each) {
        ByteBuffer all;
        const auto add = [&all](Bytes bytes) { all.insert(all.end(), bytes.begin(), bytes.end()); };
        (add(std::as_bytes(std::span(&each, 1))), ...);
        return all;
    }
    static ByteBuffer with_text(ByteBuffer head, std::string_view text) {
        const Bytes bytes = as_bytes(text);
        head.insert(head.end(), bytes.begin(), bytes.end());
        return head;
    }
    wire::MemoryPlace allocate(std::uint64_t bytes) {
        const End end = ask(ids_.allocate, in_a_row(bytes));
        EXPECT_FALSE(end.is_error) << end.text();
        wire::MemoryPlace place;
        if (end.bytes.size() == sizeof place) std::memcpy(&place, end.bytes.data(), sizeof place);
        EXPECT_EQ(end.bytes.size(), sizeof place);
        return place;
    }
    End put(std::uint64_t key, std::uint64_t offset, std::string_view text) {
        return ask(ids_.put, with_text(in_a_row(MemoryPart{key, offset, 0}), text));
    }
    End get(std::uint64_t key, std::uint64_t offset, std::uint64_t bytes) {
        return ask(ids_.get, in_a_row(MemoryPart{key, offset, bytes}));
    }

    const BuiltIns& ids_ = built_ins();
    Far far_ = meet(1);
};

TEST_F(BuiltInsTest, TheyAreResidentsWithIdsOfTheirOwn) {
    EXPECT_EQ(&built_ins(), &ids_) << "they are enrolled once";
    std::set<std::string> hex;
    for (const FunctionId* id :
         {&ids_.allocate, &ids_.free, &ids_.mapped, &ids_.put, &ids_.get, &ids_.copy, &ids_.knows, &ids_.functions}) {
        const Resident* const known = Residents::find(*id);
        ASSERT_NE(known, nullptr);
        EXPECT_TRUE(known->built_in);
        EXPECT_TRUE(known->name.starts_with("rove:")) << known->name;
        hex.insert(id->hex());
    }
    EXPECT_EQ(hex.size(), 8U);
    EXPECT_EQ(ids_.put, resident_id({"built in", "put"})) << "docs/frames.md: all processes share it";
}

TEST_F(BuiltInsTest, ARequestThatIsTooShortIsRefused) {
    for (const auto& [function, bytes] :
         {std::pair(&ids_.allocate, 7), std::pair(&ids_.free, 7), std::pair(&ids_.mapped, 0), std::pair(&ids_.put, 23),
          std::pair(&ids_.get, 23), std::pair(&ids_.copy, 47), std::pair(&ids_.knows, 7)}) {
        const End end = ask(*function, ByteBuffer(static_cast<std::size_t>(bytes)));
        EXPECT_TRUE(end.is(ErrorCode::invalid)) << bytes << ": " << end.text();
    }
}

TEST_F(BuiltInsTest, MemoryIsZeroedAndKeepsWhatIsPutThere) {
    const wire::MemoryPlace place = allocate(100);
    EXPECT_EQ(place.bytes, 100U);
    EXPECT_NE(place.key, allocate(100).key);
    EXPECT_EQ(get(place.key, 0, 100).bytes, ByteBuffer(100));
    EXPECT_FALSE(put(place.key, 10, "hello").is_error);
    EXPECT_EQ(get(place.key, 9, 7).text(), std::string("\0hello\0", 7));
    EXPECT_FALSE(put(place.key, 95, "lasts").is_error) << "up to its end";
    EXPECT_EQ(get(place.key, 95, 5).text(), "lasts");
    EXPECT_FALSE(put(place.key, 100, "").is_error);
    EXPECT_TRUE(get(place.key, 100, 0).bytes.empty());
}

TEST_F(BuiltInsTest, WhatIsNotInABufferIsNeitherReadNorWritten) {
    const wire::MemoryPlace place = allocate(100);
    const std::uint64_t nearly_all = ~std::uint64_t{0} - 3;  // with a few more it is a small number
    for (const auto& [key, offset, bytes] :
         {MemoryPart{place.key, 96, 5}, MemoryPart{place.key, 101, 0}, MemoryPart{place.key, nearly_all, 5},
          MemoryPart{place.key, 5, nearly_all}, MemoryPart{place.key + 1, 0, 1}}) {
        const End got = get(key, offset, bytes);
        EXPECT_TRUE(got.is(ErrorCode::invalid)) << offset << ' ' << bytes;
        EXPECT_NE(got.text().find(std::to_string(bytes) + " bytes of a buffer are not on"), std::string::npos)
            << got.text();
        if (bytes != nearly_all) EXPECT_TRUE(put(key, offset, std::string(bytes, 'x')).is(ErrorCode::invalid));
        EXPECT_TRUE(ask(ids_.copy, in_a_row(wire::MemoryCopy{{key, offset, bytes}, place.key, 0, node_->id()}))
                        .is(ErrorCode::invalid));
        if (bytes == 5)
            EXPECT_TRUE(ask(ids_.copy, in_a_row(wire::MemoryCopy{{place.key, 0, 5}, key, offset, node_->id()}))
                            .is(ErrorCode::invalid));
    }
    EXPECT_EQ(get(place.key, 0, 100).bytes, ByteBuffer(100)) << "something was written";
}

TEST_F(BuiltInsTest, WhatIsFreedIsThereForNobody) {
    const std::uint64_t key = allocate(100).key;
    EXPECT_FALSE(ask(ids_.free, in_a_row(key)).is_error);
    EXPECT_TRUE(get(key, 0, 1).is(ErrorCode::invalid));
    EXPECT_FALSE(ask(ids_.free, in_a_row(key)).is_error) << "again: it may cross the end of its owner";
}

TEST_F(BuiltInsTest, TheFileOfABufferIsClosedWhenItHasBeenMapped) {
    const wire::MemoryPlace place = allocate(1 << 16);
    if (place.pid == 0) GTEST_SKIP() << "the system gives no memory files";
    const auto is_open = [&place] {
        struct stat file{};
        return fstat(static_cast<int>(place.file), &file) == 0 && file.st_ino == place.inode;
    };
    EXPECT_TRUE(is_open());
    EXPECT_FALSE(ask(ids_.mapped, in_a_row(place.key)).is_error);
    EXPECT_FALSE(is_open());
    EXPECT_FALSE(put(place.key, 0, "still there").is_error);
    EXPECT_FALSE(ask(ids_.mapped, in_a_row(place.key + 1)).is_error);
}

TEST_F(BuiltInsTest, WhoHasNoMoreRoomSaysSo) {
    const End end = ask(ids_.allocate, in_a_row(std::uint64_t{kRoom + 1}));
    EXPECT_TRUE(end.is(ErrorCode::overloaded)) << end.text();
    EXPECT_TRUE(end.text().starts_with(node_->name() + ": ")) << end.text();
}

// All that it owned was freed when it went, and nobody would free this.
TEST_F(BuiltInsTest, WhatSomebodyAllocatesWhoHasGoneIsFreedAtOnce) {
    Far guest = meet(2);
    engine_.peers().lose(guest.peer, guest.peer->meeting(), Error(ErrorCode::disconnected, "it went"));
    (void)turn(far_);
    run(ids_.allocate, in_a_row(std::uint64_t{kRoom}), guest.id);
    EXPECT_TRUE(node_->shared().memory.allocate(kRoom, far_.id)) << "it takes all the room there is";
}

TEST_F(BuiltInsTest, AnAnswerOverTheLimitIsAnErrorAndNoSuccess) {
    const wire::MemoryPlace place = allocate(ROVE_MESSAGE_BYTES_MAX + 1);
    const End end = get(place.key, 0, ROVE_MESSAGE_BYTES_MAX + 1);
    EXPECT_TRUE(end.is(ErrorCode::failed)) << end.text();
}

TEST_F(BuiltInsTest, ACopyWithinTheNodeMayOverlap) {
    const std::uint64_t key = allocate(100).key, other = allocate(100).key;
    EXPECT_FALSE(put(key, 0, "0123456789").is_error);
    const auto copy = [&](MemoryPart from, std::uint64_t to, std::uint64_t offset) {
        return ask(ids_.copy, in_a_row(wire::MemoryCopy{from, to, offset, node_->id()}));
    };
    EXPECT_FALSE(copy({key, 0, 8}, key, 2).is_error);
    EXPECT_EQ(get(key, 0, 10).text(), "0101234567");
    EXPECT_FALSE(copy({key, 2, 8}, key, 0).is_error);
    EXPECT_EQ(get(key, 0, 10).text(), "0123456767");
    EXPECT_FALSE(copy({key, 4, 3}, other, 97).is_error);
    EXPECT_EQ(get(other, 96, 4).text(), std::string(1, '\0') + "456");
    EXPECT_FALSE(copy({key, 0, 0}, other, 0).is_error);
}

// Each piece is a put of its own, and the copy has ended when the last one has.
TEST_F(BuiltInsTest, ACopyToAnotherNodeGoesInPieces) {
    Far member = meet(2, true, "127.0.0.1:7002");
    constexpr std::uint64_t kBytes = wire::kTransferBytesMax + 10;
    const std::uint64_t key = allocate(kBytes).key;
    EXPECT_FALSE(put(key, kBytes - 3, "end").is_error);
    std::atomic<bool> ended{false};
    std::thread copies([&] {
        run(ids_.copy, in_a_row(wire::MemoryCopy{{key, 0, kBytes}, 77, 5, 2}), far_.id);
        ended = true;
    });
    std::vector<MemoryPart> puts;
    std::string last;
    ByteBuffer payload;
    EXPECT_TRUE(soon([&] {
        for (const auto& each : Neighbours::received_at(*member.link, Traffic::calls)) {
            if (each.header.kind == Kind::part || (each.header.flags & wire::kParts) == 0)
                payload.insert(payload.end(), each.payload.begin(), each.payload.end());
            if (each.header.kind != Kind::call) continue;
            MemoryPart head;
            std::memcpy(&head, payload.data(), sizeof head);
            puts.push_back(head);
            EXPECT_EQ(payload.size(), sizeof head + head.bytes);
            last = as_text(Bytes(payload).subspan(payload.size() - 3));
            payload.clear();
            EXPECT_FALSE(ended);
            send(member,
                 {.kind = Kind::reply,
                  .handle = 2,
                  .generation = each.header.generation,
                  .node = 0,
                  .call = each.header.call,
                  .hops = 1},
                 {}, "", Traffic::prompt);
        }
        return ended.load();
    }));
    copies.join();
    ASSERT_EQ(puts.size(), 2U);
    EXPECT_EQ(puts[0].key, 77U);
    EXPECT_EQ(puts[0].offset, 5U);
    EXPECT_EQ(puts[0].bytes, wire::kTransferBytesMax);
    EXPECT_EQ(puts[1].offset, 5 + wire::kTransferBytesMax);
    EXPECT_EQ(puts[1].bytes, 10U);
    EXPECT_EQ(last, "end");
    EXPECT_TRUE(Neighbours::received_at(*far_.link).empty()) << "it has returned, which is success";
}

TEST_F(BuiltInsTest, ACopyToANodeThatIsNotReachedFails) {
    const std::uint64_t key = allocate(100).key;
    const End end = ask(ids_.copy, in_a_row(wire::MemoryCopy{{key, 0, 10}, 77, 0, 3}));
    EXPECT_TRUE(end.is_error);
    EXPECT_NE(end.text().find("node 3"), std::string::npos) << end.text();
    const End none = ask(ids_.copy, in_a_row(wire::MemoryCopy{{key, 0, 10}, 77, 0, (1UL << 32U) + node_->id()}));
    EXPECT_TRUE(none.is_error);
    EXPECT_EQ(none.text(), "there is no node " + std::to_string((1UL << 32U) + node_->id()));
}

TEST_F(BuiltInsTest, ANodeKnowsWhomItReachesAtAnAddress) {
    const Far member = meet(2, true, "127.0.0.1:7002");
    const auto knows = [this](std::uint64_t node, const std::string& address) {
        const End end = ask(ids_.knows, with_text(in_a_row(node), address));
        EXPECT_EQ(end.bytes.size(), 1U);
        return end.bytes == ByteBuffer{std::byte{1}};
    };
    EXPECT_TRUE(knows(2, "127.0.0.1:7002"));
    EXPECT_FALSE(knows(2, "127.0.0.1:7003"));
    EXPECT_FALSE(knows(3, "127.0.0.1:7002"));
    EXPECT_FALSE(knows((1UL << 32U) + 2, "127.0.0.1:7002"));
    EXPECT_TRUE(knows(node_->id(), node_->address())) << "itself";
    EXPECT_FALSE(knows(node_->id(), "127.0.0.1:7002"));
}

TEST_F(BuiltInsTest, TheFunctionsOfTheProgramAreListedWithoutRovesOwn) {
    std::array<std::byte, sizeof(FunctionId)> bytes{std::byte{1}, std::byte{0xB1}};
    const FunctionId id = FunctionId::from(bytes);
    if (Residents::find(id) == nullptr)
        (void)Residents::add({.id = id,
                              .name = "listed",
                              .signature = "void (int)",
                              .schema = 1,
                              .entry = [](rove_here*, const void*, std::size_t) {}});
    const std::string list = ask(ids_.functions, {}).text();
    EXPECT_NE(('\n' + list).find('\n' + id.hex() + "\tlisted\tvoid (int)\n"), std::string::npos) << list;
    for (const FunctionId& each : {ids_.allocate, ids_.knows, ids_.functions})
        EXPECT_EQ(list.find(each.hex()), std::string::npos) << Residents::find(each)->name;
}

}  // namespace
}  // namespace rove::test
