// Functions of api_own_library that the C library has as well.
#include <stddef.h>

static size_t copied = 0;

double round(double x) {
    return (double)(int)(x + (x < 0 ? -0.25 : 0.75));
}

void* memcpy(void* restrict to, const void* restrict from, size_t size) {
    char* t = to;
    const char* f = from;
    for (copied += size; size != 0; --size) {
        *t++ = *f++;
        __asm__ volatile("");
    }
    return to;
}
