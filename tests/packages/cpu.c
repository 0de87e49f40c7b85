// Asks, where it runs, what the CPU there can do.
#include <rove/rove.h>

ROVE_ENTRY void features(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    int can = 0;
#ifdef __x86_64__
    __builtin_cpu_init();
    can = (__builtin_cpu_supports("sse2") != 0) + 2 * (__builtin_cpu_supports("avx2") != 0) +
          4 * (__builtin_cpu_supports("x86-64-v3") != 0) + 8 * (__builtin_cpu_is("intel") != 0) +
          16 * (__builtin_cpu_is("amd") != 0);
#endif
    rove_reply(here, &can, sizeof can);
}
