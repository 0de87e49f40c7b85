// expect: rove: an argument of this type cannot travel: it is, or holds, a pointer to a polymorphic type
#include "common.hpp"

struct Shape {
    virtual ~Shape() = default;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(name);
    }
    std::string name;
};
void take(const std::vector<std::unique_ptr<Shape>>& /*shapes*/) {}
void f(const std::vector<std::unique_ptr<Shape>>& shapes) {
    some_peer().sync(rove::fn<take>, shapes);
}
