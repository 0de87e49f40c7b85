/* { dg-do run } */
/* { dg-options "-O2 -fno-math-errno" } */
/* Functions with names of the C library's that compute something else, which clang calls by intrinsics. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

static volatile int copies; /* volatile: to clang a memcpy() changes no variable */

__attribute__((noinline)) double round(double x) {
    return floor(x + 0.5);
}
__attribute__((noinline)) double sin(double x) {
    return x - x * x * x / 6;
}
static float rounds_down(float x) {
    return (float)((int)x - 1);
}
float truncf(float x) __attribute__((alias("rounds_down")));
__attribute__((noinline)) double fmod(double x, double y) {
    return x + y;
}
__attribute__((noinline)) void* memcpy(void* to, const void* from, size_t size) {
    char* t = to;
    const char* f = from;
    for (copies = copies + 1; size != 0; --size) {
        *t++ = *f++;
        __asm__ volatile("");
    }
    return to;
}

int main(void) {
    volatile double x = -2.5, three = 3;
    volatile float y = 7.5F;
    volatile size_t size = 10;
    char text[64];
    double (*volatile kept)(double) = round;
    if (round(x) != -2 || kept(x) != -2) abort();
    if (sin(x) != -2.5 + 2.5 * 2.5 * 2.5 / 6) abort();
    if (truncf(y) != 6) abort();
    if (fmod(x, three) != 0.5) abort();
    int before = copies;
    memcpy(text, "123456789", size);
    if (strcmp(text, "123456789") != 0 || copies != before + 1) abort();
    return 0;
}
