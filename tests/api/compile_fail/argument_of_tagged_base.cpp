// expect: rove: the other node gets a copy of the parameter's class, without what the argument's class adds
#include "common.hpp"

struct Tree {
    bool is_leaf = false;
};
struct Leaf : Tree {
    int value = 0;
};
int value_of(const Tree& tree) {
    return tree.is_leaf ? static_cast<const Leaf&>(tree).value : 0;
}
void f(const Leaf& leaf) {
    (void)some_peer().sync(rove::fn<value_of>, leaf);
}
