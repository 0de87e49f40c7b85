#include "extraction/definitions.hpp"

#include <map>

#include "ir.hpp"

namespace rove::bitcode {
namespace {

// What is known from one bundling to the next, in memory.
class Notes final : public KnownFacts {
public:
    [[nodiscard]] const Facts* find(const Digest& /*fingerprint*/) const override { return nullptr; }
    void keep(const Digest& /*fingerprint*/, const Facts& /*facts*/) override {}
    [[nodiscard]] bool has_package(const Digest& /*bitcode*/) override { return true; }
    [[nodiscard]] Bytes definitions(const Digest& module) const override {
        const auto found = noted.find(module);
        return found != noted.end() ? Bytes(found->second) : Bytes();
    }
    void keep_definitions(const Digest& module, ByteBuffer notes) override { noted[module] = std::move(notes); }
    std::map<Digest, ByteBuffer> noted;
};

std::string program(const std::string& one, const std::string& more = "") {
    return "@count = global i32 5\ndeclare i32 @elsewhere(i32)\ndefine i32 @callee(i32 %n) {\nret i32 %n\n}\n"
           "define i32 @one(i32 %n) {\n" +
           one + "}\n" + more;
}
constexpr const char* kCalls =
    "%a = call i32 @callee(i32 %n)\n%b = load i32, ptr @count\n%c = call i32 @elsewhere(i32 %b)\nret i32 %c\n";

Definitions::Definition of(ProgramOf& program, const std::string& name) {
    return *Definitions(program.modules()).of(*program.module().getNamedValue(name));
}

TEST(Definitions, NameWhatTheyReachInOrder) {
    ProgramOf of_calls({program(kCalls)});
    const Definitions::Definition one = of(of_calls, "one");
    EXPECT_TRUE(one.is_known);
    std::vector<std::string> names;
    for (const llvm::GlobalValue* each : one.reaches) names.push_back(each->getName().str());
    EXPECT_EQ(names, (std::vector<std::string>{"callee", "count", "elsewhere"}));
}

TEST(Definitions, AreDigestedEachByItself) {
    ProgramOf before({program(kCalls)}), other({program("ret i32 %n\n")}),
        more({program(kCalls, "define i32 @more(i32 %n) {\nret i32 7\n}\n")});
    EXPECT_NE(of(before, "one").digest, of(other, "one").digest);
    EXPECT_EQ(of(before, "callee").digest, of(other, "callee").digest);
    EXPECT_EQ(of(before, "one").digest, of(more, "one").digest);
    EXPECT_EQ(of(before, "count").digest, of(more, "count").digest);
}

TEST(Definitions, OfAVariableHaveItsFirstValue) {
    ProgramOf five({"@count = global i32 5\n"}), six({"@count = global i32 6\n"});
    EXPECT_NE(of(five, "count").digest, of(six, "count").digest);
    EXPECT_EQ(Definitions::declaration_of(*five.module().getNamedValue("count")),
              Definitions::declaration_of(*six.module().getNamedValue("count")))
        << "others see the same";
}

TEST(Definitions, ThatHaveNoNameAndAddressesOfLabelsAreUnknown) {
    ProgramOf unnamed({"@0 = global i32 5\n"}),
        labels({"define ptr @jumps() {\nbr label %next\nnext:\nret ptr blockaddress(@jumps, %next)\n}\n"});
    EXPECT_FALSE(Definitions(unnamed.modules()).of(*unnamed.module().global_begin())->is_known);
    EXPECT_FALSE(of(labels, "jumps").is_known);
}

TEST(Definitions, ThatWereNotedAreNotRead) {
    Notes notes;
    const auto noted = [&notes](ProgramOf& program) {
        Definitions definitions(program.modules());
        definitions.recall(notes);
        const Definitions::Definition one = *definitions.of(program.function("one"));
        definitions.note(notes);
        return one;
    };
    ProgramOf first({program(kCalls)}), again({program(kCalls)}), changed({program("ret i32 %n\n")});
    const Definitions::Definition before = noted(first), after = noted(again);
    EXPECT_FALSE(first.function("one").isMaterializable());
    EXPECT_TRUE(again.function("one").isMaterializable()) << "its body was read";
    EXPECT_EQ(after.digest, before.digest);
    EXPECT_EQ(after.reaches.size(), before.reaches.size());
    EXPECT_EQ(noted(changed).digest, of(changed, "one").digest);
    EXPECT_NE(of(changed, "one").digest, before.digest);
}

TEST(Definitions, NotesWithOtherBytesGiveNoOtherDigest) {
    Notes notes;
    ProgramOf first({program(kCalls)});
    Definitions definitions(first.modules());
    definitions.recall(notes);
    const Digest digest = definitions.of(first.function("one"))->digest;
    definitions.note(notes);
    ASSERT_EQ(notes.noted.size(), 1U);
    ByteBuffer& kept = notes.noted.begin()->second;
    ASSERT_FALSE(kept.empty());
    kept.pop_back();
    ProgramOf again({program(kCalls)});
    Definitions known(again.modules());
    known.recall(notes);
    EXPECT_EQ(known.of(again.function("one"))->digest, digest) << "of notes that are cut short nothing is taken";
    EXPECT_FALSE(again.function("one").isMaterializable());
}

}  // namespace
}  // namespace rove::bitcode
