// A program that changes some of the statics that functions which it sends use, too. It is only packed.
#include <pthread.h>

#include <cstdio>
#include <cstring>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "rove/rove.hpp"

// Named: their own code in the program changes them.
namespace changed {
inline int level = 1;
inline int registered = 1;
struct Copied {  // passed by value, in memory
    int* where;
    long more[2];
};
[[gnu::noinline]] inline void set(Copied copied) {
    *copied.where = static_cast<int>(copied.more[0]);
}
template <typename T>
struct Tally {
    static inline std::vector<T> kept{1, 2, 3};
};
inline int counted() {
    static int calls = 0;
    return ++calls;
}
inline std::map<int, int>& shard() {
    static std::map<int, int> entries;
    return entries;
}
inline std::map<int, int>& prices() {
    static std::map<int, int> of_things{{1, 1}};
    return of_things;
}
inline std::once_flag begun;
inline pthread_key_t key = 4711;
inline pthread_t worker;
inline int written = 1;
inline int* const through = &written;
inline pthread_mutex_t recursive = PTHREAD_MUTEX_INITIALIZER;
inline char* buffer() {
    static char bytes[16] = "";
    return bytes;
}
struct Settings {
    std::unique_ptr<int> depth = std::make_unique<int>(1);
    static Settings& instance() {
        static Settings settings;
        return settings;
    }
};
}  // namespace changed

// Not named: they are only read here, or made, or not used here; or they are locks.
namespace left {
inline pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER;
inline std::mutex mutex;
inline int depth = 3;
inline const int* at = &depth;
struct Option {
    const char* name;
    int* value;
};
inline Option options[] = {{"depth", &depth}};
inline int level = 1;
inline const std::string kWord = "a word that is longer than what fits into the object";
inline thread_local int of_thread = 0;
inline int counted() {
    static int calls = 0;
    return ++calls;
}
inline int square(int x) {
    static const std::map<int, int> squares{{1, 1}, {2, 4}, {3, 9}};
    return squares.at(x);
}
inline const std::map<int, int> kTable{{1, 2}, {3, 4}};
struct Place {  // kept in memory, the iterator in a part of it
    long more[4];
    std::map<int, int>::const_iterator at;
};
[[gnu::noinline]] inline int second_of(const Place& place) {
    return place.at->second;
}
inline int searched(int x) {  // by iterators, which are kept in variables
    const auto at = kTable.find(x);
    int sum = at == kTable.end() ? -1 : at->second;
    for (auto each = kTable.begin(); each != kTable.end(); ++each) sum += each->first;
    return sum + second_of({{}, kTable.begin()});
}
inline std::size_t length() {
    static std::string text(40, 'x');
    return text.find('y') == std::string::npos ? text.size() + std::string(text).size() : 0;
}
inline int waited() {  // which the C++ library does with statics of its own
    std::latch gone(1);
    gone.count_down();
    gone.wait();
    return 1;
}
inline const std::vector<int>& numbers() {
    static std::vector<int> made = [] {
        std::vector<int> all(5);
        std::iota(all.begin(), all.end(), 1);
        return all;
    }();
    return made;
}
// Of these cereal keeps tables in both.
struct Shape {
    virtual ~Shape() = default;
    std::string name;
    template <typename Archive>
    void serialize(Archive& archive, std::uint32_t /*version*/) {
        archive(name);
    }
};
struct Square : Shape {
    int side = 0;
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(cereal::base_class<Shape>(this), side);
    }
};
inline Square larger(Square square) {
    ++square.side;
    return square;
}
}  // namespace left
CEREAL_CLASS_VERSION(left::Shape, 2)

// As what registers itself does.
static const bool is_registered = (changed::registered = 5, true);

static int all_of_changed(int x) {
    changed::shard()[x] = x;
    std::strcpy(changed::buffer(), "there");  // NOLINT(clang-analyzer-security.insecureAPI.strcpy): it fits
    changed::Tally<int>::kept.push_back(x);
    std::call_once(changed::begun, [] {});
    (void)pthread_mutex_trylock(&changed::recursive);
    return changed::written + static_cast<int>(changed::key + changed::worker) + changed::counted() +
           changed::registered + changed::level + static_cast<int>(changed::shard().size()) +
           *changed::Settings::instance().depth + changed::buffer()[0] + changed::prices().at(1) +
           static_cast<int>(changed::Tally<int>::kept.size());
}

static int all_of_left(int x) {
    ++left::of_thread;
    ++left::level;
    const std::vector<int>& numbers = left::numbers();
    const std::scoped_lock lock(left::mutex);
    (void)pthread_rwlock_tryrdlock(&left::readers);
    return left::depth + *left::at + *left::options[0].value + left::counted() + left::waited() + left::square(x) +
           left::searched(x) + static_cast<int>(left::length() + left::kWord.size()) + left::level +
           std::accumulate(numbers.begin(), numbers.end(), 0) + left::of_thread;
}

int main(int argc, char** argv) {
    changed::set({&changed::level, {argc, 0}});
    changed::counted();
    std::call_once(changed::begun, [] {});
    pthread_key_create(&changed::key, nullptr);
    pthread_create(&changed::worker, nullptr, [](void* of) { return of; }, nullptr);
    pthread_mutexattr_t may_lock_again;
    pthread_mutexattr_init(&may_lock_again);
    pthread_mutex_init(&changed::recursive, &may_lock_again);
    pthread_rwlock_wrlock(&left::readers);
    pthread_rwlock_unlock(&left::readers);
    const std::scoped_lock lock(left::mutex);
    changed::shard().emplace(1, argc);
    changed::buffer()[1] = 'a';
    const auto price = changed::prices().find(1);
    if (price != changed::prices().end()) price->second = argc;
    *changed::Settings::instance().depth = argc;
    changed::Tally<int>::kept[1] = argc;
    left::of_thread = argc * left::waited();
    *changed::through = argc + *left::at + *left::options[0].value;
    std::printf("%d %d %zu %s %d %d\n", left::searched(1), left::square(2), left::length(), left::kWord.c_str(),
                left::numbers().at(2), left::level);
    if (argc < 2 || !is_registered) return 0;
    rove::Node node;
    rove::Peer peer = node.connect(argv[1]);
    const auto sent = [](int x) { return all_of_changed(x) + all_of_left(x); };
    std::printf("%d %d %d %d\n", peer.sync(rove::fn<all_of_changed>, 1), peer.sync(rove::fn<all_of_left>, 1),
                peer.sync(sent, 1), peer.sync(rove::fn<left::larger>, left::Square()).side);
    return 0;
}
