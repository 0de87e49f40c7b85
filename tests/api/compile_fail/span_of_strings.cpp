// expect: rove: a std::span shows the bytes that were sent, and elements of this type are not known to be their bytes
#include "common.hpp"

std::size_t longest(std::span<const std::string> words) {
    std::size_t most = 0;
    for (const std::string& word : words) most = std::max(most, word.size());
    return most;
}
std::size_t f(const std::vector<std::string>& words) {
    return some_peer().sync(rove::fn<longest>, words);
}
