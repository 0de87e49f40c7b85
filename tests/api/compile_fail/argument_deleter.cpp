// expect: rove: an argument of this type cannot travel: the deleter of a std::unique_ptr in it has members (or is a pointer)
#include "common.hpp"

struct Counting {
    int deleted = 0;
    void operator()(const int* value) {
        ++deleted;
        delete value;
    }
};
void take(std::vector<std::unique_ptr<int, Counting>> /*values*/) {}
void f(const std::vector<std::unique_ptr<int, Counting>>& values) {
    some_peer().sync(rove::fn<take>, values);
}
