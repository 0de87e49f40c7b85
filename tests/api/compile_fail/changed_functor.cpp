// expect: rove: this lambda or functor changes what it captured (it is mutable, or its operator() not const): that is a copy on the other node
#include "common.hpp"

struct Sum {
    int all = 0;
    int operator()(int more) { return all += more; }
};

auto f(const Sum& sum) {
    return some_peer().async(sum, 4);
}
