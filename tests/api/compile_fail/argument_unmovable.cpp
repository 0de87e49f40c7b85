// expect: rove: an argument of this type cannot travel: it can neither be copied nor moved into the function's parameter
#include "common.hpp"

struct Fixed {
    Fixed() = default;
    Fixed(const Fixed&) = delete;
    std::string text;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(text);
    }
};
void take(const Fixed& /*fixed*/) {}
void f(const Fixed& fixed) {
    some_peer().sync(rove::fn<take>, fixed);
}
