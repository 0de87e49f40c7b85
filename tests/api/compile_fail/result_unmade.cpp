// expect: rove: a result of this type cannot travel: it is read into one that is made empty
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
Named make() {
    return Named("x");
}
void f() {
    some_peer().async(rove::fn<make>).cancel();
}
