/* Atomic operations on 16 bytes, which no node need have a library for. */
#include <stdatomic.h>
#include <stdlib.h>

struct pair {
    long a, b;
};
static _Atomic struct pair kept;
static _Atomic __int128 sum;

int main(void) {
    struct pair wanted = {1, 2}, seen;
    atomic_store(&kept, wanted);
    wanted.b = 3;
    seen = atomic_exchange(&kept, wanted);
    if (seen.a != 1 || seen.b != 2) abort();
    if (!atomic_compare_exchange_strong(&kept, &wanted, seen)) abort();
    seen = atomic_load(&kept);
    if (seen.a != 1 || seen.b != 2) abort();
    __int128 before = atomic_load(&sum);
    sum += (__int128)1 << 100;
    if (atomic_load(&sum) - before != (__int128)1 << 100) abort();
    return 0;
}
