#include "bench/session.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "bench/runs.hpp"
#include "rove/error.hpp"

namespace rove::bench {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

FabricChoice fabric_of(const Settings& settings) {
    return settings.fabric == "tcp" ? FabricChoice::tcp : FabricChoice::shm;
}

Session::Session(const Settings& settings, const Sides& sides)
    : settings_(settings), cores_(choose_cores()), cookie_((scratch_.path() / "cookie").string()) {
    std::vector<std::string> flags = {"--fabric", settings.fabric};
    flags.insert(flags.end(), sides.flags.begin(), sides.flags.end());
    if (sides.preload) {
        for (const char* name : {"bench_table", "increment", "indirect_put", "sum"})
            fs::copy(settings.packages / (std::string(name) + ".rove"), scratch_.path());
        flags.insert(flags.end(), {"--packages", scratch_.path()});
    }
    StartedNode started = start_node(settings.rove, cookie_, sides.both_cores ? kAnyCore : cores_.node, flags);
    node_ = std::move(started.process);
    address_ = std::move(started.address);
    pin_to(sides.both_cores ? kAnyCore : cores_.client);
    NodeOptions options;
    options.fabric = fabric_of(settings);
    options.own_thread = sides.own_thread;
    options.cookie = cookie_;
    options.forms = sides.forms;
    client_ = std::make_unique<Node>(options);
    peer_ = std::make_unique<Peer>(client_->connect(address_));
}

Package Session::package(const std::string& name) const {
    return Package::open(settings_.packages / (name + ".rove"));
}

Sender::Sender(const Session& session, const std::string& mode, const std::string& function, std::size_t size)
    : peer_(session.peer()),
      deliver_(mode == "deliver"),
      entry_(prepared(session, mode, function)),
      message_(entry_, std::max<std::size_t>(size, function == "indirect_put" ? 16 : 8)) {
    const std::uint64_t one = 1;
    std::memcpy(message_.payload().data(), &one, sizeof one);
    if (deliver_) return;
    // The bitcode tier is compiled after the first call: measure what stays.
    for (int i = 0; i < 100; ++i) call();
    std::this_thread::sleep_for(milliseconds(300));
    for (int i = 0; i < 1000; ++i) call();
}

void Sender::call() {
    std::byte reply[64];
    (void)(deliver_ ? peer_.ping(message_.payload()) : peer_.call(message_)).get_into(reply);
}

void Sender::post() {
    if (deliver_)
        peer_.deliver(message_.payload());
    else
        peer_.post(message_);
}

Entry Sender::prepared(const Session& session, const std::string& mode, const std::string& function) {
    if (function == "indirect_put" && mode != "resident") session.peer().load(session.package("bench_table"));
    const Entry entry = session.package(function).entry(function);
    return mode == "inline" ? entry.sent(Sending::always_inlined) : entry;
}

OneWay ping_pong(Sender& sender, std::size_t samples) {
    std::vector<double> one_way;
    one_way.reserve(samples);
    for (std::size_t i = 0; i < samples / 10; ++i) sender.call();
    std::uint64_t last = ticks();
    for (std::size_t i = 0; i < samples; ++i) {
        sender.call();
        const std::uint64_t now = ticks();
        one_way.push_back(static_cast<double>(now - last) * ns_per_tick() / 2);
        last = now;
    }
    return summary(std::move(one_way));
}

}  // namespace rove::bench
