// expect: rove: an argument of this type would lose members on its way: it, or a type in it, is derived from one that can be serialised
#include "common.hpp"

struct Named {
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(name);
    }
    std::string name;
};
struct Counted : Named {
    int count = 0;
};
void take(const std::map<int, std::vector<Counted>>& /*counted*/) {}
void f(const std::map<int, std::vector<Counted>>& counted) {
    some_peer().sync(rove::fn<take>, counted);
}
