/* { dg-do run } */
/* Leaves the rounding mode changed; the next call must begin with the usual one. */
#include <fenv.h>
#include <stdlib.h>

int main(void) {
    volatile double one = 1, three = 3;
    if (fegetround() != FE_TONEAREST || one / three != 1.0 / 3.0) abort();
    if (fesetround(FE_UPWARD)) abort();
    return 0;
}
