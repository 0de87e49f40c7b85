// The steps that give a package's module its shape, each by itself.
#include "bitcode/package/shape.hpp"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include "bitcode/allocation.hpp"
#include "bitcode/initial_values.hpp"
#include "bitcode/listed.hpp"
#include "bitcode/package/contraction.hpp"
#include "bitcode/package/exit_handlers.hpp"
#include "bitcode/package/inline_early.hpp"
#include "bitcode/package/library_functions.hpp"
#include "bitcode/package/needs.hpp"
#include "bitcode/package/thread_locals.hpp"
#include "ir.hpp"

namespace rove::bitcode {
namespace {

using Names = std::vector<std::string>;

class Shape : public testing::Test {
protected:
    llvm::Module& of(const std::string& text) {
        module_ = parsed(context_, text);
        return *module_;
    }
    // How often a function calls another one.
    int calls(const std::string& from, const std::string& to) {
        int count = 0;
        for (const llvm::Instruction& each : llvm::instructions(*module_->getFunction(from)))
            if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&each);
                call != nullptr && call->getCalledFunction() != nullptr && call->getCalledFunction()->getName() == to)
                ++count;
        return count;
    }
    llvm::LLVMContext context_;
    std::unique_ptr<llvm::Module> module_;
};

// ---- entries and what is seen from outside

std::string marked(const std::string& functions) {
    return "@mark = private constant [11 x i8] c\"rove.entry\\00\"\n@other_mark = private constant [2 x i8] "
           "c\"x\\00\"\n"
           "@file = private constant [2 x i8] c\"f\\00\"\n" +
           functions;
}
std::string annotation(const std::string& function, int line, const std::string& mark = "mark") {
    return "{ ptr, ptr, ptr, i32, ptr } { ptr @" + function + ", ptr @" + mark + ", ptr @file, i32 " +
           std::to_string(line) + ", ptr null }";
}
constexpr const char* kThree =
    "define void @one(ptr %h, ptr %p, i64 %n) {\nret void\n}\ndefine void @two(ptr %h, ptr %p, i64 %n) {\nret void\n}\n"
    "define void @three(ptr %h, ptr %p, i64 %n) {\nret void\n}\n";

TEST_F(Shape, EntriesAreThoseThatAreMarkedInTheOrderOfTheirLines) {
    llvm::Module& module =
        of(marked(kThree) + "@llvm.global.annotations = appending global [3 x { ptr, ptr, ptr, i32, ptr }] [" +
           annotation("two", 9) + ", " + annotation("one", 5) + ", " + annotation("three", 1, "other_mark") +
           "], section \"llvm.metadata\"\n");
    EXPECT_EQ(*take_entries(module), (Names{"one", "two"}));
    EXPECT_EQ(module.getNamedGlobal("llvm.global.annotations"), nullptr);
}

TEST_F(Shape, AnEntryIsNotAFilesOwn) {
    llvm::Module& module = of(marked("define internal void @hidden(ptr %h, ptr %p, i64 %n) {\nret void\n}\n") +
                              "@llvm.global.annotations = appending global [1 x { ptr, ptr, ptr, i32, ptr }] [" +
                              annotation("hidden", 1) + "], section \"llvm.metadata\"\n");
    const auto entries = take_entries(module);
    ASSERT_FALSE(entries);
    EXPECT_NE(entries.error().message().find("hidden"), std::string::npos);
}

TEST_F(Shape, AnEntryHasTheTypeThatNodesCall) {
    EXPECT_TRUE(check_entries(of(kThree), {"one", "two"}));
    EXPECT_FALSE(check_entries(of("define i32 @one(ptr %h, ptr %p, i64 %n) {\nret i32 0\n}\n"), {"one"}));
    EXPECT_FALSE(check_entries(of("define void @one(ptr %h, ptr %p) {\nret void\n}\n"), {"one"}));
    EXPECT_FALSE(check_entries(of("define void @one(ptr %h, ptr %p, i32 %n) {\nret void\n}\n"), {"one"}));
}

