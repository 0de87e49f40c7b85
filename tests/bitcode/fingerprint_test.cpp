#include "extraction/fingerprint.hpp"

#include "ir.hpp"

namespace rove::bitcode {
namespace {

std::string program(const std::string& callee, const std::string& other = "ret i32 %n\n",
                    const std::string& more = "") {
    return "@count = global i32 5\n"
           "define i32 @callee(i32 %n) {\n" +
           callee +
           "}\n"
           "define i32 @sent(i32 %n) {\n%a = call i32 @callee(i32 %n)\nret i32 %a\n}\n"
           "define i32 @also_sent(i32 %n) {\n%a = load i32, ptr @count\nret i32 %a\n}\n"
           "define i32 @other(i32 %n) {\n" +
           other + "}\n" + more;
}

class FingerprintsOf {
public:
    explicit FingerprintsOf(
        std::initializer_list<std::string> modules, Fingerprints::More more = [](const auto&) { return ""; })
        : program_(modules), fingerprints_(program_.modules(), std::move(more)) {}
    std::optional<Digest> of(std::initializer_list<std::string> names) {
        std::vector<const llvm::Function*> functions;
        for (const std::string& name : names) functions.push_back(&program_.function(name));
        return *fingerprints_.of(functions);
    }
    Fingerprints& fingerprints() { return fingerprints_; }

private:
    ProgramOf program_;
    Fingerprints fingerprints_;
};

std::optional<Digest> of_sent(const std::string& text) {
    return FingerprintsOf({text}).of({"sent"});
}

TEST(Fingerprints, ChangeWithAllThatIsReachedAndNothingElse) {
    const auto before = of_sent(program("ret i32 %n\n"));
    ASSERT_TRUE(before);
    EXPECT_EQ(before, of_sent(program("ret i32 %n\n"))) << "of the same program";
    EXPECT_EQ(before, of_sent(program("ret i32 %n\n", "ret i32 7\n"))) << "another function has changed";
    EXPECT_NE(before, of_sent(program("ret i32 7\n"))) << "what it calls has changed";
}

TEST(Fingerprints, FollowNamesIntoOtherModules) {
    const std::string sent =
        "declare i32 @callee(i32)\ndefine i32 @sent(i32 %n) {\n%a = call i32 @callee(i32 %n)\nret i32 %a\n}\n";
    const auto with = [&](const std::string& result) {
        return FingerprintsOf({sent, "define i32 @callee(i32 %n) {\nret i32 " + result + "\n}\n"}).of({"sent"});
    };
    EXPECT_EQ(with("%n"), with("%n"));
    EXPECT_NE(with("%n"), with("7"));
}

TEST(Fingerprints, OfSeveralAreOfTheseTogether) {
    FingerprintsOf both({program("ret i32 %n\n")});
    const auto one = both.of({"sent"}), other = both.of({"also_sent"}), together = both.of({"also_sent", "sent"});
    ASSERT_TRUE(one && other && together);
    EXPECT_NE(*one, *other);
    EXPECT_NE(*together, *one);
    EXPECT_NE(*together, *other);
}

TEST(Fingerprints, HaveWhatElseBecomesOfAFunction) {
    const auto with = [](const std::string& said) {
        return FingerprintsOf({program("ret i32 %n\n")},
                              [said](const llvm::Function& function) {
                                  return function.getName() == "callee" ? said : std::string();
                              })
            .of({"sent"});
    };
    EXPECT_EQ(with("stays"), with("stays"));
    EXPECT_NE(with("stays"), with("goes"));
}

TEST(Fingerprints, AfterTheyAreClosedNothingMoreIsDigested) {
    FingerprintsOf all({program("ret i32 %n\n")});
    const auto before = all.of({"sent"});
    all.fingerprints().close();
    EXPECT_EQ(all.of({"sent"}), before);
    EXPECT_FALSE(all.of({"also_sent"})) << "by now it may have been optimised";
}

TEST(Fingerprints, ThereAreNoneWhereAFunctionIsCsLibrarys) {
    EXPECT_FALSE(of_sent(program("ret i32 %n\n", "ret i32 %n\n", "define i64 @strlen(ptr %text) {\nret i64 0\n}\n")));
}

TEST(Fingerprints, ThereIsNoneOfWhatHasNoName) {
    EXPECT_FALSE(
        of_sent("@0 = internal global i32 5\ndefine i32 @sent(i32 %n) {\n%a = load i32, ptr @0\nret i32 %a\n}\n"));
}

}  // namespace
}  // namespace rove::bitcode
