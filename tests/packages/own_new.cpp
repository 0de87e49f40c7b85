// Replaces the functions that allocate memory by counting ones with a header before each block, as many programs do. Where it travels it
// uses the node's: libstdc++ there frees what is allocated here.
#include <rove/rove.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

static int own_calls = 0;

void* operator new(std::size_t size) {
    ++own_calls;
    return static_cast<char*>(std::malloc(size + 16)) + 16;
}
void* operator new(std::size_t size, std::align_val_t) {
    ++own_calls;
    return static_cast<char*>(std::aligned_alloc(4096, 8192 + size)) + 4096;
}
void operator delete(void* block) noexcept {
    ++own_calls;
    if (block != nullptr) std::free(static_cast<char*>(block) - 16);
}
void operator delete(void* block, std::size_t) noexcept {
    operator delete(block);
}
void operator delete(void* block, std::align_val_t) noexcept {
    ++own_calls;
    std::free(static_cast<char*>(block) - 4096);
}
extern "C" void* second_name(std::size_t) __attribute__((alias("_Znwm")));

struct alignas(256) Wide {
    char bytes[256];
};

// The length of a text that was made on both sides, and how often the replacements ran.
ROVE_ENTRY void strings(rove_here* here, const void*, size_t) {
    int answer[2] = {};
    {
        const std::unique_ptr<Wide> wide = std::make_unique<Wide>();
        std::vector<int> numbers(100, 1);
        std::string text = "a text that is longer than what fits";
        text += text;
        std::ostringstream out;
        out << text << std::string(40, 'x') << numbers.size() << static_cast<int>(wide->bytes[0]);
        try {
            throw std::runtime_error(out.str());
        } catch (const std::exception& error) {
            answer[0] = static_cast<int>(std::string(error.what()).size());
        }
        operator delete(second_name(8));
    }
    answer[1] = own_calls;
    rove_reply(here, answer, sizeof answer);
}