TEST_F(Shape, AllButTheEntriesIsTheModulesOwn) {
    llvm::Module& module =
        of(std::string(kThree) + "@count = global i32 1\n@second = alias void (ptr, ptr, i64), ptr @two\n");
    EXPECT_EQ(restrict_to(module, {"one"}, false), Names{});
    EXPECT_TRUE(module.getFunction("one")->hasExternalLinkage());
    EXPECT_TRUE(module.getFunction("one")->hasProtectedVisibility());
    EXPECT_TRUE(module.getFunction("two")->hasInternalLinkage());
    EXPECT_TRUE(module.getNamedGlobal("count")->hasInternalLinkage());
    EXPECT_EQ(module.getNamedAlias("second"), nullptr);
}

TEST_F(Shape, AnInterfaceExportsWhatItDefinesForOthers) {
    llvm::Module& module =
        of("define void @given() {\nret void\n}\ndefine hidden void @hidden() {\nret void\n}\n"
           "define linkonce_odr void @inlined() {\nret void\n}\n@count = global i32 1\n@own = internal global i32 1\n"
           "@each_threads = thread_local global i32 1\ndeclare void @elsewhere()\n");
    EXPECT_EQ(restrict_to(module, {}, true), (Names{"given", "count"}));
}

// ---- statics, thread-locals, constructors and destructors

TEST_F(Shape, StaticsBecomeExternalAndNumbered) {
    llvm::Module& module =
        of("@count = internal global i32 1\n@shown = global i32 2\n@constant = internal constant i32 3\n");
    std::size_t statics = 0;
    free_statics(module, {"shown"}, statics);
    EXPECT_EQ(statics, 1U);
    ASSERT_NE(module.getNamedGlobal("rove.static.0"), nullptr);
    EXPECT_TRUE(module.getNamedGlobal("rove.static.0")->hasExternalLinkage());
    EXPECT_NE(module.getNamedGlobal("shown"), nullptr) << "under its own name";
    EXPECT_TRUE(module.getNamedGlobal("constant")->hasInternalLinkage());
}

TEST_F(Shape, AThreadLocalVariableIsAskedForWhereItIsUsed) {
    llvm::Module& module =
        of("@own = internal thread_local global i64 5, align 16\n@others = external thread_local global i32\n"
           "define i64 @reads() {\n%a = call ptr @llvm.threadlocal.address.p0(ptr @own)\n%b = load i64, ptr %a\n"
           "%c = load i32, ptr @others\nret i64 %b\n}\ndeclare ptr @llvm.threadlocal.address.p0(ptr)\n");
    ASSERT_TRUE(lower_thread_locals(module));
    EXPECT_EQ(calls("reads", "__emutls_get_address"), 2);
    for (const llvm::GlobalVariable& each : module.globals())
        EXPECT_FALSE(each.isThreadLocal()) << each.getName().str();
    EXPECT_NE(module.getNamedGlobal("__emutls_v.others"), nullptr);
}

TEST_F(Shape, TheAddressOfAThreadLocalIsNoFirstValue) {
    const Status lowered = lower_thread_locals(of("@own = thread_local global i64 5\n@at = global ptr @own\n"));
    ASSERT_FALSE(lowered);
    EXPECT_NE(lowered.error().message().find("own"), std::string::npos);
}

TEST_F(Shape, ExitHandlersAreRegisteredForThePackage) {
    llvm::Module& module =
        of("declare i32 @atexit(ptr)\ndefine i32 @f(ptr %p) {\n%a = call i32 @atexit(ptr %p)\nret i32 %a\n}\n");
    define_exit_handlers(module);
    ASSERT_FALSE(module.getFunction("atexit")->isDeclaration());
    EXPECT_EQ(calls("atexit", "__cxa_atexit"), 1);
    EXPECT_NE(module.getNamedGlobal("__dso_handle"), nullptr);
}

