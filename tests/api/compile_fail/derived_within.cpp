// expect: rove: a value within an argument or a result is of a type that is serialised as its base is, and its own members would be lost
// lines: 50, of cereal: 8
#include "common.hpp"

struct Path : std::string {
    bool is_absolute = false;
};
struct Job {
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(path);
    }
    Path path;
};
void take(const Job& /*job*/) {}
void f(const Job& job) {
    some_peer().sync(rove::fn<take>, job);
}
