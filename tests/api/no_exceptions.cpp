// Built with -fno-exceptions: what it calls travels as well, and an error in it ends its call, and not its node.
#include <cstdio>
#include <cstring>

#include "rove/rove.hpp"

namespace {

int square(int x) {
    return x * x;
}
std::string twice(const std::string& text) {
    return text + text;
}
struct OfThree {  // no default constructor
    explicit OfThree(int x) : number(x) {}
    int number;
};
int sum(const std::vector<OfThree>& values) {
    int total = 0;
    for (const OfThree& each : values) total += each.number;
    return total;
}

struct Store {
    int number;
};
int number_of_store(rove::Here& here, int levels) {
    return levels > 0 ? number_of_store(here, levels - 1) + 1 : here.object<Store>("store").number;
}
int element(const std::vector<int>& values, std::size_t index) {
    return values.at(index);
}

bool fails(const rove::Call<int>& call, int code, const char* words) {
    const void* data = nullptr;
    std::size_t size = 0;
    const int error = rove_pending_result(rove::detail::Access::pending(call), &data, &size);
    if (error == code && std::strstr(rove_last_failure()->message, words) != nullptr) return true;
    std::printf("%d: %s\n", error, error != ROVE_OK ? rove_last_failure()->message : "no failure");
    return false;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return 2;
    rove::Node node;
    const rove::Peer peer = node.connect(arguments[1]);
    if (peer.sync(rove::fn<square>, 7) != 49 || peer.sync(rove::fn<twice>, std::string("ab")) != "abab") return 1;
    if (peer.sync(rove::fn<sum>, std::vector<OfThree>{OfThree(3), OfThree(4)}) != 7) return 1;
    if (!fails(peer.async(rove::fn<number_of_store>, 5), ROVE_INVALID, "shares no object 'store'")) return 1;
    if (!fails(peer.async(rove::fn<element>, std::vector<int>{1, 2}, std::size_t{7}), ROVE_FAILED, "which is 7"))
        return 1;
    if (peer.sync(rove::fn<square>, 8) != 64) return 1;
    std::printf("all is well\n");
    return 0;
}
