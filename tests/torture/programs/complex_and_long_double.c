/* { dg-do run } */
/* Complex numbers, long double and 128-bit integers, whose arithmetic is partly in libraries. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>

int main(void) {
    volatile double _Complex i = 1.0 * I;
    volatile long double tiny = 1.0L, small = 0x1p-60L;
    volatile __int128 large = (__int128)1 << 100;
    if (creal(i * i) != -1 || cabs(3 + 4 * i) != 5) abort();
    if (__LDBL_MANT_DIG__ >= 64 && tiny + small == tiny) abort();
    if (fabsl(sqrtl(2.0L * tiny) * sqrtl(2.0L * tiny) - 2) > 1e-17L) abort();
    if (large / 1000 * 1000 + large % 1000 != large) abort();
    return 0;
}
