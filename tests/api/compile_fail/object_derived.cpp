// expect: rove: an argument of this type would lose members on its way: it, or a type in it, is derived from one that can be serialised
#include "common.hpp"

struct Path : std::string {
    bool has_slash() const { return is_absolute; }
    bool is_absolute = false;
};
void f(const Path& path) {
    some_peer().sync(rove::fn<&Path::has_slash>, path);
}
