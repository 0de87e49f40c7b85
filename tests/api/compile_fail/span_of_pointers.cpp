// expect: rove: a std::span shows the bytes that were sent, and elements of this type are not known to be their bytes
#include "common.hpp"

struct Named {
    const char* name;
};
std::size_t count(std::span<const Named> all) {
    return all.size();
}
std::size_t f(const std::vector<Named>& all) {
    return some_peer().sync(rove::fn<count>, all);
}
