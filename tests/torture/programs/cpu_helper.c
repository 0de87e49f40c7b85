/* { dg-do run { target x86_64-*-* } } */
/* A helper for newer CPUs that is called once, where the CPU is one. */
#include <immintrin.h>
#include <stdlib.h>

__attribute__((target("sse4.2"))) static unsigned int crc(unsigned int sum, unsigned char value) {
    return _mm_crc32_u8(sum, value);
}

int main(void) {
    volatile unsigned int start = 0xffffffffu;
    if (__builtin_cpu_supports("sse4.2") && crc(start, 'a') != 0x3e2fbccfu) abort();
    return 0;
}
