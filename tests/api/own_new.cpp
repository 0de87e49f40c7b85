// A program that has its own functions for allocating memory, which count in a variable of the program. A function that it sends does not
// take them along.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "rove/rove.hpp"

static int own_calls = 0;

void* operator new(std::size_t size) {
    ++own_calls;
    if (void* block = std::malloc(size + 16)) return static_cast<char*>(block) + 16;
    throw std::bad_alloc();
}
// A sanitizer's would not call the one above.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    ++own_calls;
    void* block = std::malloc(size + 16);
    return block != nullptr ? static_cast<char*>(block) + 16 : nullptr;
}
void operator delete(void* block) noexcept {
    ++own_calls;
    if (block != nullptr) std::free(static_cast<char*>(block) - 16);
}
void operator delete(void* block, std::size_t) noexcept {
    operator delete(block);
}

std::string sum(std::vector<int> numbers) {  // NOLINT(performance-unnecessary-value-param): it frees its vector
    std::vector<long> sums;
    long sum = 0;
    for (const int number : numbers) sums.push_back(sum += number);
    std::ostringstream out;
    for (const long each : sums) out << each << " and so on to ";
    return out.str() + "the end";
}

int main(int, char** arguments) {
    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    const std::string there = peer.sync(rove::fn<sum>, std::vector<int>{1, 2, 3});
    std::printf("%s, %s\n", there.c_str(), there == sum({1, 2, 3}) && own_calls > 0 ? "as here" : "not as here");
}
