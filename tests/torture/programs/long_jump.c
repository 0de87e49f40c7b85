/* { dg-do run } */
/* longjmp over several frames. */
#include <setjmp.h>
#include <stdlib.h>

static jmp_buf before;

static __attribute__((noinline)) void down(int depth) {
    if (depth == 0) longjmp(before, 9);
    down(depth - 1);
}

int main(void) {
    volatile int tries = 0;
    int thrown = setjmp(before);
    if (thrown != (tries ? 9 : 0)) abort();
    if (++tries < 4) down(10);
    return 0;
}
