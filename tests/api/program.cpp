// One program for all forms:
//   program serve                      a node that has its functions resident; prints its address, ends when stdin does
//   program call ADDRESS [FLAG…]       calls them, checks each, prints what ran how, and `all is well`
// Flags: resident (functions must be there, lambdas too), no-lambdas, shipped (must have travelled).
#include "program.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>

// Not the mark by which this file's name is found.
extern const char* const no_mark;
const char* const no_mark = "rove source: nothing";

namespace {

int failures = 0;
void check(const char* what, bool right) {
    std::printf("%s %s\n", right ? "ok  " : "WRONG", what);
    if (!right) ++failures;
}

int internal(int x) {
    return x + 1;
}

}  // namespace

// These have statics in common with functions of another file.
static int pages_of(const std::string& book) {
    return forms::thrice(forms::shelf().at(book));
}
static int visits_now() {
    return forms::visits;
}
std::string forms::home_path() {
    return Places::home;
}
static int order_of_numbers() {
    return 100 * forms::three + 10 * forms::two + forms::one;
}
static int kept_first_and_last() {
    const std::vector<int>& kept = forms::Tally<int>::kept;
    return 100 * kept.front() + kept.back();
}

// As in another file, where all know them; here nobody does.
static int step(int x) {
    return x + 1000;
}
int forms::interpreted(int x) {
    const std::unique_ptr<Machine> plain = std::make_unique<Machine>("++-");
    const std::unique_ptr<Machine> doubling = std::make_unique<Doubling>("+");
    const int counted = static_cast<int>(Counted<long>{2}.sum({1, 2, 3}) + Counted<long>{2}.sum({3, 1}));  // 12 - 6
    return ::step(0) + plain->run(x) + doubling->run(x) + counted;
}

