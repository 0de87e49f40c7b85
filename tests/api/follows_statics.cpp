// A program that changes statics through iterators, copies and pointers to const, and searches others through the same types. It is only packed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rove/rove.hpp"

namespace changed {
inline std::vector<int>& sorted() {
    static std::vector<int> by_iterators{3, 1, 2};
    return by_iterators;
}
inline std::vector<int>& looped() {
    static std::vector<int> by_a_loop{3, 1, 2};
    return by_a_loop;
}
inline std::vector<int>& first() {
    static std::vector<int> by_front{3, 1, 2};
    return by_front;
}
inline std::vector<int>& moved() {
    static std::vector<int> by_a_moved_iterator{3, 1, 2};
    return by_a_moved_iterator;
}
struct Raw {  // copied in memory
    int* where;
    long more[3];
};
inline Raw& raw() {
    static Raw by_a_copy{new int(1), {}};
    return by_a_copy;
}
inline std::span<int>& span() {
    static std::span<int> by_a_copied_span(new int[4]{}, 4);
    return by_a_copied_span;
}
inline int beside_views = 1;
[[gnu::noinline]] inline void set(std::string_view, std::string_view, int& out, const int& value) {
    out = value;
}
inline std::unique_ptr<int>& owner() {
    static std::unique_ptr<int> of_what_changes(new int(4));
    return of_what_changes;
}
inline void set(const std::unique_ptr<int>& pointer, int value) {
    *pointer = value;
}
}  // namespace changed

namespace left {
inline const std::map<int, int> kDistances{{1, 2}, {3, 4}};
inline const std::map<int, int> kCounted{{1, 2}, {3, 4}};
inline const std::vector<int> kSorted{1, 2, 3};
inline std::vector<int>& read() {  // by the iterators that change others
    static std::vector<int> only{3, 1, 2};
    return only;
}
inline std::map<int, int>& walked() {
    static std::map<int, int> tree{{1, 2}};
    return tree;
}
inline std::shared_ptr<int>& shared() {
    static std::shared_ptr<int> counted = std::make_shared<int>(1);
    return counted;
}
inline const std::regex kWord("a+b");
inline int table[3] = {1, 2, 3};
inline std::string text = "12", file = "/nowhere", variable = "NOWHERE", printed = "left";
inline std::string argument = "argument", address = "unix:/nowhere";
inline std::vector<int> numbers{1, 2};
inline std::size_t named() {
    return text.size() + file.size() + variable.size() + printed.size() + argument.size() + address.size() +
           numbers.size();
}
inline int jumped(int x) {
    static void* labels[] = {&&even, &&odd};
    goto* labels[x % 2];
even:
    return 2;
odd:
    return 1;
}
inline int matched(const std::string& text) {
    int sum = std::regex_match(text, kWord) ? 1 : 0;
    for (auto at = std::sregex_iterator(text.begin(), text.end(), kWord); at != std::sregex_iterator(); ++at) ++sum;
    return sum + static_cast<int>(std::regex_replace(text, kWord, "c").size());
}
inline int looked_up(int x) {
    int sum =
        jumped(x) + static_cast<int>(named()) + matched("aab") + *std::max_element(std::begin(table), std::end(table));
    for (int& each : read()) sum += each;
    for (auto& [key, value] : walked()) sum += key + value;
    const std::shared_ptr<int> mine = shared();
    return sum + read().front() + *mine +
           static_cast<int>(
               std::distance(kDistances.begin(), kDistances.lower_bound(x)) +
               std::count_if(kCounted.begin(), kCounted.end(), [x](const auto& each) { return each.second > x; }) +
               (std::lower_bound(kSorted.begin(), kSorted.end(), x) - kSorted.begin()));
}
}  // namespace left

static int all(int x) {
    return changed::sorted()[0] + changed::looped()[0] + changed::first()[0] + changed::moved()[0] +
           *changed::raw().where + changed::span()[0] + changed::beside_views + *changed::owner() + left::looked_up(x);
}

static int lengths(const std::string& text, const std::vector<int>& numbers) {
    return static_cast<int>(text.size() + numbers.size());
}

int main(int argc, char** argv) {
    std::sort(changed::sorted().begin(), changed::sorted().end());
    for (int& each : changed::looped()) each = argc;
    changed::first().front() = argc;
    std::vector<int>::iterator at = changed::moved().begin();
    at += 1;
    *at = argc;
    const changed::Raw raw = changed::raw();
    *raw.where = argc;
    const std::span<int> span = changed::span();
    span[0] = argc;
    changed::set("a", "b", changed::beside_views, argc);
    changed::set(changed::owner(), argc);
    std::printf("%d %d\n", left::looked_up(argc), std::atoi(left::text.c_str()));
    if (std::FILE* const file = std::fopen(left::file.c_str(), "r")) {
        std::fwrite(left::printed.data(), 1, left::printed.size(), file);
        std::fclose(file);
    }
    if (const char* const found = std::getenv(left::variable.c_str())) std::puts(found);
    std::cout << left::printed << '\n';
    if (argc < 2) return 0;
    rove::Node node;
    rove::Peer peer = node.connect(argc > 2 ? std::string_view(argv[1]) : left::address);
    std::printf("%d\n", peer.sync(rove::fn<lengths>, left::argument, left::numbers));
    std::printf("%d\n", peer.sync(rove::fn<all>, 1));
    return 0;
}
