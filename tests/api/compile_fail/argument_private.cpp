// expect: rove: an argument of this type cannot travel; give it a cereal serialize() that is public or has cereal::access as a friend
#include "common.hpp"

class Named {
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(name_);
    }
    std::string name_;
};
void take(const Named& /*named*/) {}
void f(const Named& named) {
    some_peer().sync(rove::fn<take>, named);
}
