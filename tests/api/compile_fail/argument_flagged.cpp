// expect: rove: an argument of this type cannot travel
#include "common.hpp"

struct Handle {
    int number;
};
template <>
struct rove::migratable<Handle> {
    static constexpr bool safe = false;
};
int use(Handle handle) {
    return handle.number;
}
int f(Handle handle) {
    return some_peer().sync(rove::fn<use>, handle);
}
