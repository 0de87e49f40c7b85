// Which function a call names, and which functions a node has, beside a cache and a peer.
#include <gtest/gtest.h>

#include <cstring>

#include "engine/function_finder.hpp"
#include "engine/node_functions.hpp"
#include "idle_lead.hpp"
#include "neighbours.hpp"
#include "program/residents.hpp"
#include "some_package.hpp"

namespace rove::test {
namespace {

using wire::Kind;

void at_home(rove_here* /*here*/, const void* /*payload*/, std::size_t /*size*/) {}

class FunctionsTest : public testing::Test {
protected:
    static const Resident& own() {
        static const Resident& enrolled = Residents::add(
            {.id = id(77), .name = "at_home(int)", .signature = "void (int)", .schema = 5, .entry = &at_home});
        return enrolled;
    }
    static FunctionId id(unsigned char first) {
        std::array<std::byte, sizeof(FunctionId)> bytes{std::byte{first}};
        return FunctionId::from(bytes);
    }
    // A frame with that package's code, and the id of that function.
    static ByteBuffer inline_code(const PackageStore& package, const FunctionId& named) {
        const Bytes manifest = package.manifest_bytes();
        const ByteBuffer& slice = *package.stored_slice(0);
        const wire::InlineCode code{.manifest_bytes = static_cast<std::uint32_t>(manifest.size()),
                                    .slice = 0,
                                    .slice_bytes = static_cast<std::uint32_t>(slice.size())};
        ByteBuffer extra(named.raw().begin(), named.raw().end());
        const Bytes head = std::as_bytes(std::span(&code, 1));
        for (const Bytes each : {head, manifest, Bytes(slice)}) extra.insert(extra.end(), each.begin(), each.end());
        return extra;
    }
    static wire::Frame frame(const ByteBuffer& extra) {
        return {{.body_bytes = static_cast<std::uint32_t>(extra.size()),
                 .extra_bytes = static_cast<std::uint16_t>(extra.size()),
                 .kind = Kind::call},
                extra,
                {}};
    }

    IdleLead idle_;
    NodeOptions options_{.listen = "127.0.0.1:0"};
    Neighbours neighbours_;
    const std::unique_ptr<code::CodeCache> cache_ = std::make_unique<code::CodeCache>(code::CodeOptions{});
    OwnFunctions own_functions_;
    FunctionFinder finder_{{.options = options_,
                            .cache = cache_,
                            .own_functions = own_functions_,
                            .sender = neighbours_.sender,
                            .name = &IdleLead::name}};
    NodeFunctions functions_{cache_};
    EngineLock& lock_ = idle_.lead.mutex();
    std::shared_ptr<PackageStore> package_ = some_package({"run", "other"}, {{Forms::image, 500}});
};

// ---- FunctionFinder

using FunctionFinderTest = FunctionsTest;

TEST_F(FunctionFinderTest, APackagesFunctionIsFoundByItsId) {
    const Hold hold(idle_.lead.mutex());
    EXPECT_EQ(finder_.by_id(package_->function_ids()[0]), nullptr);
    ASSERT_TRUE(cache_->add(package_, false));
    EXPECT_EQ(finder_.by_id(package_->function_ids()[1])->name, "some:other");
}

TEST_F(FunctionFinderTest, TheProgramsOwnIsTakenWhereItMeansTheSame) {
    const Hold hold(idle_.lead.mutex());
    const auto found = finder_.by_either({.resident = own().id, .shipped = package_->function_ids()[0], .schema = 5});
    ASSERT_TRUE(found);
    EXPECT_EQ((*found)->name, "at_home(int)");
}

TEST_F(FunctionFinderTest, WhatMeansOtherTypesIsTheOneThatTravels) {
    const Hold hold(idle_.lead.mutex());
    ASSERT_TRUE(cache_->add(package_, false));
    const auto travels = finder_.by_either({.resident = own().id, .shipped = package_->function_ids()[0], .schema = 6});
    ASSERT_TRUE(travels);
    EXPECT_EQ((*travels)->name, "some:run");
    const auto neither = finder_.by_either({.resident = own().id, .shipped = {}, .schema = 6});
    ASSERT_FALSE(neither);
    EXPECT_EQ(neither.error().message(),
              "at_home(int) on node 0: the types that it takes or gives are others there (schema 00000005) than in the "
              "caller's program (00000006); build both from the same source");
}

TEST_F(FunctionFinderTest, WhatIsNowhereIsToldByWhatIsLacking) {
    const Hold hold(idle_.lead.mutex());
    const auto stays = finder_.by_either({.resident = id(1), .shipped = {}, .schema = 5});
    ASSERT_FALSE(stays);
    EXPECT_EQ(stays.error().code(), ErrorCode::unsupported);
    EXPECT_EQ(stays.error().message(), "it is not resident on node 0, and the program that called it cannot send it");
    const auto to_come = finder_.by_either({.resident = id(1), .shipped = package_->function_ids()[0], .schema = 5});
    ASSERT_TRUE(to_come);
    EXPECT_EQ(*to_come, nullptr) << "its code is to be asked for";
    options_.listen.clear();
    const auto of_client = finder_.by_either({.resident = id(1), .shipped = package_->function_ids()[0], .schema = 5});
    ASSERT_FALSE(of_client);
    EXPECT_EQ(of_client.error().code(), ErrorCode::refused);
}

TEST_F(FunctionFinderTest, CodeInAFrameIsTakenOnceAndItsSenderToldTheHandle) {
    PeerState& peer = neighbours_.add(2);
    const ByteBuffer code = inline_code(*package_, package_->function_ids()[0]);
    const Hold hold(idle_.lead.mutex());
    const auto first = finder_.in_line(peer, frame(code));
    ASSERT_TRUE(first && *first != nullptr);
    EXPECT_EQ((*first)->name, "some:run");
    const auto told = neighbours_.received_by(peer);
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].header.kind, Kind::bind);
    EXPECT_EQ(told[0].header.handle, (*first)->handle);
    EXPECT_EQ(FunctionId::from(Bytes(told[0].extra).first<sizeof(FunctionId)>()), package_->function_ids()[0]);
    EXPECT_EQ(*finder_.in_line(peer, frame(code)), *first);
    EXPECT_EQ(cache_->usage().packages, 1U);
    EXPECT_EQ(peer.link()->broken(), nullptr);
}

