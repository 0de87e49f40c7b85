// expect: rove: an argument of this type cannot travel
#include <fstream>

#include "common.hpp"

bool good(std::shared_ptr<std::ifstream> file) {
    return file->good();
}
bool f(std::shared_ptr<std::ifstream> file) {
    return some_peer().sync(rove::fn<good>, file);
}
