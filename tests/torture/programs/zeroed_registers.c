/* { dg-do run } */
/* { dg-options "-O2 -fzero-call-used-regs=all" } */
/* Code that is compiled for a node's CPU keeps its results, whatever registers that CPU has. */
#include <stdlib.h>

__attribute__((noinline)) static float half(float x) {
    return x * 0.5f;
}

int main(void) {
    volatile float x = 3;
    if (half(x) != 1.5f) abort();
    return 0;
}
