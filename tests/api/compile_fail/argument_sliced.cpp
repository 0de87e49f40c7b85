// expect: rove: the other node gets a copy of the parameter's class, without what the argument's class adds
#include "common.hpp"

struct Shape {
    virtual ~Shape() = default;
    [[nodiscard]] virtual int area() const { return 1; }
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(name);
    }
    std::string name;
};
struct Square : Shape {
    [[nodiscard]] int area() const override { return side * side; }
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(name, side);
    }
    int side = 0;
};
void f(const Square& square) {
    some_peer().sync(rove::fn<&Shape::area>, square);
}
