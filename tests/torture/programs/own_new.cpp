// { dg-do run }
// A replaced operator new and delete, as programs have them that count memory; strings come from libstdc++ itself.
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

void* operator new(std::size_t size) {
    if (void* memory = std::malloc(size ? size : 1)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

int main() {
    std::vector<std::string> words;
    for (int i = 0; i < 100; ++i) words.push_back(std::string(i, 'x') + " and more than fits into the object");
    std::size_t length = 0;
    for (const auto& word : words) length += word.size();
    if (length != 4950 + 100 * 35) abort();
}
