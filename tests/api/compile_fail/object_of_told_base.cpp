// expect: rove: the other node gets a copy of the parameter's class, without what the argument's class adds
// lines: 50, of cereal: 3
#include "common.hpp"

template <typename Derived>
struct Named {
    [[nodiscard]] std::size_t length() const { return static_cast<const Derived&>(*this).name.size(); }
};
struct Person : Named<Person> {
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(name);
    }
    std::string name;
};
void f(const Person& person) {
    (void)some_peer().sync(rove::bind(rove::fn<&Person::length>, person));
}
