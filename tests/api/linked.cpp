// Functions that need libraries: a shared one, a static one that carries its bitcode, and one that does not.
#include "linked.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "rove/rove.hpp"

extern "C" int linked_in_c(int x);  // of this program
extern "C" int linked_count_in_c(int by);
extern "C" int linked_of_the_file(int by);
extern "C" unsigned long crc32(unsigned long begin, const char* bytes, unsigned count);  // of zlib

namespace {

unsigned long checksum(const std::string& text) {
    return crc32(0, text.data(), static_cast<unsigned>(text.size()));
}
// What libc has allocated goes back to libc.
std::size_t copied(const std::string& text) {
    char* const copy = strdup(text.c_str());
    const std::size_t bytes = std::strlen(copy);
    std::free(copy);
    return bytes;
}
int embedded(int x) {
    return linked::embedded(x);
}
extern "C" unsigned ZSTD_versionNumber();
int vendored(int x) {
    return x * static_cast<int>(ZSTD_versionNumber());
}
int left(int x) {
    return linked::left(x);
}
int in_c(int x) {
    return linked_in_c(x);
}
int counts_in_c(int by) {
    return linked_count_in_c(by);
}
int counts_in_c_too(int by) {
    return linked_count_in_c(by);
}
int of_the_file(int by) {
    return linked_of_the_file(by);
}

template <typename F, typename A>
void try_it(const char* what, const rove::Peer& peer, F function, const A& argument) {
    try {
        std::printf("%s %lx\n", what, static_cast<unsigned long>(peer.sync(function, argument)));
    } catch (const rove::Error& error) {
        std::printf("%s %s\n", what, error.what());
    }
}

}  // namespace

int main(int, char** arguments) {
    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    try_it("checksum", peer, rove::fn<checksum>, std::string("hello"));
    try_it("copied", peer, rove::fn<copied>, std::string("hello"));
    try_it("embedded", peer, rove::fn<embedded>, 4);
    try_it("left", peer, rove::fn<left>, 4);
    try_it("vendored", peer, rove::fn<vendored>, 1);
    try_it("in C", peer, rove::fn<in_c>, 4);
    try_it("a static in C", peer, rove::fn<counts_in_c>, 1);
    try_it("the same static", peer, rove::fn<counts_in_c_too>, 2);
    try_it("of a C file", peer, rove::fn<of_the_file>, 1);
    try {
        std::printf("of the library %d\n", linked::sends_its_own(peer));
    } catch (const rove::Error& error) {
        std::printf("of the library %s\n", error.what());
    }
}
