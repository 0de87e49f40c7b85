/* { dg-do run { target x86_64-*-* } } */
/* { dg-options "-mcrc32" } */
/* A flag that adds an instruction. */
#include <stdlib.h>

int main(void) {
    volatile unsigned int start = 0xffffffffu;
    if (!__builtin_cpu_supports("sse4.2")) return 0;
    if (__builtin_ia32_crc32qi(start, 'a') != 0x3e2fbccfu) abort();
    return 0;
}