// The handle in place of an object says that they are functions, and not what destroys an object.
TEST_F(Shape, FunctionsForTheEndHaveTheHandleAsTheirObject) {
    llvm::Module& module =
        of("declare i32 @atexit(ptr)\ndefine i32 @f(ptr %p) {\n%a = call i32 @atexit(ptr %p)\nret i32 %a\n}\n"
           "define void @last() {\nret void\n}\n"
           "@llvm.global_dtors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @last, "
           "ptr null }]\n");
    define_exit_handlers(module);
    register_destructors(module);
    int registered = 0;
    for (const llvm::User* user : module.getFunction("__cxa_atexit")->users()) {
        const auto* call = llvm::cast<llvm::CallBase>(user);
        EXPECT_EQ(call->getArgOperand(1), module.getNamedGlobal("__dso_handle"));
        ++registered;
    }
    EXPECT_EQ(registered, 2);
}

TEST_F(Shape, DestructorsAreRegisteredBeforeAllConstructors) {
    llvm::Module& module = of(
        "define void @first() {\nret void\n}\ndefine void @last() {\nret void\n}\ndefine void @begin() {\nret void\n}\n"
        "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @begin, ptr "
        "null }]\n"
        "@llvm.global_dtors = appending global [2 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @last, ptr "
        "null }, "
        "{ i32, ptr, ptr } { i32 200, ptr @first, ptr null }]\n");
    register_destructors(module);
    EXPECT_EQ(module.getNamedGlobal("llvm.global_dtors"), nullptr);
    const std::vector<Listed> constructors = listed(module, kConstructors);
    ASSERT_EQ(constructors.size(), 2U);
    EXPECT_EQ(constructors[0].function, module.getFunction("begin"));
    EXPECT_EQ(constructors[1].priority, 0U);
    Names order;
    for (const llvm::Instruction& each : llvm::instructions(*llvm::cast<llvm::Function>(constructors[1].function)))
        if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&each))
            order.push_back(call->getArgOperand(0)->getName().str());
    EXPECT_EQ(order, (Names{"first", "last"})) << "the last that is registered runs first";
}

// ---- what is compiled, and for which CPU

TEST_F(Shape, OnlyTheCpuThatWasMeantIsKept) {
    llvm::Module& module =
        of("define void @plain() \"target-cpu\"=\"x86-64\" \"target-features\"=\"+cx8,+sse2,-avx\" {\nret void\n}\n"
           "define void @meant() \"target-cpu\"=\"x86-64\" \"target-features\"=\"+avx2,+sse2\" {\nret void\n}\n");
    generalise_cpu(module);
    EXPECT_FALSE(module.getFunction("plain")->hasFnAttribute("target-features"));
    EXPECT_TRUE(module.getFunction("meant")->hasFnAttribute("target-features"));
    EXPECT_FALSE(module.getFunction("meant")->hasFnAttribute("target-cpu"));
}

TEST_F(Shape, ThunksOfTheProgramAreTheCodeGeneratorsOwn) {
    llvm::Module& module =
        of("define void @plain() \"target-features\"=\"+cx8,+retpoline-external-thunk,"
           "+retpoline-indirect-calls\" {\nret void\n}\n");
    generalise_cpu(module);
    EXPECT_EQ(module.getFunction("plain")->getFnAttribute("target-features").getValueAsString(),
              "+cx8,+retpoline-indirect-calls");
}

TEST_F(Shape, ProductsAndSumsAreRoundedAsTheProgramDoes) {
    llvm::Module& module =
        of("declare double @llvm.fmuladd.f64(double, double, double)\n"
           "define double @twice(double %a) {\n%b = call double @llvm.fmuladd.f64(double %a, double %a, double "
           "%a)\nret double %b\n}\n"
           "define double @once(double %a) \"target-features\"=\"+fma\" {\n%b = call double @llvm.fmuladd.f64(double "
           "%a, double %a, double %a)\nret double %b\n}\n");
    settle_contraction(module);
    EXPECT_EQ(calls("twice", "llvm.fmuladd.f64"), 0);
    EXPECT_EQ(calls("once", "llvm.fmuladd.f64"), 1);
}

