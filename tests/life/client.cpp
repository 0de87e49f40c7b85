// life_client LEDGER SEED FABRIC PACKAGES RESIDENT RATE ROLL ADDRESS…: see client.hpp. Started by `life` only.
// Ends with 0 when every entry of its ledger is settled, 3 when a thread still waits long after the trouble's end, and 4 when a
// node does not answer the roll call.
#include "client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace life {

using namespace std::chrono_literals;

std::optional<rove::Peer> World::peer(unsigned index) {
    const std::lock_guard lock(mutex);
    return peers[index];
}

bool World::connect(unsigned index) {
    try {
        rove::Peer peer = node.connect(orders.addresses[index]);
        const std::lock_guard lock(mutex);
        if (!peers[index]) ledger.header.connected.fetch_add(1);
        peers[index] = std::move(peer);
        return true;
    } catch (const rove::Error& error) {
        std::fprintf(stderr, "%s: %s\n", std::string(to_string(error.code())).c_str(), error.what());
        std::this_thread::sleep_for(20ms);  // it is being started again
        return false;
    }
}

namespace {

Packages open_packages(const std::string& folder) {
    const auto version = [&](const std::string& file, const char* entry, unsigned number) {
        rove::Package package = rove::Package::open(folder + "/" + file + ".rove");
        rove::Entry found = package.entry(entry);
        return Packages::Version{std::move(package), std::move(found), static_cast<std::uint8_t>(number)};
    };
    std::vector<Packages::Version> work;
    for (const unsigned number : {LIFE_BUILD, LIFE_BUILD + 2})
        work.push_back(version("work-" + std::to_string(number), "work", number));
    return {std::move(work),
            version("shelf_work-" + std::to_string(LIFE_BUILD), "shelf_work", LIFE_BUILD),
            {rove::Package::open(folder + "/shelf-1.rove"), rove::Package::open(folder + "/shelf-2.rove")}};
}

// Waits for the threads, and serves the node where it has no thread of its own: callbacks and functions of this program want it.
// Ends the process where a thread never comes back from a call.
void wait_for(World& world, const std::atomic<unsigned>& working, bool serves_itself) {
    const auto pause = [&] {
        if (serves_itself)
            std::this_thread::sleep_for(2ms);
        else
            (void)world.node.poll(2ms);
    };
    while (world.phase() == Phase::work) pause();
    const auto until = Clock::now() + 25s;
    while (working.load() != 0 || world.callbacks.load() != 0) {
        if (Clock::now() > until) {
            for (const auto& number : world.ledger.header.doing)
                if (number.load() != 0)
                    std::fprintf(stderr, "a thread has not come back from number %#lx\n", number.load());
            std::fprintf(stderr, "%u threads and %u callbacks are waited for in vain\n", working.load(),
                         world.callbacks.load());
            std::fflush(stderr);
            _exit(kStuck);
        }
        if (world.phase() == Phase::leave && working.load() == 0) return;  // ~Node ends what callbacks wait for
        pause();
    }
}

// Sends work to each node and on to each other and back. False, and why, where that is not answered for 20 s.
bool roll_call(World& world) {
    Worker worker(world, 0);
    const auto until = Clock::now() + 20s;
    const auto count = static_cast<unsigned>(world.orders.addresses.size());
    std::string missing;
    bool silent = false;  // an error may be gone next time; a call that has no end will not
    const auto look = [&](unsigned first) {
        for (unsigned second = 0; !silent && world.peer(first) && second < count; ++second) {
            if (second == first || !world.peer(second)) continue;
            const Worker::Visit visit = worker.visit({first, second, first});
            silent = visit == Worker::Visit::silent;
            if (visit != Worker::Visit::answered)
                missing += fmt::format(" node {} does not reach node {} and get back;", first, second);
        }
    };
    do {
        missing.clear();
        for (unsigned i = 0; i < count; ++i)
            if (!world.peer(i) && !world.connect(i)) missing += fmt::format(" no node {};", i);
        for (unsigned i = 0; i < count; ++i) look(i);
        if (missing.empty()) return true;
        std::this_thread::sleep_for(100ms);
    } while (!silent && Clock::now() < until);
    fmt::print(stderr, "the roll call:{}\n", missing);
    return false;
}

int live(const Orders& orders) {
    Ledger* ledger = map_ledger(orders.ledger, false);
    const Packages packages = open_packages(orders.packages);
    std::mt19937_64 random(orders.seed);
    rove::NodeOptions options;
    options.fabric = fabric_of(orders.fabric);
    options.waiting = random() % 2 == 0 ? rove::Waiting::frugal : rove::Waiting::balanced;
    options.own_thread = random() % 3 != 0;
    options.threads = 1 + random() % 4;
    options.connect_timeout = 2s;
    auto node = std::make_unique<rove::Node>(options);
    World world{orders, *ledger, *node, packages, {}, {}};
    world.peers.resize(orders.addresses.size());
    if (orders.roll_call) return roll_call(world) ? 0 : kRollCallFailed;

    std::atomic<unsigned> working{1 + static_cast<unsigned>(random() % 3)};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < working.load(); ++i) threads.emplace_back();
    for (unsigned i = 0; i < threads.size(); ++i)
        threads[i] = std::thread([&, i] {
            Worker(world, i).run();
            working.fetch_sub(1);
        });
    wait_for(world, working, options.own_thread);
    for (std::thread& thread : threads) thread.join();
    world.peers.clear();
    node.reset();
    // A callback that ~Node did not end is a call whose end nobody was told.
    if (world.callbacks.load() != 0) std::fprintf(stderr, "%u callbacks were never called\n", world.callbacks.load());
    ledger->header.finished = 1;
    return 0;
}

}  // namespace
}  // namespace life

int main(int count, char** arguments) try {
    if (count < 9) return std::fprintf(stderr, "life_client is started by `life`\n"), 2;
    life::Orders orders{.ledger = arguments[1],
                        .seed = std::strtoull(arguments[2], nullptr, 10),
                        .fabric = arguments[3],
                        .packages = arguments[4],
                        .resident = static_cast<unsigned>(std::atoi(arguments[5])),
                        .rate = static_cast<unsigned>(std::atoi(arguments[6])),
                        .roll_call = std::atoi(arguments[7]) != 0,
                        .addresses = {arguments + 8, arguments + count}};
    return life::live(orders);
} catch (const rove::Error& error) {
    return std::fprintf(stderr, "life_client: %s\n", error.what()), 1;
}
