// The places that the linker may read and write.
#include "jit/places.hpp"

#include <gtest/gtest.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/x86_64.h>

#include <array>

namespace rove::bitcode {
namespace {

namespace jitlink = llvm::jitlink;
namespace x86_64 = llvm::jitlink::x86_64;

class PlacesTest : public testing::Test {
protected:
    static constexpr std::size_t kBytes = 16;
    // Another one each time, of kBytes in the middle of others.
    jitlink::Block& block() {
        return graph_.createMutableContentBlock(section_, llvm::MutableArrayRef<char>(bytes_.data() + kBytes, kBytes),
                                                {}, 1, 0);
    }
    bool fit() { return !llvm::errorToBool(check_places(graph_)); }
    // Whether a relocation of that kind may be there.
    bool fits(jitlink::Edge::Kind kind, std::size_t offset) {
        jitlink::Block& made = block();
        made.addEdge(kind, static_cast<jitlink::Edge::OffsetT>(offset), target_, 0);
        const bool fits = fit();
        made.removeEdge(made.edges().begin());
        return fits;
    }

    std::array<char, 3 * kBytes> bytes_{};
    jitlink::LinkGraph graph_{"built", llvm::Triple("x86_64-unknown-linux-gnu"), 8, llvm::endianness::little,
                              &x86_64::getEdgeKindName};
    jitlink::Section& section_ = graph_.createSection(".text", llvm::orc::MemProt::Exec);
    // Where an address of four bytes leads to.
    jitlink::Symbol& target_ = graph_.addAbsoluteSymbol("low", llvm::orc::ExecutorAddr(0x1000), 1,
                                                        jitlink::Linkage::Strong, jitlink::Scope::Local, true);
};

TEST_F(PlacesTest, WhatIsWrittenIsInTheSection) {
    EXPECT_TRUE(fits(x86_64::Pointer64, 0));
    EXPECT_TRUE(fits(x86_64::Pointer64, 8));
    EXPECT_FALSE(fits(x86_64::Pointer64, 9));
    EXPECT_TRUE(fits(x86_64::Delta32, 12));
    EXPECT_FALSE(fits(x86_64::Delta32, 13));
    EXPECT_FALSE(fits(x86_64::Delta32, 0xFFFFFFFF));
    EXPECT_TRUE(fits(x86_64::Pointer16, 14));
    EXPECT_FALSE(fits(x86_64::Pointer16, 15));
    EXPECT_TRUE(fits(x86_64::Pointer8, 15));
    EXPECT_FALSE(fits(x86_64::Pointer8, 16));
    EXPECT_TRUE(fits(jitlink::Edge::KeepAlive, 100)) << "nothing is written there";
}

TEST_F(PlacesTest, InstructionsThatAreMadeShorterAreInTheSection) {
    for (const auto kind : {x86_64::RequestGOTAndTransformToPCRel32GOTLoadRelaxable, x86_64::PCRel32GOTLoadRelaxable}) {
        EXPECT_FALSE(fits(kind, 0));
        EXPECT_FALSE(fits(kind, 1));
        EXPECT_TRUE(fits(kind, 2));
        EXPECT_TRUE(fits(kind, 12));
        EXPECT_FALSE(fits(kind, 13));
    }
    for (const auto kind :
         {x86_64::RequestGOTAndTransformToPCRel32GOTLoadREXRelaxable, x86_64::PCRel32GOTLoadREXRelaxable,
          x86_64::RequestTLVPAndTransformToPCRel32TLVPLoadREXRelaxable, x86_64::PCRel32TLVPLoadREXRelaxable}) {
        EXPECT_FALSE(fits(kind, 2));
        EXPECT_TRUE(fits(kind, 3));
    }
}

// As the linker does it: what is in the section may move its place by a byte, and that of what begins before it leaves the section.
TEST_F(PlacesTest, AJumpIsMadeShorterWhereItIs) {
    const auto jump_at = [this](jitlink::Edge::OffsetT offset) {
        jitlink::Block& made = block();
        bytes_[kBytes + offset - 2] = '\xFF';
        bytes_[kBytes + offset - 1] = '\x25';
        made.addEdge(x86_64::PCRel32GOTLoadRelaxable, offset,
                     x86_64::createAnonymousPointer(graph_, section_, &target_), 0);
        EXPECT_FALSE(llvm::errorToBool(x86_64::optimizeGOTAndStubAccesses(graph_)));
        return made.edges().begin()->getOffset();
    };
    EXPECT_EQ(jump_at(2), 1U);
    EXPECT_TRUE(fit());
    EXPECT_EQ(jump_at(0), 0xFFFFFFFFU);
    EXPECT_FALSE(fit());
}

TEST_F(PlacesTest, WhatHasNoBytesIsNotWritten) {
    jitlink::Block& zeros = graph_.createZeroFillBlock(section_, kBytes, {}, 1, 0);
    EXPECT_TRUE(fit());
    zeros.addEdge(jitlink::Edge(x86_64::Pointer64, 0, target_, 0));
    EXPECT_FALSE(fit());
}

}  // namespace
}  // namespace rove::bitcode
