// What a package and a program do with their own functions of the C library's names.
#include "bitcode/library_calls.hpp"

#include <llvm/IR/Instructions.h>

#include <iterator>

#include "bitcode/emit.hpp"
#include "bitcode/package/library_functions.hpp"
#include "bitcode/package/prepare.hpp"
#include "bitcode/package/shape.hpp"
#include "ir.hpp"

namespace rove::bitcode {
namespace {

class LibraryCalls : public testing::Test {
protected:
    llvm::Module& of(const std::string& text) {
        module_ = parsed(context_, text);
        return *module_;
    }
    // Those of one instruction, with the declarations that it needs.
    std::set<std::string> calls(const std::string& declarations, const std::string& instruction) {
        return library_calls_of(of(declarations +
                                   "\ndefine void @f(ptr %p, i64 %n, double %d, float %s, x86_fp80 %l, "
                                   "<2 x double> %v) {\n" +
                                   instruction + "\nret void\n}\n"));
    }
    // A function as it is when its package is prepared for this machine.
    llvm::Function* settled(const std::string& text, const std::string& entry) {
        llvm::Module& module = of(text);
        const auto machine = target_machine("x86_64-linux-gnu");
        module.setDataLayout((*machine)->createDataLayout());
        LibraryFunctions own(module);
        (void)restrict_to(module, {entry}, false);
        own.begin();
        leave_out_unreached(module);
        own.end();
        EXPECT_TRUE(own.settle(**machine));
        called_ = own.called();
        return module.getFunction(entry);
    }
    static std::vector<std::string> callees(const llvm::Function& function) {
        std::vector<std::string> names;
        for (const llvm::BasicBlock& block : function)
            for (const llvm::Instruction& each : block)
                if (const auto* call = llvm::dyn_cast<llvm::CallInst>(&each))
                    names.push_back(call->getCalledFunction()->getName().str());
        return names;
    }
    std::vector<std::string> called_;

private:
    llvm::LLVMContext context_;
    std::unique_ptr<llvm::Module> module_;
};

using Names = std::set<std::string>;

TEST_F(LibraryCalls, AreOfTheIntrinsicsNameAndType) {
    EXPECT_EQ(calls("declare double @llvm.round.f64(double)", "%a = call double @llvm.round.f64(double %d)"),
              Names{"round"});
    EXPECT_EQ(calls("declare float @llvm.sin.f32(float)", "%a = call float @llvm.sin.f32(float %s)"), Names{"sinf"});
    EXPECT_EQ(calls("declare x86_fp80 @llvm.exp.f80(x86_fp80)", "%a = call x86_fp80 @llvm.exp.f80(x86_fp80 %l)"),
              Names{"expl"});
    EXPECT_EQ(calls("declare <2 x double> @llvm.floor.v2f64(<2 x double>)",
                    "%a = call <2 x double> @llvm.floor.v2f64(<2 x double> %v)"),
              Names{"floor"});
    EXPECT_EQ(calls("declare double @llvm.maxnum.f64(double, double)",
                    "%a = call double @llvm.maxnum.f64(double %d, double %d)"),
              Names{"fmax"});
    EXPECT_EQ(calls("declare double @llvm.experimental.constrained.rint.f64(double, metadata, metadata)",
                    "%a = call double @llvm.experimental.constrained.rint.f64(double %d, metadata "
                    "!\"round.dynamic\", metadata !\"fpexcept.strict\") strictfp"),
              Names{"rint"});
    EXPECT_EQ(calls("", "%a = frem float %s, %s"), Names{"fmodf"});
    EXPECT_EQ(calls("", "%a = fadd float %s, %s"), Names{});
}

TEST_F(LibraryCalls, OfMemoryAreOfMoreBytesThanFewRegistersHave) {
    const std::string copy = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)";
    EXPECT_EQ(calls(copy, "call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %p, i64 %n, i1 false)"), Names{"memcpy"});
    EXPECT_EQ(calls(copy, "call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %p, i64 65, i1 false)"), Names{"memcpy"});
    EXPECT_EQ(calls(copy, "call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %p, i64 64, i1 false)"), Names{});
    EXPECT_EQ(calls("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
                    "call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %n, i1 false)"),
              Names{"memset"});
}

constexpr const char* kOwn = R"(
declare double @llvm.round.f64(double)
declare double @llvm.sqrt.f64(double)
declare double @other(double)
define double @round(double %x) {
  %a = call double @other(double %x)
  ret double %a
}
define double @sqrt(double %x) {
  ret double 1.0
}
define double @trunc(double %x) {
  %a = call double @llvm.round.f64(double %x)
  ret double %a
}
)";

