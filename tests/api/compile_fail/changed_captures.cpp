// expect: rove: this lambda or functor changes what it captured (it is mutable, or its operator() not const): that is a copy on the other node
#include "common.hpp"

auto f(int calls) {
    return some_peer().sync([calls]() mutable { return ++calls; });
}
