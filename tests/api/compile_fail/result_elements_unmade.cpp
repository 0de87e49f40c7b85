// expect: rove: a result of this type cannot travel: cereal reads it, or a type in it, into a default-constructed object
#include "common.hpp"

class Handle {
public:
    explicit Handle(std::string name) : name(std::move(name)) {}
    std::string name;
};
template <>
struct rove::migratable<Handle> {
    using wire = std::string;
    static wire pack(const Handle& handle) { return handle.name; }
    static Handle unpack(wire&& name) { return Handle(std::move(name)); }
};
std::optional<Handle> make() {
    return {};
}
void f() {
    some_peer().sync(rove::fn<make>);
}
