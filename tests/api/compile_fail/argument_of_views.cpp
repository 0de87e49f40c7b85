// expect: rove: an argument of this type cannot travel: it holds a pointer, a view or a rove::Buffer
#include "common.hpp"

void take(const std::vector<std::pair<int, std::optional<std::string_view>>>& /*words*/) {}
void f(const std::vector<std::pair<int, std::optional<std::string_view>>>& words) {
    some_peer().sync(rove::fn<take>, words);
}
