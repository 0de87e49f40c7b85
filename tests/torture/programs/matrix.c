/* { dg-do run } */
/* { dg-options "-fenable-matrix" } */
/* Matrix types, which clang lowers by a pass of its own. */
#include <stdlib.h>

typedef float matrix __attribute__((matrix_type(3, 3)));

static float corner(int k) {
    matrix of;
    for (int i = 0; i < 9; ++i) of[i / 3][i % 3] = (float)(i + k);
    of = of * of;
    return of[2][2];
}

int main(void) {
    volatile int one = 1;
    if (corner(one) != 7.0f * 3.0f + 8.0f * 6.0f + 9.0f * 9.0f) abort();
    return 0;
}
