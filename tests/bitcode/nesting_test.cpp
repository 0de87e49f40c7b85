// Bitcode that nests deeper than LLVM's recursion has stack for.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#if __has_feature(address_sanitizer)
#include <sanitizer/allocator_interface.h>
#endif

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "../lost_memory.hpp"
#include "written_bitcode.hpp"

namespace rove::bitcode {
namespace {

using NestingTest = WrittenBitcode;

std::string with_constants(int levels) {
    std::string text = "@one = global i8 1\n@v = global i64 ";
    for (int i = 0; i < levels; ++i) text += "xor (i64 ptrtoint (ptr @one to i64), i64 ";
    return text + "0" + std::string(static_cast<std::size_t>(levels), ')') + "\n";
}

std::string with_metadata(int pieces) {
    std::string text = fmt::format("define void @go() {{\n  ret void\n}}\n!all = !{{!{}}}\n!0 = !{{}}\n", pieces - 1);
    for (int i = 1; i < pieces; ++i) text += fmt::format("!{} = !{{!{}}}\n", i, i - 1);
    return text;
}

TEST_F(NestingTest, TypesThatNestTooDeepAreRefused) {
    EXPECT_EQ(why_not(with_types(5'000)), "");
    EXPECT_EQ(why_not(with_types(60'000)), "deep: its bitcode has types that nest more than 10000 deep");
}

TEST_F(NestingTest, ATypeThatHoldsItselfIsRefused) {
    EXPECT_EQ(why_not("%a = type { %b }\n%b = type { %a }\n@v = external global %a\n"
                      "define ptr @go() {\n  ret ptr @v\n}\n"),
              "deep: its bitcode has types that nest more than 10000 deep");
}

TEST_F(NestingTest, ConstantsThatNestTooDeepAreRefused) {
    EXPECT_EQ(why_not(with_constants(11'000)), "deep: its bitcode has constants that nest more than 10000 deep");
}

// Each stands for the next one, the last one for a function.
std::string with_aliases(int aliases) {
    std::string text = fmt::format("define void @a{}() {{\n  ret void\n}}\n", aliases);
    for (int i = 0; i < aliases; ++i) text += fmt::format("@a{} = alias void (), ptr @a{}\n", i, i + 1);
    return text;
}

TEST_F(NestingTest, AliasesThatStandForOneAnotherTooDeepAreRefused) {
    EXPECT_EQ(why_not(with_aliases(100)), "");
    EXPECT_EQ(why_not(with_aliases(20'000)), "deep: its bitcode has constants that nest more than 10000 deep");
}

// Each instruction takes what the one before it gives.
std::string with_a_chain(int instructions) {
    std::string text = "@flag = global i1 true\ndefine i1 @go() {\n  %a0 = load volatile i1, ptr @flag\n";
    for (int i = 1; i <= instructions; ++i)
        text += fmt::format("  %v{0} = load volatile i1, ptr @flag\n  %a{0} = and i1 %a{1}, %v{0}\n", i, i - 1);
    return text + fmt::format("  ret i1 %a{}\n}}\n", instructions);
}

TEST_F(NestingTest, AChainOfInstructionsThatIsTooLongIsRefused) {
    EXPECT_EQ(why_not(with_a_chain(5'000)), "");
    EXPECT_EQ(why_not(with_a_chain(60'000)),
              "deep: its bitcode has more than 50000 instructions that wait for one another in one function");
}

// The same through the blocks of a loop: the next round begins from the start.
std::string through_blocks(int blocks, int of_each) {
    std::string text = "define i64 @go(ptr %p, i64 %n) {\nentry:\n  br label %b0\n";
    for (int b = 0, x = 0; b < blocks; ++b) {
        text += fmt::format("b{}:\n", b);
        if (b == 0)
            text += fmt::format("  %i = phi i64 [ 0, %entry ], [ %x{}, %b{} ]\n", blocks * of_each - 1, blocks - 1);
        for (int i = 0; i < of_each; ++i, ++x)
            text += fmt::format("  %x{} = add i64 {}, 1\n", x, x == 0 ? "%i" : fmt::format("%x{}", x - 1));
        text += fmt::format(
            "  %v{0} = load volatile i64, ptr %p\n  %c{0} = icmp eq i64 %v{0}, {0}\n"
            "  br i1 %c{0}, label %out, label %b{1}\n",
            b, (b + 1) % blocks);
    }
    return text + "out:\n  ret i64 0\n}\n";
}

TEST_F(NestingTest, AChainThroughManyBlocksIsAsLong) {
    EXPECT_EQ(why_not(through_blocks(20, 1'000)), "");
    EXPECT_EQ(why_not(through_blocks(20, 3'000)),
              "deep: its bitcode has more than 50000 instructions that wait for one another in one function");
}

std::string with_loops(int loops) {
    std::string text = "define void @go(ptr %p) {\nentry:\n  br label %h0\n";
    for (int i = 0; i < loops; ++i)
        text += fmt::format("h{}:\n  br label %{}\n", i, i + 1 < loops ? fmt::format("h{}", i + 1) : "body");
    text += fmt::format("body:\n  store volatile i8 1, ptr %p\n  br label %l{}\n", loops - 1);
    for (int i = loops - 1; i >= 0; --i)
        text += fmt::format(
            "l{0}:\n  %v{0} = load volatile i8, ptr %p\n  %c{0} = icmp eq i8 %v{0}, 1\n"
            "  br i1 %c{0}, label %h{0}, label %{1}\n",
            i, i > 0 ? fmt::format("l{}", i - 1) : "out");
    return text + "out:\n  ret void\n}\n";
}

std::string with_loops_in_a_row(int loops) {
    std::string text = "define void @go(ptr %p) {\nentry:\n  br label %h0\n";
    for (int i = 0; i < loops; ++i)
        text += fmt::format(
            "h{0}:\n  %v{0} = load volatile i8, ptr %p\n  %c{0} = icmp eq i8 %v{0}, 1\n"
            "  br i1 %c{0}, label %h{0}, label %h{1}\n",
            i, i + 1);
    return text + fmt::format("h{}:\n  ret void\n}}\n", loops);
}

TEST_F(NestingTest, LoopsThatNestTooDeepAreRefused) {
    EXPECT_EQ(why_not(with_loops(50)), "");
    EXPECT_EQ(why_not(with_loops(250)), "");
    EXPECT_EQ(why_not(with_loops(251)), "deep: its bitcode has loops that nest more than 250 deep");
    EXPECT_EQ(why_not(with_loops(100'000)), "deep: its bitcode has loops that nest more than 250 deep");
    EXPECT_EQ(why_not(with_loops_in_a_row(2'000)), "");
}

// Constants are shared, so there are as many ways down such a sum as its value: 2^44, and 45 constants.
// Each is made of the one before twice, so that 2^levels ways lead from the first to the last.
std::string with_doubled_constants(int levels) {
    std::string text = "@made0 = private constant [8 x i8] c\"abcdefgh\"\n";
    for (int i = 1; i <= levels; ++i)
        text += fmt::format(
            "@made{0} = private alias i8, getelementptr (i8, ptr @made{1}, i64 ptrtoint (ptr @made{1} to i64))\n", i,
            i - 1);
    return text +
           fmt::format("define i8 @go() {{\n  %all = load volatile i8, ptr @made{}\n  ret i8 %all\n}}\n", levels);
}

TEST_F(NestingTest, ConstantsThatAreMadeOfOneAnotherAreBounded) {
    EXPECT_EQ(why_not(with_doubled_constants(5)), "");
    EXPECT_EQ(why_not(with_doubled_constants(44)),
              "deep: its bitcode has a constant with more than 4000000 parts, each counted as often as it is used");
}

// LLVM aborts where memory runs out in a place where it may not throw. Here what it calls while it links does.
TEST_F(NestingTest, AnAbortWhileCodeIsLinkedDoesNotEndTheProcess) {
    const ByteBuffer asks =
        bitcode_of("declare void @wanted()\ndefine void @go() {\n  call void @wanted()\n  ret void\n}\n");
    CompileRequest request{.name = "deep", .bitcode = asks};
    request.resolve = [](std::string_view) -> void* { std::abort(); };
    const auto compiled = compiler_->compile(request);
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.error().message(),
              "deep does not compile: LLVM gave up: it aborted, perhaps because memory ran out");
    EXPECT_EQ(why_not(with_types(10)), "");
}

// LLVM unwinds nothing, so what it has locked stays so: in a session that nobody enters again.
TEST_F(NestingTest, MemoryThatRunsOutWhileCodeIsLinkedHoldsUpNobody) {
    const ByteBuffer plain = bitcode_of("define void @go() {\n  ret void\n}\n");
    auto earlier = compiler_->compile({.name = "deep", .bitcode = plain});
    ASSERT_TRUE(earlier) << earlier.error().message();
    const ByteBuffer asks =
        bitcode_of("declare void @wanted()\ndefine void @go() {\n  call void @wanted()\n  ret void\n}\n");
    CompileRequest request{.name = "deep", .bitcode = asks};
    request.resolve = [](std::string_view) -> void* { throw std::bad_alloc(); };
    test::llvm_loses_memory = true;
    const auto compiled = compiler_->compile(request);
    EXPECT_FALSE(compiled);
    EXPECT_EQ(why_not_compiled(plain), "");
    earlier->reset();
}

// JITLink's own way takes 1.3 GiB for them.
TEST_F(NestingTest, ManyUnwindRecordsAreLinkedTogether) {
    std::string text;
    for (int i = 0; i < 10'000; ++i) text += fmt::format("define void @f{}() uwtable {{ ret void }}\n", i);
    const ByteBuffer many = bitcode_of(text);
    rusage before{};
    rusage after{};
    getrusage(RUSAGE_SELF, &before);
    EXPECT_EQ(why_not_compiled(many), "");
    getrusage(RUSAGE_SELF, &after);
    EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 256L << 10) << "KiB";
}

std::string with_assembly(const std::string& assembly) {
    return "define void @go() {\n  call void asm sideeffect \"" + assembly + "\", \"\"()\n  ret void\n}\n";
}

TEST_F(NestingTest, AssemblySaysNoMoreThanIsWritten) {
    const auto refused = [](const std::string& what) {
        return "deep: go cannot be compiled: its assembly has " + what +
               ", which does not travel; write out what it stands for";
    };
    for (const char* const fine :
         {"nop; nop", ".pushsection .text\\0A.byte 1, 2\\0A.popsection", ".pushsection .mine, \\22a\\22\\0A.popsection",
          ".Lhere${:uid}: nop\\0Ajmp .Lhere${:uid}", "1: jmp 1b", ".balign 16", ".p2align 4", "$(nop$|nop$)",
          "nop /* .incbin */", "\\22a b\\22: nop", ".set mine, 7", ".cfi_remember_state", "mov$(l$|$) %eax, %eax",
          ".there : nop", ".ifnc %rbx, %rax; mov %rbx, %rax; .else; nop; .endif", ".if 1 == 2\\0A.byte 1\\0A.endif",
          ".pushsection .mine, \\22a\\22, @progbits\\0A.popsection"})
        EXPECT_EQ(why_not(with_assembly(fine)), "") << fine;
    for (const auto& [assembly, what] : std::initializer_list<std::pair<const char*, const char*>>{
             {".incbin \\22/dev/zero\\22", "the directive .incbin"},
             {"nop; x: 1:.INCBIN \\22/dev/zero\\22", "the directive .incbin"},
             {".ascii \\22\\5C\\5C\\22 ; .incbin \\22x\\22", "the directive .incbin"},
             {"/* a */ .rept 300000000", "the directive .rept"},
             {".if 0; .rept 300000000; .endr; .endif", "the directive .rept"},
             {".ifc a, a\\0A.else\\0A.fill 0x60000000,1,1\\0A.endif", "the directive .fill"},
             {".if$($|0$); nop; .endif", "a directive whose name is put together"},
             {".ifdef go; nop; .endif", "the directive .ifdef"},
             {".reloc ., R_X86_64_64, go", "the directive .reloc"},
             {"x : .incbin \\22/dev/zero\\22", "the directive .incbin"},
             {"\\22a b\\22:.incbin \\22x\\22", "the directive .incbin"},
             {"x$(: .fill 0x60000000,1,1$|$)", "the directive .fill"},
             {"x : ${:uid} 9", "a statement that begins with an operand"},
             {"$($|nop$)${:uid} 9", "a statement that begins with an operand"},
             {".pushsection .eh$(_frame$|_frame$)\\0A.popsection", "a section whose name is put together"},
             {".loc$(al x$|al x$)", "a directive whose name is put together"},
             {"x : .Lcomm much, 0x60000000", "the directive .lcomm"},
             {".pushsection .eh_frame, \\22a\\22\\0A.popsection", "a section of unwind tables"},
             {".pushsection .mine, \\22a\\22, @4, 24\\0A.popsection", "a section of a type of its own"},
             {".pushsection .mine, \\22a\\22, %rela\\0A.popsection", "a section of a type of its own"},
             {".pushsection .mine, \\227\\22\\0A.popsection", "a section whose flags are no letters"},
             {".balign 0x10000000", "the directive .balign"},
             {".set ., .+100000000", "the directive .set"},
             {".set \\22.\\22, 4096", "the directive .set"},
             {".set ${:uid}x, 1", "a name that is put together"},
             {"\\22.reloc\\22 0x3000, R_X86_64_64, go", "the directive .reloc"},
             {"nop; x: \\22.INCBIN\\22 \\22/etc/hostname\\22", "the directive .incbin"},
             {"\\22.re$(loc$|loc$)\\22 0x3000, R_X86_64_64, go", "a statement that begins with an operand"},
             {".data\\0A.quad 1\\0A.text", "the directive .data"},
             {".pushsection .mine, \\22aw\\22\\0A.popsection", "a section that is written to"},
             {"$(nop$|.zero 99$)", "the directive .zero"},
             {"$(nop$).skip 99", "the directive .skip"}})
        EXPECT_EQ(why_not(with_assembly(assembly)), refused(what)) << assembly;
    EXPECT_EQ(why_not("module asm \".fill 100000000\"\ndefine void @go() {\n  ret void\n}\n"),
              "deep: the assembly outside of its functions has the directive .fill, which does not travel");
}

// LLVM prints it into the assembly after that was looked at: here into a comment, which it ends.
TEST_F(NestingTest, NamesThatOperandsStandForSayNoMoreThanTheyAre) {
    const auto with_name = [](const std::string& name) {
        return "@\"" + name + "\" = internal global i8 7\ndefine void @go() {\n" +
               "  call void asm sideeffect \"nop # ${0:P}\", \"i\"(ptr @\"" + name + "\")\n  ret void\n}\n";
    };
    for (const char* const fine :
         {"x", ".str.12", "\\01x", "_ZZ1fvENK3$_0clEv", "x.llvm.77", "x@@V1", "_Z3f\\C3\\B6v", "7"})
        EXPECT_EQ(why_not(with_name(fine)), "") << fine;
    for (const char* const name :
         {"x\\0D.fill 9\\0D#", "x\\0A.fill 9", "x*/.fill", "x\\22.fill 9", "x\\\\", "x;y", "x y", "x\\01y", "x#"})
        EXPECT_EQ(
            why_not(with_name(name)),
            fmt::format("deep: go cannot be compiled: its assembly has operands, and '{}' is a name that cannot be "
                        "printed into assembly; give it a name of letters, digits and _",
                        name))
            << name;
}

// The code generator finds the name by itself: what is a pointer in the bitcode is the variable in the assembly.
TEST_F(NestingTest, NamesAreLookedAtThatOperandsDoNotHave) {
    const std::string code = R"(
@"x y" = internal global i8 7
define void @go(i1 %which) {
  br i1 %which, label %one, label %other
one:
  br label %both
other:
  br label %both
both:
  %p = phi ptr [ @"x y", %one ], [ @"x y", %other ]
  call void asm sideeffect "nop # $0", "*m"(ptr elementtype(i8) %p)
  ret void
}
)";
    EXPECT_EQ(why_not(code),
              "deep: go cannot be compiled: its assembly has operands, and 'x y' is a name that cannot be printed into "
              "assembly; give it a name of letters, digits and _");
    const std::string plain = "@\"x y\" = global i8 7\n" + with_assembly("nop");
    EXPECT_EQ(why_not(plain), "") << "without operands nothing is printed";
}

// LLVM would print them itself, past the log.
TEST_F(NestingTest, UnknownFeaturesAreNotPrinted) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(why_not("define void @go() \"target-cpu\"=\"help\" \"target-features\"=\"+avx2,+no\\0Asuch,nothing\" {\n"
                      "  ret void\n}\n"),
              "");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// Writes a file of LLVM's bitstream, by its documentation ("LLVM Bitcode File Format").
class BitWriter {
public:
    void bits(std::uint64_t value, unsigned width) {
        for (unsigned i = 0; i < width; ++i, ++at_) {
            if (at_ % 8 == 0) bytes_.push_back(std::byte{0});
            if ((value >> i & 1U) != 0) bytes_.back() |= std::byte{1} << (at_ % 8);
        }
    }
    void vbr(std::uint64_t value, unsigned width) {
        const std::uint64_t high = std::uint64_t{1} << (width - 1);
        for (; value >= high; value >>= width - 1) bits((value & (high - 1)) | high, width);
        bits(value, width);
    }
    // Blocks have abbreviations of 2 bits. Returns where its length goes.
    std::size_t enter(unsigned block) {
        bits(1, 2);
        vbr(block, 8);
        vbr(2, 4);
        align();
        bits(0, 32);
        return bytes_.size();
    }
    void leave(std::size_t begin) {
        bits(0, 2);
        align();
        const auto words = static_cast<std::uint32_t>((bytes_.size() - begin) / 4);
        std::memcpy(bytes_.data() + begin - 4, &words, 4);
    }
    void record(unsigned code, std::initializer_list<std::uint64_t> values) {
        bits(3, 2);
        vbr(code, 6);
        vbr(values.size(), 6);
        for (const std::uint64_t value : values) vbr(value, 6);
    }
    [[nodiscard]] const ByteBuffer& bytes() const { return bytes_; }

private:
    void align() {
        while (at_ % 32 != 0) bits(0, 1);
    }
    ByteBuffer bytes_;
    std::uint64_t at_ = 0;
};

// LLVM's reader makes a place for each parameter up to the one that it reads of.
TEST_F(NestingTest, AttributesAreOfAParameterThatMayBe) {
    constexpr unsigned kModule = 8, kGroups = 10, kGroup = 3;
    const auto of_parameter = [](std::uint64_t number) {
        BitWriter out;
        out.bits(0xDEC04342, 32);  // 'BC', 0xC0DE
        const std::size_t module = out.enter(kModule);
        const std::size_t groups = out.enter(kGroups);
        out.record(kGroup, {1, number, 0, 1});
        out.leave(groups);
        out.leave(module);
        return out.bytes();
    };
    EXPECT_EQ(why_not_compiled(of_parameter(4'000'000'000)),
              "deep: its bitcode has attributes of a parameter number 4000000000; 65536 is the most");
    for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{0xFFFFFFFF}})
        EXPECT_EQ(why_not_compiled(of_parameter(number)).find("parameter number"), std::string::npos) << number;
}

// So it does for those of an older LLVM, which name parameters in another block.
TEST_F(NestingTest, ListsOfAttributesOfAnOldLlvmAreRefused) {
    constexpr unsigned kModule = 8, kLists = 9, kOldList = 1;
    BitWriter out;
    out.bits(0xDEC04342, 32);
    const std::size_t module = out.enter(kModule);
    const std::size_t lists = out.enter(kLists);
    out.record(kOldList, {4'000'000, 1});
    out.leave(lists);
    out.leave(module);
    EXPECT_EQ(why_not_compiled(out.bytes()), "deep: its bitcode lists attributes as LLVM did before 3.3");
}

// libgcc walks what is registered at every exception of the process. One function's record here covers all of memory.
TEST_F(NestingTest, UnwindTablesThatBitcodeWritesAreChecked) {
    EXPECT_EQ(why_not(R"(
%table = type <{ i32, i32, [16 x i8], i32, i32, i64, i64, [8 x i8] }>
@table = constant %table <{
  i32 20, i32 0, [16 x i8] c"\01zR\00\01\78\10\01\1c\0c\07\08\90\01\00\00", i32 28, i32 28,
  i64 sub (i64 sub (i64 ptrtoint (ptr @go to i64), i64 70368744177664),
           i64 ptrtoint (ptr getelementptr (%table, ptr @table, i32 0, i32 5) to i64)),
  i64 1152921504606846975, [8 x i8] zeroinitializer }>, section ".eh_frame", align 4
define void @go() nounwind {
  ret void
}
)"),
              "deep does not compile: an unwind table of code elsewhere");
}

// It is checked once, with what the name is until it comes.
TEST_F(NestingTest, ANameThatComesLaterIsInNoUnwindTable) {
    // A CIE, and the begin of a record, which is right as long as the name is nowhere.
    const ByteBuffer bitcode = bitcode_of(R"(
@later = external global i8
@table = constant <{ [20 x i8], i64, i64, i32 }> <{
  [20 x i8] c"\10\00\00\00\00\00\00\00\01zR\00\01\78\10\01\1b\0c\07\08",
  i64 add (i64 ptrtoint (ptr @later to i64), i64 -4611685915348172784), i64 0, i32 0 }>, section ".eh_frame", align 4
define void @go() nounwind {
  ret void
}
)");
    const auto compiled = compiler_->compile({.name = "deep",
                                              .bitcode = bitcode,
                                              .resolve = [](std::string_view) { return nullptr; },
                                              .may_lack = [](std::string_view) { return true; }});
    ASSERT_TRUE(compiled) << compiled.error().message();
    EXPECT_FALSE((*compiled)->can_put("later"));
}

// A page for each byte, which the file does not show.
TEST_F(NestingTest, ZerosCountWithWhatTheyAreAlignedTo) {
    std::string text;
    for (int i = 0; i < 500; ++i) text += fmt::format("@v{} = global i8 0, align 1048576\n", i);
    EXPECT_EQ(why_not(text + "define void @go() {\n  ret void\n}\n"),
              "deep does not compile: it takes 500 MiB of memory with what it is aligned to, and 384 are the most");
}

TEST_F(NestingTest, CommonVariablesCountAsOthersDo) {
    std::string text;
    for (int i = 0; i < 500; ++i) text += fmt::format("@v{} = common global i8 0, align 1048576\n", i);
    EXPECT_EQ(why_not(text + "define void @go() {\n  ret void\n}\n"),
              "deep does not compile: it takes 500 MiB of memory with what it is aligned to, and 384 are the most");
}

std::string with_sections(int sections) {
    std::string text;
    for (int i = 0; i < sections; ++i) text += fmt::format("@v{} = constant i8 {}, section \"of{}\"\n", i, i % 100, i);
    return text + "define void @go() {\n  ret void\n}\n";
}

TEST_F(NestingTest, MoreSectionsThanTheLinkerHasMemoryForAreRefused) {
    EXPECT_EQ(why_not(with_sections(1'000)), "");
    EXPECT_NE(why_not(with_sections(2'000)).find("sections, and 1024 are the most"), std::string::npos);
}

std::string with_names(int names) {
    std::string text = "define void @go() {\n  ret void\n}\n";
    for (int i = 0; i < names; ++i) text += fmt::format("@a{} = alias void (), ptr @go\n", i);
    return text;
}

TEST_F(NestingTest, NamesForOthersAreBoundedAndCounted) {
    EXPECT_EQ(why_not(with_names(70'000)),
              "deep: it defines 70001 names of 408892 bytes, and 65536 names of 8388608 bytes are the most");
    const ByteBuffer bitcode = bitcode_of(with_names(10'000));
    const auto compiled = compiler_->compile({.name = "deep", .bitcode = bitcode, .resolve = nullptr});
    ASSERT_TRUE(compiled) << compiled.error().message();
    EXPECT_GT((*compiled)->code_bytes(), 2'000'000U);
}

std::string with_hidden_names(int names) {
    std::string text = "define void @go() {\n  ret void\n}\n";
    for (int i = 0; i < names; ++i) text += fmt::format("@a{} = hidden alias void (), ptr @go\n", i);
    return text;
}

TEST_F(NestingTest, SymbolsThatNobodyMayAskForAreBounded) {
    EXPECT_NE(why_not(with_hidden_names(270'000)).find("symbols, and 262144 are the most; divide it"),
              std::string::npos);
}

// Bytes in use. Under AddressSanitizer, which keeps freed memory for a while, as it counts them.
long bytes_in_use() {
#if __has_feature(address_sanitizer)
    return static_cast<long>(__sanitizer_get_current_allocated_bytes());
#else
    std::ifstream file("/proc/self/statm");
    long all = 0;
    long in_memory = 0;
    file >> all >> in_memory;
    return in_memory * sysconf(_SC_PAGESIZE);
#endif
}

// ORC's table of names has those of all sessions and keeps them.
TEST_F(NestingTest, NamesOfCodeThatHasGoneAreForgotten) {
    long before = 0;
    for (int round = 0; round < 12; ++round) {
        std::string text = "define void @go() {\n  ret void\n}\n";
        for (int i = 0; i < 20'000; ++i)
            text += fmt::format("@r{}n{}{} = alias void (), ptr @go\n", round, std::string(200, 'x'), i);
        EXPECT_EQ(why_not(text), "");
        if (round == 1) before = bytes_in_use();
    }
    EXPECT_LT(bytes_in_use() - before, 30L << 20) << "10 rounds have 44 MB of names";
}

// What the verifier lets through and the code generator does not foresee: a register without a name.
constexpr const char* kCrash =
    "define void @go(ptr %h, ptr %p, i64 %n) {\n  call void @llvm.write_register.i64(metadata !0, i64 7)\n  ret "
    "void\n}\n"
    "declare void @llvm.write_register.i64(metadata, i64)\n!0 = !{}\n";

TEST_F(NestingTest, WhereLlvmCrashesTheProcessGoesOn) {
    EXPECT_EQ(why_not(kCrash), "deep does not compile: LLVM gave up: it crashed (SIGSEGV)");
    EXPECT_EQ(why_not_prepared(bitcode_of(kCrash)), "the code does not compile: LLVM gave up: it crashed (SIGSEGV)");
    EXPECT_EQ(why_not(with_types(10)), "");
}

void crash_elsewhere() {
    toolchain::TemporaryFolder::remove_all();  // of this process: a death test's, which runs SetUp() once more
    volatile int* volatile nowhere = nullptr;
    *nowhere = 1;
}

TEST_F(NestingTest, OtherCrashesGoWhereTheyWent) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            struct sigaction own{};
            own.sa_handler = [](int) { _exit(77); };
            (void)sigaction(SIGSEGV, &own, nullptr);
            if (why_not(with_types(10)).empty()) crash_elsewhere();
        },
        testing::ExitedWithCode(77), "");
    EXPECT_EXIT(
        {
            (void)signal(SIGSEGV, SIG_DFL);
            if (why_not(with_types(10)).empty()) crash_elsewhere();
        },
        testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(NestingTest, SignalsThatAreSentAreMetAsEver) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    for (const int number : {SIGSEGV, SIGTRAP, SIGILL})
        EXPECT_EXIT(
            {
                (void)signal(number, SIG_DFL);
                while_work_runs([number] { (void)raise(number); });
                _exit(0);
            },
            testing::KilledBySignal(number), "");
    EXPECT_EXIT(
        {
            (void)signal(SIGTRAP, SIG_DFL);
            while_work_runs([] { __builtin_debugtrap(); });
            _exit(0);
        },
        testing::KilledBySignal(SIGTRAP), "");
}

struct sigaction found_by_program{};
std::atomic<int> times_handed_on{0};

// A handler that a program sets while work runs, and that hands on to the one that it has found.
void hand_on(int number, siginfo_t* info, void* context) {
    if (++times_handed_on > 10) _exit(99);
    if ((found_by_program.sa_flags & SA_SIGINFO) != 0) return found_by_program.sa_sigaction(number, info, context);
    (void)signal(number, SIG_DFL);
}

TEST_F(NestingTest, AHandlerThatHandsOnIsNotCalledByTheOneThatItCalls) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            (void)signal(SIGSEGV, SIG_DFL);
            while_work_runs([] {
                struct sigaction own{};
                own.sa_sigaction = &hand_on;
                own.sa_flags = SA_SIGINFO;
                (void)sigaction(SIGSEGV, &own, &found_by_program);
            });
            while_work_runs([] { crash_elsewhere(); });
            _exit(0);
        },
        testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(NestingTest, WhatIsWrongInAThousandPlacesIsSaidInAFewWords) {
    std::string text = "define i32 @go() {\nentry:\n";
    for (int i = 0; i < 1000; ++i) text += fmt::format("  %w{0} = add i32 %v{0}, 1\n  %v{0} = add i32 1, 2\n", i);
    const std::string why = why_not(text + "  ret i32 0\n}\n");
    EXPECT_NE(why.find("deep: broken bitcode: Instruction does not dominate all uses!"), std::string::npos) << why;
    EXPECT_LT(why.size(), 700U);
}

TEST_F(NestingTest, MoreMetadataThanMayNestIsRefused) {
    EXPECT_EQ(why_not(with_metadata(60'000)), "");
    EXPECT_EQ(why_not(with_metadata(70'000)),
              "deep: its bitcode has more than 65536 pieces of metadata; leave out debug information");
}

}  // namespace
}  // namespace rove::bitcode
