/* { dg-do run } */
/* Ends by exit, from deep inside. */
#include <stdlib.h>

static __attribute__((noinline)) void down(int depth) {
    if (depth == 0) exit(0);
    down(depth - 1);
}

int main(void) {
    down(5);
    abort();
}
