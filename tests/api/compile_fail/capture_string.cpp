// expect: rove: this lambda captures something whose bytes cannot be copied (a std::string, say); pass it as an argument instead: rove::bind(lambda, values
#include "common.hpp"

auto f(const std::string& text) {
    return some_peer().sync([text] { return text.size(); });
}
