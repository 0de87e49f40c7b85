// expect: rove: a result of this type would lose members on its way: it, or a type in it, is derived from one that can be serialised
#include "common.hpp"

struct Named {
    std::string name;
};
template <typename Archive>
void serialize(Archive& archive, Named& named) {
    archive(named.name);
}
struct Counted : Named {
    int count = 0;
};
Counted count() {
    return {};
}
void f() {
    some_peer().sync(rove::fn<count>);
}
