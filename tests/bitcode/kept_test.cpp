// Packages whose constants, or labels, something may point to after a call: they are pinned, and others are not.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "bitcode/compiler.hpp"
#include "compiler_test.hpp"

namespace rove::bitcode {
namespace {

// None has a static in which it could keep an address; of each, something else does: memory that it has allocated.
constexpr const char* kC =
    "#include <stdlib.h>\n#include <string.h>\n#include <stdio.h>\n#include <stdarg.h>\n"
    "#define APART __attribute__((noinline)) static\n"
    "static const char names[4][8] = {\"one\", \"two\", \"three\", \"four\"};\n"
    "static const struct row { const char *name; double value; long count; } rows[] = {{\"one\", 1, 5}, {\"two\", 2, "
    "6}, {\"three\", 3, 7}};\n"
    "struct kept { const char *name; const struct row *row; size_t number; };\n";
constexpr const char* kCpp =
    "#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include <string>\n#include <string_view>\n"
    "struct kept { std::string_view name; }; struct odd { int x; };\n";

class KeptTest : public CompilerTest<> {
protected:
    void expect(bool pinned, const std::map<std::string, std::string>& bodies) {
        for (const auto& [name, body] : bodies) {
            const bool cpp = name.ends_with(".cpp");
            const auto prepared =
                compiler_->prepare({"x86_64-linux-gnu", {bitcode_of(name, (cpp ? kCpp : kC) + body)}, false});
            ASSERT_TRUE(prepared) << name << ": " << prepared.error().message();
            EXPECT_EQ(prepared->pinned, pinned) << name;
        }
    }
};

TEST_F(KeptTest, WhatPointsToAConstantFromTheHeapPinsIt) {
    const std::string make = "struct kept *k = malloc(sizeof *k); ";
    const std::string entry = "ROVE_ENTRY void *e(int n) { " + make;
    expect(
        true,
        {{"element.c", entry + "k->name = names[n & 3]; return k; }"},
         {"row.c", entry + "k->row = &rows[n % 3]; return k; }"},
         {"of_row.c", entry + "k->name = rows[n % 3].name; return k; }"},
         {"row_copied.c",
          "ROVE_ENTRY void *e(int n) { struct row *r = malloc(sizeof *r); *r = rows[n % 3]; return r; }"},
         {"chosen.c", entry + "k->name = n > 3 ? \"some\" : \"more\"; return k; }"},
         {"searched.c",
          entry + "const char *at = \"one\\0two\\0three\\0\"; while (n-- > 0) at += strlen(at) + 1; k->name = at; "
                  "return k; }"},
         {"as_number.c", entry + "k->number = (size_t)names[n & 3] + 1; return k; }"},
         {"marked.c", entry + "k->number = (size_t)names[n & 3] | 1ul << 63; return k; }"},
         {"setter.c",
          "APART void set(struct kept *k, const char *name, int n) { k->name = name; k->number = (size_t)n; } " +
              entry + "if (n > 3) set(k, \"some\", 1); else set(k, \"more\", 2); return k; }"},
         {"given.c", "APART const char *name_of(int n) { return n > 3 ? names[n & 3] : \"none\"; } " + entry +
                         "k->name = name_of(n); return k; }"},
         {"found.c", entry + "k->name = strchr(\"one,two,three\", n); return k; }"},
         {"found_at.c", entry + "k->name = strstr(names[n & 3], (char *)&n); return k; }"},
         {"local.c",
          "APART const char *take(const char *const *from, int n) { return from[n & 3]; } " + entry +
              "const char *all[4] = {\"a\", \"b\", names[n & 1], \"d\"}; k->name = take(all, n); return k; }"},
         {"set_locally.c",
          "APART void set(const char **to, const char *name, int n) { to[n & 3] = name; } " + entry +
              "const char *all[4]; set(all, \"a\", 0); set(all, \"b\", n); k->name = all[n & 3]; return k; }"},
         {"listed.c",
          "APART const char *last(int n, ...) { va_list all; va_start(all, n); const char *at = 0; while (n-- > 0) at "
          "= va_arg(all, const char *); va_end(all); return at; } " +
              entry + "k->name = last(n, \"a\", \"b\", \"c\"); return k; }"},
         {"number_in_table.c", "static const size_t all[] = {(size_t)\"one\", (size_t)\"two\"}; " + entry +
                                   "k->number = all[n & 1]; return k; }"},
         {"label.c",
          "ROVE_ENTRY int e(void **kept) { if (!*kept) { *kept = &&a; return 0; } goto **kept; a: *kept = &&b; return "
          "1; b: return 2; }"},
         {"part.cpp",
          "ROVE_ENTRY void *e(int n) { static constexpr std::string_view all = \"alpha beta gamma delta\"; return new "
          "kept{all.substr(n, 5)}; }"},
         {"given_both.cpp",
          "[[gnu::noinline]] static std::string_view name_of(int n) { return n > 3 ? std::string_view(\"many\") : "
          "std::string_view(\"several\"); } ROVE_ENTRY void *e(int n) { return new kept{name_of(n)}; }"},
         {"thrown.cpp",
          "ROVE_ENTRY int e(int n) { try { if (n > 3) throw odd{n}; } catch (...) { return 1; } return 0; "
          "}"}});
}

// A static is such a place, too, and a library function may write the address there.
TEST_F(KeptTest, WhatALibraryFunctionMayWriteIntoAStaticPinsIt) {
    expect(true, {{"end.c",
                   "static char *end; ROVE_ENTRY int e(int n) { if (n > 1) strtol(\"12 rest\", &end, n); return "
                   "end ? *end : 0; }"},
                  {"half_distance.c",
                   "static int distance; ROVE_ENTRY int e(int n) { if (n < 10) distance = (int)((long)names[n & 3] - "
                   "(long)&distance); return *((const char *)&distance + distance); }"}});
}

TEST_F(KeptTest, WhatIsReadDuringTheCallPinsNothing) {
    const std::string entry = "ROVE_ENTRY void *e(int n) { struct kept *k = malloc(sizeof *k); ";
    expect(
        false,
        {{"printed.c", entry + "printf(\"%s %d\\n\", n > 3 ? \"many\" : \"few\", n); return k; }"},
         {"opened.c", entry + "k->number = (size_t)fopen(n > 3 ? \"/one\" : \"/two\", \"r\"); return k; }"},
         {"copied.c", entry + "strcpy((char *)k, n > 3 ? \"many\" : \"few\"); return k; }"},
         {"doubled.c", entry + "k->name = strdup(names[n & 3]); return k; }"},
         {"made.c", "struct row *made_of(const char *) __attribute__((malloc)); " + entry +
                        "k->row = made_of(names[n & 3]); return k; }"},
         {"measured.c", entry + "const char *at = strchr(names[n & 3], 'o'); k->number = at ? (size_t)(at - names[n & "
                                "3]) : 0; return k; }"},
         {"row_of_numbers.c", entry + "k->number = (size_t)rows[n % 3].count + (size_t)rows[n % 3].value; return k; }"},
         {"counted.c",
          "APART int count(const char *name, int n) { int all = 0; for (; *name; ++name) all += *name == n; return "
          "all; } " +
              entry + "k->number = (size_t)(count(\"one\", n) + count(names[n & 3], 'o')); return k; }"},
         {"passed_on.c",
          "APART int write(const char *const *all, int n) { int sum = 0; for (int i = 0; i < n; ++i) sum += "
          "puts(all[i]); return sum; } " +
              entry +
              "const char *all[4] = {\"a\", \"b\", names[n & 1], \"d\"}; k->number = (size_t)write(all, n); "
              "return k; }"},
         {"formatted.c",
          "APART int say(const char *how, ...) { va_list all; va_start(all, how); int n = vprintf(how, all); "
          "va_end(all); return n; } " +
              entry + "k->number = (size_t)say(\"%s %s\\n\", \"one\", names[n & 3]); return k; }"},
         {"appended.cpp",
          "ROVE_ENTRY int e(int n) { std::string s = \"number \" + std::to_string(n) + \" of many, one after the "
          "other\"; s += n > 3 ? \", many\" : \", few\"; return (int)s.size() + s[n]; }"},
         {"length.cpp",
          "[[gnu::noinline]] static std::string_view name_of(int n) { return n > 3 ? std::string_view(\"many\") : "
          "std::string_view(\"several\"); } ROVE_ENTRY void e(std::size_t *to, int n) { const auto name = name_of(n); "
          "*to = name.size(); std::fwrite(name.data(), 1, name.size(), stdout); }"},
         {"thrown_of_library.cpp",
          "ROVE_ENTRY int e(int n) { try { if (n > 3) throw n; } catch (int) { return 1; } "
          "return 0; }"}});
}

}  // namespace
}  // namespace rove::bitcode
