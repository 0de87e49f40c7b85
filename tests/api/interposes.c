// A shared library that has names of the C and C++ libraries, as allocators and profilers do that a program is linked with or that are
// preloaded; and one that zlib has, too.
#include <stddef.h>

void* __libc_malloc(size_t bytes);  // NOLINT
void __libc_free(void* memory);     // NOLINT

void* malloc(size_t bytes) {
    return __libc_malloc(bytes);
}
void free(void* memory) {
    __libc_free(memory);
}
void* _Znwm(size_t bytes) {  // NOLINT
    return __libc_malloc(bytes);
}
void _ZdlPv(void* memory) {  // NOLINT
    __libc_free(memory);
}
void _ZdlPvm(void* memory, size_t bytes) {  // NOLINT
    (void)bytes;
    __libc_free(memory);
}
unsigned long crc32(unsigned long begin, const char* bytes, unsigned count) {
    (void)bytes;
    return begin + count;
}
