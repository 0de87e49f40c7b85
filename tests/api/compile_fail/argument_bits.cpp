// expect: rove: an argument of this type cannot travel: it, or a type in it, holds a pointer, a reference or a view (or is a union or has bit-fields
#include "common.hpp"

union Word {
    int number;
    float fraction;
};
void take(Word /*word*/) {}
void f(Word word) {
    some_peer().sync(rove::fn<take>, word);
}
