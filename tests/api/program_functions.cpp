#include <algorithm>

#include "program.hpp"

namespace forms {
namespace {
const double kEpsilon = 1e-12;
double clipped(double value) {
    return value < kEpsilon ? 0 : value;
}
}  // namespace
}  // namespace forms

namespace {
int internal(int x) {
    return x + 100;
}
}  // namespace

namespace forms {

int from_another_file(const rove::Peer& peer, int x) {
    return peer.sync(rove::fn<::internal>, x);
}
int back_to_another_file(rove::Here& here, int x) {
    return here.caller().sync(rove::fn<::internal>, x);
}
bool inline_lambdas_run_elsewhere(const rove::Peer& peer) {
    return inline_lambdas_run(peer);
}
double scaled(Reading reading) {
    return 2.0 * static_cast<double>(reading.value);
}
int square(int x) {
    return x * x;
}
static rove::Task<int> square_of_square(rove::Here& here, int x) {
    const int once = co_await here.caller().async(rove::fn<square>, x);
    co_return co_await here.caller().async(rove::fn<square>, once);
}
int calls_twice(rove::Here& here, int x) {
    return rove::sync_wait(square_of_square(here, x));
}
int put(const std::string& book, int pages) {
    shelf()[book] = pages;
    return thrice(pages) * nothing();
}
std::string log_path() {
    return Paths::log;
}
std::string home_path_from_root() {
    return Places::root.empty() ? "" : home_path();
}
std::string made_of_one_another() {
    const int numbers = 100 * three + 10 * two + one;
    return std::to_string(numbers) + Paths::log + std::to_string(first) + " " + std::to_string(sum_of_primes);
}
int visit() {
    return ++visits;
}
std::size_t keep(int value) {
    Tally<int>::kept.push_back(value);
    return Tally<int>::kept.size();
}
double inner_product(std::span<const double> a, std::span<const double> b) {
    return clipped(std::inner_product(a.begin(), a.end(), b.begin(), 0.0));
}
std::string greet(const std::string& name) {
    return "hello " + name;
}
Item cheaper(Item item, double factor) {
    for (double& price : item.prices) price *= factor;
    return item;
}
std::vector<Delivery> split(const Delivery& delivery) {
    return {{delivery.to, delivery.pieces / 2}, {delivery.to, delivery.pieces - delivery.pieces / 2}};
}
int refuse(int x) {
    if (x > 2) throw std::out_of_range("too large");
    return x;
}

Machine::Machine(std::string code) : code_(std::move(code)) {}
Machine::~Machine() = default;
Doubling::Doubling(std::string code) : Machine(std::move(code)) {}
int Machine::run(int x) const {
    static const void* const targets[] = {&&add, &&negate, &&end};  // of labels of its own
    std::size_t at = 0;
next:
    goto* targets[at == code_.size() ? 2 : code_[at++] == '+' ? 0 : 1];
add:
    x = step(x);
    goto next;
negate:
    x = -x;
    goto next;
end:
    return x;
}
int Doubling::run(int x) const {
    return 2 * Machine::run(x);
}
template struct Counted<long>;
int step(int x) {
    return x + 1;
}
int ping_pong(rove::Here& here, int depth) {
    return depth == 0 ? 0 : 1 + here.caller().sync(rove::fn<ping_pong>, depth - 1);
}

}  // namespace forms
