#include "extraction/outline.hpp"

#include "ir.hpp"

namespace rove::bitcode {
namespace {

ByteBuffer two(const std::string& one, const std::string& more = "") {
    return section_of({"define i32 @one(i32 %n) {\n" + one + "}\ndefine i32 @two(i32 %n) {\nret i32 %n\n}\n" + more});
}

TEST(Outline, OfAChangedBodyIsOtherwiseTheSame) {
    const auto before = outline_of(two("ret i32 %n\n"));
    const auto after = outline_of(two("%a = add i32 %n, 77\n%b = mul i32 %a, %a\nret i32 %b\n"));
    ASSERT_TRUE(before && after);
    ASSERT_EQ(before->bodies.size(), 2U);
    ASSERT_EQ(after->bodies.size(), 2U);
    EXPECT_EQ(before->surroundings, after->surroundings)
        << "the other function begins elsewhere in the file, that is all";
    EXPECT_NE(before->bodies[0], after->bodies[0]);
    EXPECT_EQ(before->bodies[1], after->bodies[1]);
}

TEST(Outline, OfOtherDeclarationsIsAnother) {
    const auto before = outline_of(two("ret i32 %n\n")),
               after = outline_of(two("ret i32 %n\n", "declare void @more()\n"));
    ASSERT_TRUE(before && after);
    EXPECT_NE(before->surroundings, after->surroundings);
}

TEST(Outline, ThereIsNoneOfWhatIsNoModule) {
    EXPECT_FALSE(outline_of({}));
    EXPECT_FALSE(outline_of(as_bytes("define i32 @one(i32 %n) { ret i32 %n }")));
}

TEST(Outline, OfAModuleThatIsCutShortIsNotThatOfTheWhole) {
    const ByteBuffer module = two("ret i32 %n\n");
    const Digest whole = outline_of(module)->surroundings;
    for (std::size_t size = 0; size < module.size(); size += 4) {
        const auto cut = outline_of(Bytes(module).first(size));
        EXPECT_TRUE(!cut || cut->surroundings != whole || cut->bodies.size() != 2) << size;
    }
}

}  // namespace
}  // namespace rove::bitcode
