// expect: rove: a result of this type cannot travel: cereal has no header for std::filesystem::path, std::error_code
#include <system_error>

#include "common.hpp"

std::error_code make() {
    return {};
}
void f() {
    some_peer().sync(rove::fn<make>);
}
