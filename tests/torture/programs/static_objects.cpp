// { dg-do run }
// Static objects with constructors and destructors, at namespace scope and in a function.
#include <cstdlib>
#include <map>
#include <string>

static const std::map<std::string, int> numbers = {{"one", 1}, {"two", 2}};

struct Counter {
    int count;
    explicit Counter(int start) : count(start) {}
    ~Counter() { count = -1; }
};
static Counter outer(10);

static int next() {
    static Counter inner(numbers.at("two"));
    return inner.count < 0 ? -1 : 1 + outer.count;
}

int main() {
    if (numbers.size() != 2 || next() != 11) abort();
}
