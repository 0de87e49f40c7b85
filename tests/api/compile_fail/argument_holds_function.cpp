// expect: rove: an argument of this type cannot travel: it, or a type in it, holds a pointer, a reference or a view
#include "common.hpp"

struct Step {
    int (*run)(int);
};
void take(const std::vector<Step>& /*steps*/) {}
void f(const std::vector<Step>& steps) {
    some_peer().sync(rove::fn<take>, steps);
}
