#include <rove/rove.h>

namespace rove::detail {
template <auto f>
struct Offload {
    static void run(rove_here*, const void* payload, size_t size) { *(int*)payload = f((int)size); }
};
}
inline int shared(int n) { return n ^ 1; }
extern int elsewhere(int);
static int changes(int n) { return elsewhere(n) + shared(n); }
static int stays(int n) { return "and so on"[n] + shared(n); }
void (*offloads[])(rove_here*, const void*, size_t) = {&rove::detail::Offload<changes>::run, &rove::detail::Offload<stays>::run};
