// expect: rove: an argument of this type cannot travel: it is read into one that is made empty
#include "common.hpp"

class Named {
public:
    explicit Named(std::string name) : name_(std::move(name)) {}
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(name_);
    }

private:
    std::string name_;
};
void take(const Named& /*named*/) {}
void f(const Named& named) {
    some_peer().sync(rove::fn<take>, named);
}