TEST_F(Shape, NeedsAreOfEachEntryAndOfTheWhole) {
    const llvm::Module& module =
        of("declare void @in_constructor()\ndeclare void @in_one()\ndeclare extern_weak void @weak()\n@in_two = "
           "external global i32\n"
           "define internal void @callee() {\ncall void @in_one()\ncall void @weak()\nret void\n}\n"
           "define void @one() {\ncall void @callee()\nret void\n}\n"
           "define void @two() {\n%a = load i32, ptr @in_two\nret void\n}\n"
           "define void @begin() {\ncall void @in_constructor()\nret void\n}\n"
           "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @begin, "
           "ptr null }]\n");
    EXPECT_EQ(needs_of(module, {"one", "two"}, {}), (std::vector<Names>{{"in_constructor"}, {"in_one"}, {"in_two"}}));
}

TEST_F(Shape, AnEntryNeedsTheCpuThatItWasCompiledFor) {
    const llvm::Module& module =
        of("define void @plain() {\nret void\n}\ndefine void @meant() \"target-features\"=\"+avx2\" {\nret void\n}\n");
    const std::vector<Names> needs = cpu_needs_of(module, {"plain", "meant"}, {});
    ASSERT_EQ(needs.size(), 3U);
    EXPECT_TRUE(needs[0].empty() && needs[1].empty());
    ASSERT_EQ(needs[2].size(), 1U);
    EXPECT_NE(needs[2].front().find("avx2"), std::string::npos) << needs[2].front();
}

// ---- what variables begin with

TEST_F(Shape, VariablesBeginWithZerosWhereTheCompilerLeftItOpen) {
    llvm::Module& module =
        of("@part = global { i32, [4 x i8], [2 x { i8, i16 }] } { i32 1, [4 x i8] undef, "
           "[2 x { i8, i16 }] [{ i8, i16 } { i8 2, i16 undef }, { i8, i16 } poison] }\n"
           "@vector = global <2 x i32> <i32 undef, i32 7>\n@whole = global [9 x i8] poison\n"
           "@of_address = global { ptr, i32 } { ptr @part, i32 undef }\n@declared = external global i32\n");
    define_initial_values(module);
    const auto begins = [&module](const char* name) {
        std::string text;
        llvm::raw_string_ostream(text) << *module.getNamedGlobal(name)->getInitializer();
        return text;
    };
    EXPECT_EQ(begins("part"),
              "{ i32, [4 x i8], [2 x { i8, i16 }] } { i32 1, [4 x i8] zeroinitializer, [2 x { i8, i16 }] "
              "[{ i8, i16 } { i8 2, i16 0 }, { i8, i16 } zeroinitializer] }");
    EXPECT_EQ(begins("vector"), "<2 x i32> <i32 0, i32 7>");
    EXPECT_EQ(begins("whole"), "[9 x i8] zeroinitializer");
    EXPECT_EQ(begins("of_address"), "{ ptr, i32 } { ptr @part, i32 0 }");
    EXPECT_FALSE(module.getNamedGlobal("declared")->hasInitializer());
}

// ---- the program's own copies of what nodes have

TEST_F(Shape, AReplacedAllocatorStaysAtHome) {
    llvm::Module& module =
        of("define ptr @_Znwm(i64 %n) {\nret ptr null\n}\ndefine ptr @strdup(ptr %p) {\nret ptr %p\n}\n"
           "define ptr @uses(i64 %n) {\n%a = call ptr @_Znwm(i64 %n)\nret ptr %a\n}\n");
    EXPECT_EQ(leave_out_allocation(module), Names{"operator new(unsigned long)"});
    EXPECT_TRUE(module.getFunction("_Znwm")->isDeclaration());
    EXPECT_EQ(calls("uses", "_Znwm"), 1);
    EXPECT_FALSE(module.getFunction("strdup")->isDeclaration()) << "malloc() is not the program's own";
}

