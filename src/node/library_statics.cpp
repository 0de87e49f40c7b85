// Makes all of kLibraryStatics, which librove exports: so the dynamic linker gives a program that has them, librove and what they have loaded
// the same ones (src/librove.map).
#include "base/library_statics.hpp"

#include <atomic>
#include <syncstream>

namespace {

[[gnu::used]] void use_library_statics(std::atomic<int>& number, std::streambuf* narrow, std::wstreambuf* wide) {
    number.wait(0);
    number.notify_one();
    std::osyncstream(narrow) << "";
    std::wosyncstream(wide) << L"";
}

}  // namespace