TEST_F(FunctionFinderTest, WhatIsNoSuchCodeBreaksTheLink) {
    const FunctionId run = package_->function_ids()[0];
    ByteBuffer cut = inline_code(*package_, run), changed = cut;
    cut.resize(cut.size() - 1);
    changed.back() ^= std::byte{1};
    const std::pair<ByteBuffer, const char*> wrong[] = {
        {cut, "that was changed on its way"},
        {inline_code(*package_, id(3)), "of another function than it names"},
        {changed, "node 4 sent inline code "}};
    NodeId next = 2;
    for (const auto& [code, why] : wrong) {
        PeerState& peer = neighbours_.add(next);
        const Hold hold(idle_.lead.mutex());
        const auto taken = finder_.in_line(peer, frame(code));
        ASSERT_TRUE(taken);
        EXPECT_EQ(*taken, nullptr);
        ASSERT_NE(peer.link()->broken(), nullptr) << why;
        EXPECT_NE(peer.link()->broken()->message().find(why), std::string::npos) << peer.link()->broken()->message();
        ++next;
    }
    EXPECT_EQ(cache_->usage().packages, 0U);
}

// ---- NodeFunctions

using NodeFunctionsTest = FunctionsTest;

TEST_F(NodeFunctionsTest, AFunctionIsFoundByItsNameAndKnownByWhatThatGave) {
    EXPECT_FALSE(functions_.find(lock_, "some:run"));
    ASSERT_TRUE(cache_->add(package_, false));
    const auto found = functions_.find(lock_, "some:other");
    ASSERT_TRUE(found);
    EXPECT_NE(*found, 0U) << "which is no rove_function";
    EXPECT_EQ(functions_.id_of(lock_, *found), package_->function_ids()[1]);
    EXPECT_FALSE(functions_.id_of(lock_, 0));
    EXPECT_FALSE(functions_.id_of(lock_, *found & 0xFFFF'FFFFU)) << "a handle alone is none";
    EXPECT_FALSE(functions_.id_of(lock_, *found + 100));
    EXPECT_TRUE(functions_.digests().empty()) << "it may be forgotten";
    const auto stays = some_package({"stays"}, {{Forms::image, 10}});
    ASSERT_TRUE(cache_->add(stays, true));
    EXPECT_EQ(functions_.digests(), std::vector<Digest>{stays->digest()});
}

TEST_F(NodeFunctionsTest, AFolderThatIsNotThereIsNamed) {
    EXPECT_TRUE(functions_.preload({}));
    const Status none = functions_.preload("/nowhere");
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().message().find("packages directory /nowhere: No such file"), std::string::npos)
        << none.error().message();
}

}  // namespace
}  // namespace rove::test