TEST_F(Shape, WhatHasAnAllocatorsNameAndAnotherTypeIsTheProgramsOwn) {
    llvm::Module& module =
        of("@valloc = global [4 x double] zeroinitializer\n@malloc_usable_size = global i32 3\n"
           "@pvalloc = alias i32 (i32), ptr @memalign\n"
           "define i32 @memalign(i32 %n) {\nret i32 %n\n}\ndefine double @cfree(double %n) {\nret double %n\n}\n"
           "define void @free(ptr %p) {\nret void\n}\n");
    EXPECT_EQ(leave_out_allocation(module), Names{"free"});
    for (const char* name : {"valloc", "malloc_usable_size", "pvalloc", "memalign", "cfree"})
        EXPECT_FALSE(module.getNamedValue(name)->isDeclaration()) << name;
}

TEST_F(Shape, WithAMallocOfItsOwnGoesWhatAllocatesByIt) {
    llvm::Module& module =
        of("define ptr @malloc(i64 %n) {\nret ptr null\n}\ndefine ptr @strdup(ptr %p) {\nret ptr %p\n}\n");
    EXPECT_EQ(leave_out_allocation(module).size(), 2U);
    EXPECT_TRUE(module.getFunction("strdup")->isDeclaration());
}

// One part of an allocator that stays here would get memory of the node's.
TEST_F(Shape, WithAMallocOfItsOwnGoesAllOfItsAllocatorWhateverItsTypes) {
    llvm::Module& module =
        of("@valloc = global [4 x double] zeroinitializer\n"
           "define ptr @malloc(i32 %n) {\nret ptr null\n}\ndefine i32 @free(ptr %p) {\nret i32 0\n}\n"
           "define ptr @memalign(i32 %a, i32 %n) {\nret ptr null\n}\ndefine void @cfree(ptr %p) {\nret void\n}\n"
           "define i32 @malloc_usable_size(ptr %p) {\nret i32 0\n}\n");
    EXPECT_EQ(leave_out_allocation(module).size(), 5U);
    EXPECT_FALSE(module.getNamedValue("valloc")->isDeclaration()) << "a variable";
}

TEST_F(Shape, LibraryFunctionsAreSeenWhileTheOptimiserWorks) {
    llvm::Module& module =
        of("define i64 @strlen(ptr %p) {\nret i64 0\n}\ndefine i64 @other(ptr %p) {\nret i64 0\n}\n"
           "define i64 @entry(ptr %p) {\n%a = call i64 @strlen(ptr %p)\nret i64 %a\n}\n");
    LibraryFunctions own(module);
    (void)restrict_to(module, {"entry"}, false);
    own.begin();
    EXPECT_TRUE(module.getFunction("strlen")->hasExternalLinkage());
    EXPECT_TRUE(module.getFunction("other")->hasInternalLinkage());
    own.end();
    EXPECT_TRUE(module.getFunction("strlen")->hasInternalLinkage());
}

TEST_F(Shape, SmallFunctionsGoIntoTheirCallersFirst) {
    llvm::Module& module =
        of("define internal i32 @small(i32 %n) {\n%a = add i32 %n, 1\nret i32 %a\n}\n"
           "define internal i32 @refuses(i32 %n) noinline {\nret i32 %n\n}\n"
           "define internal i32 @large_frame(i32 %n) {\n%a = alloca [4096 x i8]\nstore volatile i8 1, ptr %a\nret i32 "
           "%n\n}\n"
           "define i32 @entry(i32 %n) {\n%a = call i32 @small(i32 %n)\n%b = call i32 @refuses(i32 %a)\n%c = call i32 "
           "@large_frame(i32 %b)\nret i32 %c\n}\n");
    const auto machine = target_machine("x86_64-linux-gnu");
    ASSERT_TRUE(machine);
    inline_early(module, **machine);
    EXPECT_EQ(module.getFunction("small"), nullptr) << "nobody calls it any more";
    EXPECT_EQ(calls("entry", "refuses"), 1);
    EXPECT_EQ(calls("entry", "large_frame"), 1) << "LLVM decides, which knows who calls whom";
}

}  // namespace
}  // namespace rove::bitcode
