// Functions that the programs of forms_test share, in a header, as two programs of one project would have them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "rove/rove.hpp"

namespace forms {

struct Inventory {
    int pieces = 7;
};
// Which only cereal may serialise.
class Origin {
public:
    explicit Origin(std::string country = "") : country_(std::move(country)) {}
    [[nodiscard]] const std::string& country() const { return country_; }

private:
    friend class cereal::access;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(country_);
    }
    std::string country_;
};
struct Item {
    std::string name;
    std::vector<double> prices;
    Origin origin{};
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(name, prices, origin);
    }
};
struct Delivery {  // has a number of its own, which is written with it
    std::string to;
    int pieces = 0;
    template <typename Archive>
    void serialize(Archive& archive, std::uint32_t version) {
        archive(to);
        if (version == 3) archive(pieces);
    }
};

// Has the size and alignment of another program's type, and the same members except the last one.
struct Reading {
    std::chrono::seconds at;
    __int128 wide;
    int sensor;
    float value;
};
double scaled(Reading reading);
int square(int x);
double inner_product(std::span<const double> a, std::span<const double> b);
std::string greet(const std::string& name);
Item cheaper(Item item, double factor);
std::vector<Delivery> split(const Delivery& delivery);
int refuse(int x);
int ping_pong(rove::Here& here, int depth);
// Calls a function and a lambda that bear the same internal names as ones of program.cpp.
int from_another_file(const rove::Peer& peer, int x);
// The same, called back from the other node.
int back_to_another_file(rove::Here& here, int x);
// Code that uses other files: a class that is defined there, its virtual functions, and a name that is internal here.
class Machine {
public:
    explicit Machine(std::string code);
    virtual ~Machine();
    virtual int run(int x) const;

protected:
    std::string code_;
};
class Doubling : public Machine {
public:
    explicit Doubling(std::string code);
    int run(int x) const override;
};
template <typename T>
struct Counted {  // instantiated in one file only; what other files see of it is for inlining
    T sum(const std::vector<T>& values) const {
        T sum{};
        for (const T& value : values) sum += value * factor;
        for (std::size_t i = 1; i < values.size(); ++i)
            if (values[i] < values[i - 1]) return descends(values, values.size());
        return sum;
    }
    T descends(const std::vector<T>& values, std::size_t depth) const;
    T factor{1};
};
template <typename T>
T Counted<T>::descends(const std::vector<T>& values, std::size_t depth) const {  // too deep to be inlined away
    return depth < 2 ? -values.front() : descends(values, depth - 1) + descends(values, depth - 2);
}
extern template struct Counted<long>;
int step(int x);
int interpreted(int x);
template <typename T>
T largest(const std::vector<T>& values) {
    return *std::max_element(values.begin(), values.end());
}
// Lambdas whose names the whole program knows, for what encloses them is inline. Both files use them.
inline int in_inline_function(const rove::Peer& peer, int x) {
    return peer.sync([](int y) { return y + 1; }, x);
}
template <typename T>
int in_template(const rove::Peer& peer, T x) {
    return peer.sync([](T y) { return static_cast<int>(y) + 2; }, x);
}
inline const auto kInlineVariable = [](int y) { return y + 3; };
struct Encloses {
    explicit Encloses(const rove::Peer& to) : peer(to), constructed(to.sync([](int y) { return y + 4; }, 1)) {}
    int method(int x) const {
        return peer.sync([](int y) { return y + 5; }, x);
    }
    const rove::Peer& peer;
    int constructed;
    int initialised = peer.sync([](int y) { return y + 6; }, 1);
};
inline bool inline_lambdas_run(const rove::Peer& peer) {
    const Encloses encloses(peer);
    return in_inline_function(peer, 1) == 2 && in_template(peer, 1L) == 3 && peer.sync(kInlineVariable, 1) == 4 &&
           encloses.constructed == 5 && encloses.method(1) == 6 && encloses.initialised == 7;
}
bool inline_lambdas_run_elsewhere(const rove::Peer& peer);  // in the other file
struct Accumulator {
    double start;
    double operator()(const std::vector<double>& values) const {
        return std::accumulate(values.begin(), values.end(), start);
    }
};

// A static that two functions of two files share.
inline std::map<std::string, int>& shelf() {
    static std::map<std::string, int> books;
    return books;
}
inline int visits = 40;

// Each is made of those before it. What is sent names the last first, or none but the last.
inline int one = std::atoi("1");
inline int two = one + std::atoi("1");
inline int three = two + std::atoi("1");
struct Paths {
    static inline const std::string base = "/a path that takes memory of its own";
    static inline const std::string log = base + "/log";
};
// The functions of one file use both of these, and those of another file the first one only.
struct Places {
    static inline const std::string root = "/another path that takes memory of its own";
    static inline const std::string home = root + "/home";
};
inline std::map<std::string, int> registry;
inline int enrol(const char* name) {
    return registry[name] = 40 + static_cast<int>(registry.size());
}
inline const int first = enrol("first");
inline const std::vector<int> primes = [] {
    std::vector<int> found;
    for (int i = 2; i < 30; ++i)
        if (std::all_of(found.begin(), found.end(), [i](int prime) { return i % prime != 0; })) found.push_back(i);
    return found;
}();
inline const int sum_of_primes = std::accumulate(primes.begin(), primes.end(), 0);
template <typename T>
struct Tally {
    static std::vector<T> kept;
};
template <typename T>
std::vector<T> Tally<T>::kept{1, 2};
// An object without state, as libraries have them in their headers.
struct Thrice {
    Thrice() {}  // NOLINT: made by code
    int operator()(int x) const { return 3 * x; }
};
inline const Thrice thrice;
struct Nothing {
    int operator()() const { return 1; }
};
[[maybe_unused]] static Nothing nothing;  // NOLINT: each file's own, and no state in any

int calls_twice(rove::Here& here, int x);
int put(const std::string& book, int pages);
int visit();
std::string made_of_one_another();
std::string log_path();
std::string home_path();  // of program.cpp, which is linked first
std::string home_path_from_root();
std::size_t keep(int value);

}  // namespace forms

CEREAL_CLASS_VERSION(forms::Delivery, 3)