namespace {

int serve() {
    rove::offer(rove::fn<forms::square>, rove::fn<forms::inner_product>, rove::fn<forms::greet>,
                rove::fn<forms::cheaper>, rove::fn<forms::split>, rove::fn<forms::refuse>, rove::fn<forms::ping_pong>,
                rove::fn<forms::back_to_another_file>, rove::fn<forms::largest<int>>, forms::Accumulator{},
                rove::fn<internal>, rove::fn<forms::interpreted>);
    rove::NodeOptions options;
    options.listen = "127.0.0.1:0";
    rove::Node node(options);
    forms::Inventory inventory;
    node.share("inventory", inventory);
    std::printf("listening %s\n", node.address().c_str());
    std::fflush(stdout);
    char byte = 0;
    while (read(0, &byte, 1) > 0) {
    }
    return 0;
}

int call(const char* address, const std::set<std::string>& flags) {
    rove::Node node;
    const rove::Peer peer = node.connect(address);
    check("a function", peer.sync(rove::fn<forms::square>, 42) == 1764);
    check("a struct", peer.sync(rove::fn<forms::scaled>, forms::Reading{{}, 0, 1, 2.5F}) == 5);
    check("again", peer.sync(rove::fn<forms::square>, 5) == 25);
    check("an internal function", peer.sync(rove::fn<internal>, 1) == 2);
    check("one of that name in another file", forms::from_another_file(peer, 1) == 101);
    check("the same, called back", peer.sync(rove::fn<forms::back_to_another_file>, 1) == 101);
    check("virtual functions, a table of labels and a template, of another file",
          peer.sync(rove::fn<forms::interpreted>, 5) == 1011);
    check("a template", peer.sync(rove::fn<forms::largest<int>>, std::vector<int>{3, 9, 4}) == 9);
    check("a functor", peer.sync(forms::Accumulator{0.5}, std::vector<double>{1, 2}) == 3.5);
    check("strings", peer.sync(rove::fn<forms::greet>, "you") == "hello you");
    const std::vector<double> a(1000, 2.0), b(1000, 3.0);
    check("spans", peer.sync(rove::fn<forms::inner_product>, a, b) == 6000);
    const auto there = peer.allocate<double>(1000).get();
    peer.put(a, there).get();
    check("a buffer", peer.sync(rove::fn<forms::inner_product>, there, b) == 6000);
    const forms::Item pear{"pear", {1, 2}, forms::Origin("Peru")};
    const forms::Item item = peer.sync(rove::fn<forms::cheaper>, pear, 0.5);
    check("a type that serialises itself",
          item.name == "pear" && item.prices == std::vector<double>{0.5, 1} && item.origin.country() == "Peru");
    const std::vector<forms::Delivery> parts = peer.sync(rove::fn<forms::split>, forms::Delivery{"Peru", 5});
    check("a type with a version", parts.size() == 2 && parts[0].pieces == 2 && parts[1].pieces == 3);
    try {
        (void)peer.sync(rove::fn<forms::refuse>, 3);
        check("an exception", false);
    } catch (const rove::RemoteError& error) {
        check("an exception", error.type() == "std::out_of_range" && !std::strcmp(error.what(), "too large"));
    }
    check("a static of a function that two others call",
          peer.sync(rove::fn<forms::put>, "tales", 7) == 21 && peer.sync(rove::fn<pages_of>, "tales") == 21);
    const int visited = peer.sync(rove::fn<forms::visit>);
    check("an inline variable", visited > 40 && peer.sync(rove::fn<visits_now>) == visited);
    check("inline variables that are made of one another",
          peer.sync(rove::fn<forms::made_of_one_another>) == forms::made_of_one_another() &&
              peer.sync(rove::fn<order_of_numbers>) == 321 &&
              peer.sync(rove::fn<forms::log_path>) == forms::Paths::log &&
              peer.sync(rove::fn<forms::home_path_from_root>) == forms::Places::home);
    const std::size_t kept = peer.sync(rove::fn<forms::keep>, 9);
    check("a template's static member, made by code", kept > 2 && peer.sync(rove::fn<kept_first_and_last>) == 109);
    check("a lambda under a name", peer.sync(rove::named<"forms.tenfold">([](int x) { return 10 * x; }), 4) == 40);
    check("a coroutine within a function", peer.sync(rove::fn<forms::calls_twice>, 3) == 81);
    check("back and forth", peer.sync(rove::fn<forms::ping_pong>, 6) == 6);
    std::vector<rove::Call<int>> calls;
    for (int i = 0; i < 200; ++i) calls.push_back(peer.async(rove::fn<forms::square>, i));
    const std::vector<int> squares = rove::when_all(std::move(calls)).get();
    check("two hundred at once", std::accumulate(squares.begin(), squares.end(), 0) == 2'646'700);
    const int limit = 3;
    const auto lambda = [limit](const std::vector<int>& values) {
        return std::count_if(values.begin(), values.end(), [=](int v) { return v > limit; });
    };
    if (!flags.contains("no-lambdas")) {
        check("a lambda with a capture", peer.sync(lambda, std::vector<int>{1, 4, 5}) == 2);
        check("a generic lambda", peer.sync([](auto x, auto y) { return x + y; }, 1, 2.5) == 3.5);
        check("lambdas in what is inline", forms::inline_lambdas_run(peer));
        check("the same in another file", forms::inline_lambdas_run_elsewhere(peer));
        struct Adds {
            int to;
            int operator()(int x) const { return to + x; }
        };
        check("a functor of a function's own", peer.sync(Adds{3}, 4) == 7);
    } else {
        try {
            (void)peer.sync(lambda, std::vector<int>{1});
            check("a lambda is not resident in another program", false);
        } catch (const rove::Error& error) {
            std::printf("%s\n", error.what());
            check("a lambda is not resident in another program", error.code() == rove::ErrorCode::unsupported);
            const std::string words = error.what();
            check("and is told why it could not be sent", words.find("carries no code") != std::string::npos);
        }
    }
    if (!flags.contains("either"))
        check("code travelled or not", (peer.counters().code_bytes_sent > 0) == flags.contains("shipped"));
    if (failures == 0) std::printf("all is well\n");
    return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) try {
    if (count == 2 && !std::strcmp(arguments[1], "serve")) return serve();
    if (count >= 3 && !std::strcmp(arguments[1], "call"))
        return call(arguments[2], std::set<std::string>(arguments + 3, arguments + count));
    return std::fprintf(stderr, "usage: program serve | call ADDRESS\n"), 2;
} catch (const rove::Error& error) {
    return std::fprintf(stderr, "program: %s\n", error.what()), 1;
}
