// expect: rove: the other node gets a copy of the parameter's class, without what the argument's class adds
#include "common.hpp"

template <typename Derived, int kSides>
struct Shape {
    [[nodiscard]] double area() const { return static_cast<const Derived*>(this)->area_of_it(); }
};
struct Square : Shape<Square, 4> {
    [[nodiscard]] double area_of_it() const { return side * side; }
    double side = 0;
};
void f(const Square& square) {
    (void)some_peer().sync(rove::fn<&Square::area>, square);
}
