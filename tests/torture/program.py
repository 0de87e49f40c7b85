"""What tests/torture/torture knows of one program: what DejaGnu's lines ask for, and how its main becomes an entry."""
import fnmatch
import platform
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
MACHINE = platform.machine()
TARGET = {"x86_64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}.get(MACHINE, MACHINE + "-linux-gnu")
TRIPLE = MACHINE + "-pc-linux-gnu"  # what selectors are matched with
ENDINGS_OF_C = {".c"}
ENDINGS_OF_CPP = {".cpp", ".cc", ".cxx", ".C"}
# What DejaGnu calls effective targets and this machine is not; any other name without a hyphen is taken for true, because the native
# run is the yardstick: what the machine lacks fails there.
NOT_HERE = {"ilp32", "ia32", "x32", "llp64", "int16", "ptr_eq_short", "simulator", "newlib", "c++98_only", "c++11_only", "c++11_down",
            "c++14_down", "hosted_not", "default_packed", "avr", "uclibc", "mmix", "keeps_null_pointer_checks"}
# What the suites' own drivers compile with, by folder, where a program names no standard.
STANDARD_OF_FOLDER = {"coroutines": "-std=gnu++20", "modules": "-std=gnu++20", "cpp2a": "-std=gnu++20", "cpp23": "-std=gnu++23"}
FLAGS_TAKEN = re.compile(r"-(std=|f|D|U|m|pthread$)")
# Old C, which newer compilers refuse unless told.
FLAGS_OF_OLD_C = ["-Wno-implicit-function-declaration", "-Wno-implicit-int", "-Wno-int-conversion", "-Wno-return-type",
                  "-Wno-incompatible-function-pointer-types", "-Wno-return-mismatch"]
NEEDS_OTHERS = re.compile(r"\{\s*dg-(error|shouldfail|additional-sources|additional-files|set-target-env-var|xfail-run-if|skip-if-all|"
                          r"require-(namedlocale|fileio|static|debug|iconv|fork|sharedlib|profiling))")


class Skipped(Exception):
    """Why a program is not run."""


def holds(selector):
    """Whether a DejaGnu target selector, without its outer braces, names this machine."""
    words = re.findall(r"\{|\}|&&|\|\||!|[^\s{}!&|]+", selector)

    def atom(word):
        if word in NOT_HERE:
            return False
        if word.count("-") >= 2 or "*" in word:
            return fnmatch.fnmatch(TRIPLE, word)
        return True

    def one(at):
        if at >= len(words):
            return True, at
        if words[at] == "!":
            value, at = one(at + 1)
            return not value, at
        if words[at] == "{":
            value, at = any_of(at + 1)
            return value, at + 1
        return atom(words[at]), at + 1

    def any_of(at):
        value, at = one(at)
        while at < len(words) and words[at] != "}":
            if words[at] == "&&":
                other, at = one(at + 1)
                value = value and other
            else:  # a list without operators means any of them
                other, at = one(at + 1 if words[at] == "||" else at)
                value = value or other
        return value, at

    return any_of(0)[0]


def inner_of_braces(text, start):
    """What is between the brace at `start` and the one that closes it."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start + 1:at]
    return text[start + 1:]


def directives(text, name):
    """The arguments of each `{ name … }`."""
    for found in re.finditer(r"\{\s*" + name + r"\b", text):
        yield inner_of_braces(text, found.start())[len(found[0]) - 1:].strip()


def selected(arguments):
    found = re.search(r"\{\s*target\b", arguments)
    return holds(inner_of_braces(arguments, found.start()).strip()[len("target"):]) if found else True


def check_it_is_run(text):
    """Throws Skipped unless the program is to be run here. One without any dg-do is taken for one that is."""
    kinds = list(directives(text, "dg-do"))
    for kind in kinds:
        if kind.split()[0] != "run":
            raise Skipped("is not run: dg-do " + kind.split()[0])
        if "xfail" in kind:
            raise Skipped("is expected to fail")
        if not selected(kind):
            raise Skipped("is for other targets")
    for wanted in directives(text, r"dg-require-effective-target"):
        if not holds(wanted):
            raise Skipped("is for other targets")
    if found := NEEDS_OTHERS.search(text):
        raise Skipped("needs dg-" + found[1])
    if any(flag.startswith("-fsanitize") for flag in flags_of(text)):
        raise Skipped("needs a sanitizer's runtime, and rove build refuses its calls")


def flags_of(text):
    flags = []
    for arguments in directives(text, r"dg-(?:additional-)?options"):
        if selected(arguments):
            quoted = re.match(r'"([^"]*)"', arguments)
            given = quoted[1] if quoted else inner_of_braces(arguments, 0) if arguments.startswith("{") else arguments
            flags += [flag for flag in given.split() if FLAGS_TAKEN.match(flag)]
    return flags


def end_of_block(text, start):
    """Where the brace that closes the one at `start` is; comments, strings and characters are passed over."""
    depth = 0
    for token in re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|(?<![0-9A-Za-z])\'(?:\\.|[^\'\\])*\'|[{}]', re.S).finditer(text, start):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return token.start()
    return None


def above(path, folder_wanted):
    """The nearest folder above `path` that has `folder_wanted`."""
    return next((folder for folder in path.parents if (folder / folder_wanted).exists()), None)


def standard_of(path):
    """Of a C++ program that names none."""
    return next((STANDARD_OF_FOLDER[part] for part in reversed(path.parts) if part in STANDARD_OF_FOLDER), "-std=gnu++17")


class Program:
    """One source file. `wrap` writes the sources that are compiled natively and built into a package."""

    def __init__(self, path, suite):
        self.path, self.suite = path, suite
        self.is_cpp = path.suffix in ENDINGS_OF_CPP
        self.text = path.read_text(errors="surrogateescape")
        check_it_is_run(self.text)
        self.flags = flags_of(self.text)
        if not any(flag.startswith("-std=") for flag in self.flags):
            self.flags.insert(0, standard_of(path) if self.is_cpp else "-std=gnu17")
        if any(re.fullmatch(r"-std=(gnu|c)\+\+(98|03)", flag) for flag in self.flags):
            raise Skipped("is C++98, and rove.h needs C++11")
        self.flags += ["-w", f"-I{path.parent}"] + ([] if self.is_cpp else FLAGS_OF_OLD_C)
        if tests := above(path, "util/testsuite_hooks.h"):  # libstdc++'s helpers
            self.flags.append(f"-I{tests}/util")
        self.find_main()

    def find_main(self):
        mains = [found for found in re.finditer(r"\bmain\s*\(([^)]*)\)", self.text)
                 if self.text.find("{", found.end()) >= 0]
        if not mains:
            raise Skipped("has no main")
        self.main = mains[-1]
        self.end = end_of_block(self.text, self.text.find("{", self.main.end()))
        if self.end is None:
            raise Skipped("has a main whose end is not found")

    def wrap(self, folder):
        """Writes the program and its wrapper into `folder`; both become a package together."""
        folder.mkdir(parents=True, exist_ok=True)
        ending = ".cpp" if self.is_cpp else ".c"
        head = f'#include "{HERE}/prelude.h"\n'
        if self.is_cpp:
            parameters = " ".join(re.sub(r"//[^\n]*|/\*.*?\*/", "", self.main[1], flags=re.S).split())
            head += f'extern "C" int torture_main({parameters});\n'
        # A main that does not say what it returns returns 0; another function would not.
        returns_nothing = re.search(r"\bvoid\s*$", self.text[:self.main.start()])
        text = self.text if returns_nothing else self.text[:self.end] + " ;return 0; " + self.text[self.end:]
        program = folder / ("program" + ending)
        program.write_text(head + '#line 1 "program"\n' + text, errors="surrogateescape")
        wrapper = folder / ("wrap" + ending)
        wrapper.write_text((HERE / "wrap.c").read_text())
        return program, wrapper


def programs_in(folder):
    """The programs in `folder` and below, and why the others are left out: [Program], [(path, why)]."""
    suite = "/".join(folder.resolve().parts[-2:])
    found, skipped = [], []
    for path in sorted(folder.resolve().rglob("*")):
        if path.suffix not in ENDINGS_OF_C | ENDINGS_OF_CPP or not path.is_file():
            continue
        try:
            found.append(Program(path, suite))
        except Skipped as why:
            skipped.append((path, str(why)))
    return found, skipped
