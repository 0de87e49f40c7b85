// expect: rove: a result of this type cannot travel: it is, or holds, a pointer to a polymorphic type
#include "common.hpp"

struct Shape {
    virtual ~Shape() = default;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(name);
    }
    std::string name;
};
std::shared_ptr<Shape> make() {
    return nullptr;
}
void f() {
    some_peer().sync(rove::fn<make>);
}
