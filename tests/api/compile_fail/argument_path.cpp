// expect: rove: an argument of this type cannot travel: cereal has no header for std::filesystem::path
#include <filesystem>

#include "common.hpp"

void take(const std::vector<std::filesystem::path>& /*paths*/) {}
void f(const std::vector<std::filesystem::path>& paths) {
    some_peer().sync(rove::fn<take>, paths);
}
