#include "extraction/home/constness.hpp"

#include <llvm/IR/InstIterator.h>

#include "ir.hpp"

namespace rove::bitcode {
namespace {

// Of the call in a module that has one.
struct Called {
    explicit Called(const std::string& declaration, const std::string& call)
        : module(parsed(context, "declare " + declaration + "\ndefine void @calls(ptr %p, ptr %q, i64 %n) {\n" + call +
                                     "\nret void\n}\n")) {
        for (const llvm::Instruction& each : llvm::instructions(*module->getFunction("calls")))
            if (const auto* found = llvm::dyn_cast<llvm::CallBase>(&each)) made = found;
    }
    [[nodiscard]] unsigned constness(unsigned argument) const {
        Constness of;
        return of.of(*made->getCalledFunction(), *made, argument);
    }
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> module;
    const llvm::CallBase* made = nullptr;
};

// Of a function that takes one pointer.
unsigned of_pointer_of(const std::string& function) {
    return Called("void @" + function + "(ptr)", "call void @" + function + "(ptr %p)").constness(0);
}

TEST(Constness, IsWhatTheTypeOfAParameterPromises) {
    EXPECT_EQ(of_pointer_of("_Z4readRKi"), 1U) << "read(int const&)";
    EXPECT_EQ(of_pointer_of("_Z4readPKi"), 1U) << "read(int const*)";
    EXPECT_EQ(of_pointer_of("_Z5writeRi"), 0U) << "write(int&)";
    EXPECT_EQ(of_pointer_of("_Z4takeOi"), 0U) << "take(int&&)";
    EXPECT_EQ(of_pointer_of("_Z4readRKPKi"), 2U) << "read(int const* const&)";
    EXPECT_EQ(of_pointer_of("_Z4readRKPi"), 0U) << "read(int* const&)";
}

TEST(Constness, OfAnObjectIsThatOfItsMemberFunction) {
    EXPECT_EQ(of_pointer_of("_ZNK6Object4sizeEv"), 1U);
    EXPECT_EQ(of_pointer_of("_ZN6ObjectC1Ev"), 0U);
    const Called add(
        "void @_ZN6Object3addERKi(ptr, ptr)",
        "call void @_ZN6Object3addERKi(ptr nonnull dereferenceable(8) %p, ptr nonnull dereferenceable(4) %q)");
    EXPECT_EQ(add.constness(0), 0U);
    EXPECT_EQ(add.constness(1), 1U);
}

TEST(Constness, OfAStringViewIsThatOfItsPointer) {
    const std::string name = "_Z4readSt17basic_string_viewIcSt11char_traitsIcEE";
    const Called read("void @" + name + "(i64, ptr)", "call void @" + name + "(i64 %n, ptr %p)");
    EXPECT_EQ(read.constness(1), 1U);
}

TEST(Constness, OfTheMemoryForAResultIsNone) {
    const Called made("void @_Z4makeRKi(ptr sret(i64), ptr)", "call void @_Z4makeRKi(ptr sret(i64) %p, ptr %q)");
    EXPECT_EQ(made.constness(0), 0U);
    EXPECT_EQ(made.constness(1), 1U);
}

TEST(Constness, WhereTheNameDoesNotSayWhichTypeAnArgumentHasNothingIsPromised) {
    // Of a class by value nobody knows how many arguments it is.
    const Called between(
        "void @_Z4readRKi5TupleRKi5Tuple(ptr, i64, ptr, i64)",
        "call void @_Z4readRKi5TupleRi5Tuple(ptr %p, i64 %n, ptr %q, i64 %n)\n"
        "ret void\n}\ndeclare void @_Z4readRKi5TupleRi5Tuple(ptr, i64, ptr, i64)\ndefine void @end() {");
    EXPECT_EQ(between.constness(0), 1U) << "before the class";
    const Called more("void @_Z4read5TupleRKi5Tuple(i64, i64, ptr, i64)",
                      "call void @_Z4read5TupleRKi5Tuple(i64 %n, i64 %n, ptr %p, i64 %n)");
    EXPECT_EQ(more.constness(2), 0U);
}

TEST(Constness, OfCsLibraryIsWhatLlvmKnows) {
    const Called length("i64 @strlen(ptr)", "call i64 @strlen(ptr %p)"),
        copied("ptr @memcpy(ptr, ptr, i64)", "call ptr @memcpy(ptr %p, ptr %q, i64 %n)");
    EXPECT_EQ(length.constness(0), 1U);
    EXPECT_EQ(copied.constness(0), 0U);
    EXPECT_EQ(copied.constness(1), 1U);
    const Called printed("i32 @printf(ptr, ...)", "call i32 (ptr, ...) @printf(ptr %p, ptr %q)"),
        scanned("i32 @scanf(ptr, ...)", "call i32 (ptr, ...) @scanf(ptr %p, ptr %q)");
    EXPECT_EQ(printed.constness(1), 1U);
    EXPECT_EQ(scanned.constness(1), 0U);
}

TEST(Constness, OfRegularExpressionsReachesAsFarAsTheyDo) {
    EXPECT_EQ(of_pointer_of("_ZSt11regex_matchRKi"), Constness::kAll);
}

TEST(Constness, WhatAFunctionMayGiveBack) {
    const auto may = [](const std::string& function, unsigned argument) {
        const Called called("ptr @" + function + "(ptr, ptr)", "call ptr @" + function + "(ptr %p, ptr %q)");
        return Constness::may_give_back(*called.made->getCalledFunction(), argument);
    };
    EXPECT_TRUE(may("strchr", 0));
    EXPECT_FALSE(may("strdup", 0));
    EXPECT_FALSE(may("fopen", 0));
    EXPECT_TRUE(may("_Z4pickRiS_", 1)) << "any function of the program's";
    EXPECT_TRUE(may("_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc", 0)) << "operator<<";
    EXPECT_FALSE(may("_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc", 1));
}

}  // namespace
}  // namespace rove::bitcode