TEST_F(LibraryCalls, OfIntrinsicsThatTheMachineHasNotAreOfThePackagesOwnFunction) {
    const llvm::Function* const entry = settled(std::string(kOwn) + R"(
define double @entry(double %x) {
  %a = call double @llvm.round.f64(double %x)
  %b = call double @llvm.sqrt.f64(double %a)
  ret double %b
}
)",
                                                "entry");
    EXPECT_EQ(callees(*entry), (std::vector<std::string>{"round.own", "llvm.sqrt.f64"}))
        << "natively this machine's instruction computes square roots";
    EXPECT_EQ(entry->getParent()->getFunction("sqrt"), nullptr);
    EXPECT_EQ(entry->getParent()->getFunction("trunc"), nullptr) << "nothing calls it";
}

TEST_F(LibraryCalls, OfVectorsAreOfTheirElements) {
    const llvm::Function* const entry = settled(std::string(kOwn) + R"(
declare <2 x double> @llvm.round.v2f64(<2 x double>)
define <2 x double> @entry(<2 x double> %x) {
  %a = call <2 x double> @llvm.round.v2f64(<2 x double> %x)
  ret <2 x double> %a
}
)",
                                                "entry");
    EXPECT_EQ(callees(*entry), (std::vector<std::string>{"round.own", "round.own"}));
}

TEST_F(LibraryCalls, OfWhatOnlyUnreachedCodeCallsAreLeftOut) {
    const llvm::Function* const entry = settled(std::string(kOwn) + R"(
define double @entry(double %x) {
  ret double %x
}
)",
                                                "entry");
    EXPECT_EQ(entry->getParent()->getFunction("round"), nullptr);
    EXPECT_EQ(entry->getParent()->getFunction("round.own"), nullptr);
}

TEST_F(LibraryCalls, OfMemoryReachAFunctionOfThatName) {
    const llvm::Function* const entry = settled(R"(
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define internal ptr @copies(ptr %to, ptr %from, i64 %n) {
  store volatile i64 %n, ptr %to
  ret ptr %to
}
@memcpy = alias ptr (ptr, ptr, i64), ptr @copies
define void @entry(ptr %p, i64 %n) {
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %p, i64 %n, i1 false)
  ret void
}
)",
                                                "entry");
    const llvm::Function* const own = entry->getParent()->getFunction("memcpy");
    ASSERT_NE(own, nullptr);
    EXPECT_TRUE(own->hasHiddenVisibility() && !own->isDeclaration());
    EXPECT_EQ(callees(*entry), std::vector<std::string>{"llvm.memcpy.p0.p0.i64"});
    EXPECT_EQ(called_, std::vector<std::string>{"memcpy"});
}

// No code mentions the function, and so none of its names would be needed by any entry.
TEST_F(LibraryCalls, NeedTheNamesOfWhatTheyReach) {
    const auto prepared = prepare({.triple = "x86_64-linux-gnu",
                                   .modules = {section_of({R"(
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare ptr @copies_elsewhere(ptr, ptr, i64)
define ptr @memcpy(ptr %to, ptr %from, i64 %n) {
  %a = call ptr @copies_elsewhere(ptr %to, ptr %from, i64 %n)
  ret ptr %a
}
define void @entry(ptr %p, ptr %q, i64 %n) {
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 %n, i1 false)
  ret void
}
)"})},
                                   .interface = false,
                                   .entries = {"entry"}});
    ASSERT_TRUE(prepared) << prepared.error().message();
    EXPECT_EQ(prepared->imports, std::vector<std::string>{"copies_elsewhere"});
    EXPECT_EQ(prepared->needs.front(), std::vector<std::string>{"copies_elsewhere"});
}

TEST_F(LibraryCalls, OfAProgramReachItsOwnFunctionInAnotherFile) {
    ProgramOf program(
        {"declare double @llvm.round.f64(double)\ndeclare double @llvm.floor.f64(double)\n"
         "define double @sent(double %x) {\n%a = call double @llvm.round.f64(double %x)\n%b = call double "
         "@llvm.floor.f64(double %a)\nret double %b\n}\n",
         "define double @round(double %x) {\nret double %x\n}\n@floor = global i32 3\n"});
    llvm::Function& sent = program.function("sent");
    ASSERT_TRUE(program.modules().read_body(sent));
    const llvm::BasicBlock& body = sent.getEntryBlock();
    EXPECT_EQ(*program.modules().called_for(body.front()), &program.function("round", 1));
    EXPECT_EQ(*program.modules().called_for(*std::next(body.begin())), nullptr) << "a variable of that name";
}

}  // namespace
}  // namespace rove::bitcode
