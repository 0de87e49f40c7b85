// The idle peers of `rove bench idle`, many to a process: a program of its own, so that it can be seen what they take.
//   rove_bench_peers ADDRESS FABRIC INCREMENT.rove COUNT    makes COUNT clients of that node, which know it not yet, and prints COUNT
// Then it obeys lines of its standard input, and answers each with a line of numbers:
//   meet COUNT     the next COUNT clients meet the node, one after the other: the ns that each took
//   call           each client that has met it calls once: how many have
//   first          for each but the first one: the ns of its first call, and of a warm one
// It ends with its standard input. Where something fails it says so on its standard error, and ends with status 1.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor_limit.hpp"
#include "rove/node.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Figures = std::vector<double>;

// How many calls of another client keep the node awake before a first call, and of how many calls the median is a warm one.
constexpr int kCallsBefore = 100, kWarmCalls = 21;

template <typename Work>
double ns_of(const Work& work) {
    const Clock::time_point begin = Clock::now();
    work();
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

class Peers {
public:
    Peers(std::string address, const std::string& fabric, rove::Entry entry, std::size_t count)
        : address_(std::move(address)), message_(std::move(entry), sizeof(std::int64_t)) {
        rove::NodeOptions options;
        options.fabric = fabric == "tcp" ? rove::FabricChoice::tcp : rove::FabricChoice::shm;
        options.own_thread = false;
        options.connect_timeout = std::chrono::minutes(1);  // a meeting that takes long is a figure, too
        for (std::size_t i = 0; i < count; ++i) clients_.emplace_back(options);
    }

    Figures meet(std::size_t count) {
        Figures ns;
        for (std::size_t i = 0; i < count && met_.size() < clients_.size(); ++i)
            ns.push_back(ns_of([&] { met_.push_back(clients_[met_.size()].connect(address_)); }));
        return ns;
    }

    Figures call_all() {
        for (const rove::Peer& peer : met_) call(peer);
        return {static_cast<double>(met_.size())};
    }

    // The first client keeps the node awake. It spins for a while after a call, and another client's call arrives in that time.
    Figures first_calls() {
        Figures ns;
        for (const rove::Peer& peer : std::span(met_).subspan(std::min<std::size_t>(1, met_.size()))) {
            for (int i = 0; i < kCallsBefore; ++i) call(met_.front());
            ns.push_back(ns_of([&] { call(peer); }));
            std::array<double, kWarmCalls> warm;
            for (double& each : warm) each = ns_of([&] { call(peer); });
            std::nth_element(warm.begin(), warm.begin() + kWarmCalls / 2, warm.end());
            ns.push_back(warm[kWarmCalls / 2]);
        }
        return ns;
    }

private:
    void call(const rove::Peer& peer) {
        std::array<std::byte, 64> reply;
        (void)peer.call(message_).get_into(reply);
    }

    std::string address_;
    rove::Message message_;
    std::deque<rove::Node> clients_;
    std::vector<rove::Peer> met_;
};

void answer(const Figures& figures) {
    for (const double each : figures) std::printf("%.0f ", each);
    std::printf("\n");
    (void)std::fflush(stdout);
}

void serve(Peers& peers) {
    for (std::string word; std::cin >> word;) {
        std::size_t count = 0;
        if (word == "meet" && std::cin >> count)
            answer(peers.meet(count));
        else if (word == "call")
            answer(peers.call_all());
        else if (word == "first")
            answer(peers.first_calls());
        else
            throw rove::Error(rove::ErrorCode::invalid, "there is no command " + word);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        (void)std::fprintf(stderr, "usage: rove_bench_peers ADDRESS FABRIC INCREMENT.rove COUNT\n");
        return 2;
    }
    rove::allow_all_descriptors();
    try {
        const std::size_t count = std::stoul(argv[4]);
        Peers peers(argv[1], argv[2], rove::Package::open(argv[3]).entry("increment"), count);
        answer({static_cast<double>(count)});
        serve(peers);
    } catch (const std::exception& error) {
        (void)std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
