#include "town.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>
#include <utility>

#include "cut.hpp"

namespace life {

using namespace std::chrono_literals;

namespace {

// How long a client may take to end: its own patience with unanswered calls (worker.cpp), and as long for the machine.
constexpr auto kClientEnds = 45s;
constexpr auto kNodeEnds = 15s;  // after SIGTERM: three times the grace that a node gives its functions
constexpr auto kNodeListens = 20s;
constexpr auto kAnswersTake = 60s;  // a second on a machine that has nothing else to do
constexpr auto kSettles = 10s;      // what clients had is given back when their connections are seen to be closed
constexpr unsigned kFailedStartsMax = 8;

std::string client_end(int status) {
    if (status == kStuck) return "waited in vain, 25 s after the trouble";
    if (status == kRollCallFailed) return "was not answered from everywhere, after the trouble";
    return fmt::format("ended with status {}", status);
}

}  // namespace

Town::Town(Setting setting, const Plan& plan) : setting_(std::move(setting)), plan_(plan) {
    const std::string path = setting_.scratch + "/runs";
    runs_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    nodes_[0].address = "unix:" + setting_.scratch + "/n0";
    nodes_[1].address = "127.0.0.1:0";
    nodes_[2].address = "unix:" + setting_.scratch + "/n2";
}

Town::~Town() {
    for (auto* clients : {&clients_, &leaving_})
        for (Client& client : *clients) munmap(client.ledger, sizeof(Ledger));
    close(runs_);
}

void Town::complain(std::string what) {
    complaints_.push_back(std::move(what));
}

void Town::later(std::chrono::milliseconds pause, std::function<void()> what) {
    later_.push_back({Clock::now() + pause, std::move(what)});
}

std::string Town::log_end(const std::string& name) const {
    const std::string log = read_file(setting_.scratch + "/" + name + ".log");
    return log.size() > 400 ? log.substr(log.size() - 400) : log;
}

// ---- nodes

void Town::start_node(unsigned index) {
    NodeProcess& node = nodes_[index];
    std::string join;
    for (unsigned i = 1; i < kNodes && join.empty(); ++i) {
        const NodeProcess& other = nodes_[(index + kNodes - i) % kNodes];
        if (other.process.runs() && other.wanted) join = other.address;
    }
    std::vector<std::string> command;
    if (index == plan_.resident) {
        command = {setting_.programs + "/life_node", node.address, join.empty() ? "-" : join, setting_.fabric,
                   std::to_string(setting_.engines)};
    } else {
        command = {setting_.programs + "/rove",
                   "node",
                   "--listen",
                   node.address,
                   "--fabric",
                   setting_.fabric,
                   "--waiting",
                   index == 0 ? "frugal" : "balanced",
                   "--threads",
                   std::to_string(plan_.threads[index]),
                   "--engines",
                   std::to_string(setting_.engines)};
        if (!join.empty()) command.insert(command.end(), {"--join", join});
    }
    node.wanted = true;
    node.process = start(command, setting_.scratch + "/node-" + std::to_string(index), runs_);
}

bool Town::wait_until_listening(unsigned index) {
    NodeProcess& node = nodes_[index];
    const auto until = Clock::now() + kNodeListens;
    while (!node.process.ended() && Clock::now() < until) {
        const std::string text = read_file(setting_.scratch + "/node-" + std::to_string(index) + ".out");
        if (text.starts_with("listening ") && text.ends_with("\n")) {
            node.address = text.substr(10, text.find('\n') - 10);
            return true;
        }
        std::this_thread::sleep_for(2ms);
    }
    complain(fmt::format("node {} does not listen: {}", index, log_end(fmt::format("node-{}", index))));
    return false;
}

void Town::start_nodes() {
    for (unsigned i = 0; i < kNodes; ++i) {
        start_node(i);
        if (!wait_until_listening(i)) return;
    }
}

void Town::kill_node(unsigned index, int signal, std::chrono::milliseconds pause) {
    NodeProcess& node = nodes_[index];
    if (!node.wanted || !node.process.runs()) return;
    // One at a time is down, so that there is one to join.
    for (const NodeProcess& other : nodes_)
        if (!other.wanted || !other.process.runs()) return;
    node.wanted = false;
    node.lived_through = false;
    node.process.signal(signal);
    node.process.signal(SIGCONT);
    const auto ends = Clock::now() + kNodeEnds;
    later(pause, [this, index, signal, ends] {
        NodeProcess& again = nodes_[index];
        if (!again.process.ended()) {
            if (!again.process.wait(ends)) {
                complain(fmt::format("node {} did not end within {} s of SIG{}", index, kNodeEnds / 1s,
                                     sigabbrev_np(signal)));
                again.process = {};
            }
        }
        start_node(index);
    });
}

void Town::check_nodes() {
    for (unsigned i = 0; i < kNodes; ++i) {
        NodeProcess& node = nodes_[i];
        if (!node.wanted || !node.process.ended()) continue;
        // A line for each start that came so far.
        const std::string said = read_file(setting_.scratch + "/node-" + std::to_string(i) + ".out");
        const auto listened = static_cast<unsigned>(std::count(said.begin(), said.end(), '\n'));
        if (std::exchange(node.listened, listened) != listened) node.failed_starts = 0;
        // The node that it was to join may be stopped just now, or its own address still in use.
        const int status = *node.process.ended();
        const std::string log = log_end(fmt::format("node-{}", i));
        if (status != 1 || !log.ends_with("\n") || node.lived_through || ++node.failed_starts > kFailedStartsMax) {
            complain(fmt::format("node {} ended by itself with status {}: {}", i, status, log));
            node.lived_through = false;
            if (++node.failed_starts > 2 * kFailedStartsMax) {
                node.wanted = false;
                continue;
            }
        }
        node.wanted = false;
        later(200ms, [this, i] { start_node(i); });
    }
}

void Town::stop_for(const Process& process, std::chrono::milliseconds length) {
    if (!process.runs()) return;
    // By a handle: its number may be somebody else's by the time it goes on.
    const int handle = static_cast<int>(syscall(SYS_pidfd_open, process.pid(), 0));
    if (handle < 0) return;
    process.signal(SIGSTOP);
    later(length, [handle] {
        syscall(SYS_pidfd_send_signal, handle, SIGCONT, nullptr, 0);
        close(handle);
    });
}

// ---- clients

void Town::start_client(std::uint64_t seed, unsigned build, bool roll_call) {
    const auto number = static_cast<std::uint32_t>(records_.size() + 1);
    const std::string name = setting_.scratch + "/client-" + std::to_string(number);
    Ledger* ledger = map_ledger(name + ".ledger", true);
    ledger->header.client = number;
    ledger->header.build = build;
    records_.push_back({.number = number, .build = build, .ledger = name + ".ledger"});
    std::vector<std::string> command{fmt::format("{}/life_client_{}", setting_.programs, build),
                                     name + ".ledger",
                                     std::to_string(seed),
                                     setting_.fabric,
                                     setting_.packages,
                                     std::to_string(plan_.resident),
                                     std::to_string(setting_.rate),
                                     roll_call ? "1" : "0"};
    for (const NodeProcess& node : nodes_) command.push_back(node.address);
    clients_.push_back({start(command, name, runs_), ledger, records_.size() - 1, {}});
}

void Town::tell(Client& client, Phase phase, std::chrono::milliseconds limit) {
    client.ledger->header.phase = phase;
    client.leave_until = Clock::now() + limit;
}

void Town::check_clients(std::vector<Client>& clients, bool told) {
    std::erase_if(clients, [&](Client& client) {
        ClientRecord& record = records_[client.record];
        const bool late = told && Clock::now() > client.leave_until;
        if (late && client.process.runs()) {
            complain(fmt::format("client {} did not end within {} s", record.number, kClientEnds / 1s));
            client.process = {};
        } else if (!client.process.ended()) {
            return false;
        } else if (*client.process.ended() != 0 || (!told && !record.killed)) {
            if (!record.killed)
                complain(fmt::format("client {} {}: {}", record.number, client_end(*client.process.ended()),
                                     log_end(fmt::format("client-{}", record.number))));
        }
        pieces_ended_ += client.ledger->header.used.load();
        munmap(client.ledger, sizeof(Ledger));
        return true;
    });
}

void Town::start_clients() {
    for (unsigned i = 0; i < kClientsAtFirst; ++i) start_client(plan_.first_seeds[i], 1 + i % 2);
}

void Town::client_trouble(const Event& event) {
    if (event.trouble == Trouble::client_more || clients_.empty()) {
        if (clients_.size() < kClientsMax) start_client(event.seed, 1 + event.seed % 2);
        return;
    }
    const std::size_t index = event.who % clients_.size();
    Client& client = clients_[index];
    if (event.trouble == Trouble::client_stopped) return stop_for(client.process, event.lasts);
    if (event.trouble == Trouble::client_cut) {
        cut_connections(client.process.pid(), nodes_[event.other % kNodes].address);
        return;
    }
    if (event.trouble == Trouble::client_killed) {
        records_[client.record].killed = true;
        client.process.signal(SIGKILL);
        tell(client, Phase::leave, kClientEnds);
    } else {
        client.process.signal(SIGCONT);
        tell(client, Phase::leave, kClientEnds);
    }
    leaving_.push_back(std::move(client));
    clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(index));
    if (clients_.size() < kClientsAtFirst)
        later(event.lasts / 4, [this, seed = event.seed] { start_client(seed, 1 + seed % 2); });
}

// ---- the course of it

void Town::apply(const Event& event) {
    ++counts_[static_cast<unsigned>(event.trouble)];
    last_trouble_ = kTroubleNames[static_cast<unsigned>(event.trouble)];
    NodeProcess& node = nodes_[event.who % kNodes];
    switch (event.trouble) {
        case Trouble::node_killed: return kill_node(event.who, SIGKILL, event.lasts);
        case Trouble::node_ended: return kill_node(event.who, SIGTERM, event.lasts);
        case Trouble::node_stopped:
            if (node.wanted) stop_for(node.process, event.lasts);
            return;
        case Trouble::nodes_cut: {
            NodeProcess& other = nodes_[(event.who + event.other) % kNodes];
            for (const auto& [from, to] : {std::pair(&node, &other), std::pair(&other, &node)})
                if (from->process.runs() && cut_connections(from->process.pid(), to->address) > 0) return;
            return;
        }
        default: return client_trouble(event);
    }
}

void Town::tick() {
    check_nodes();
    check_clients(leaving_, true);
    check_clients(clients_, false);
    std::vector<Later> due;
    std::erase_if(later_, [&](Later& each) {
        if (each.at > Clock::now()) return false;
        due.push_back(std::move(each));
        return true;
    });
    for (Later& each : due) each.what();
}

void Town::calm() {
    const auto until = Clock::now() + kNodeListens;
    const auto all_run = [&] {
        return std::all_of(std::begin(nodes_), std::end(nodes_),
                           [](NodeProcess& node) { return node.wanted && !node.process.ended(); });
    };
    while ((!later_.empty() || !all_run()) && Clock::now() < until) {
        tick();
        std::this_thread::sleep_for(5ms);
    }
    if (!all_run()) return complain("not all nodes run after the trouble");
    Answers answers;
    for (const Client& client : clients_) answers.watch(records_[client.record].ledger, "all");
    wait_for(answers, "after the trouble");
}

void Town::wait_for(const Answers& answers, const char* when) {
    const auto until = Clock::now() + kAnswersTake;
    while (!answers.missing().empty() && Clock::now() < until) {
        tick();
        std::this_thread::sleep_for(20ms);
    }
    if (const std::string missing = answers.missing(); !missing.empty())
        complain(fmt::format("{}, within {} s, too little was answered: {}", when, kAnswersTake / 1s, missing));
    for (const std::string& line : answers.lines()) answers_.push_back(fmt::format("answered {}, {}", when, line));
}

void Town::wait_for_leaving() {
    while (!leaving_.empty()) {
        tick();
        std::this_thread::sleep_for(2ms);
    }
}

void Town::finish_clients() {
    for (Client& client : clients_) {
        tell(client, Phase::calm, kClientEnds);
        leaving_.push_back(std::move(client));
    }
    clients_.clear();
    wait_for_leaving();
}

void Town::roll_call() {
    start_client(plan_.first_seeds[0], 1, true);
    tell(clients_.back(), Phase::calm, kClientEnds);
    leaving_.push_back(std::move(clients_.back()));
    clients_.clear();
    wait_for_leaving();
}

void Town::warm_up(std::chrono::milliseconds length) {
    Answers answers;
    for (unsigned i = 0; i < 2; ++i) {
        start_client(plan_.first_seeds[i] + 1, 1 + i);
        records_.back().quiet = true;
        answers.watch(records_.back().ledger, fmt::format("build {}", 1 + i));
    }
    const auto until = Clock::now() + length;
    while (Clock::now() < until) {
        tick();
        std::this_thread::sleep_for(5ms);
    }
    wait_for(answers, "before the trouble");
    finish_clients();
    std::this_thread::sleep_for(200ms);
    for (unsigned i = 0; i < kNodes; ++i) {
        nodes_[i].before = usage_of(nodes_[i].process.pid());
        keep_maps(i, "before");
    }
}

void Town::keep_maps(unsigned index, const char* when) const {
    std::error_code ignored;
    std::ofstream(fmt::format("{}/node-{}-maps-{}", setting_.scratch, index, when))
        << read_file(fmt::format("/proc/{}/maps", nodes_[index].process.pid()));
    std::ofstream links(fmt::format("{}/node-{}-descriptors-{}", setting_.scratch, index, when));
    for (const auto& each :
         std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", nodes_[index].process.pid()), ignored))
        links << each.path().filename().string() << ' ' << std::filesystem::read_symlink(each.path(), ignored).string()
              << '\n';
}

void Town::compare_usage() {
    const auto until = Clock::now() + kSettles;
    Usage slack = setting_.fabric == "ucx" ? kSlackOverUcx : kSlack;
    slack.mappings *= setting_.engines;  // each has threads of its own
    slack.threads *= setting_.engines;
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
    slack.mappings = std::numeric_limits<int>::max();  // its runtime makes them as it goes
#endif
    for (unsigned i = 0; i < kNodes; ++i) {
        const NodeProcess& node = nodes_[i];
        if (!node.lived_through || !node.process.runs()) continue;
        Usage now = usage_of(node.process.pid());
        while (!is_back(now, node.before, slack) && Clock::now() < until) {
            std::this_thread::sleep_for(50ms);
            now = usage_of(node.process.pid());
        }
        usages_.push_back(
            fmt::format("node {}: mappings {} -> {}, descriptors {} -> {}, threads {} -> {}, resident {} -> {} KiB", i,
                        node.before.mappings, now.mappings, node.before.descriptors, now.descriptors,
                        node.before.threads, now.threads, node.before.resident_kib, now.resident_kib));
        keep_maps(i, "after");
        if (!is_back(now, node.before, slack)) complain("not given back: " + usages_.back());
    }
}

void Town::stop_nodes() {
    for (NodeProcess& node : nodes_) {
        node.wanted = false;
        node.process.signal(SIGTERM);
    }
    for (unsigned i = 0; i < kNodes; ++i) {
        if (!nodes_[i].process.runs()) continue;
        const auto status = nodes_[i].process.wait(Clock::now() + kNodeEnds);
        if (!status)
            complain(fmt::format("node {} did not end within {} s of SIGTERM", i, kNodeEnds / 1s));
        else if (*status != 0)
            complain(fmt::format("node {} ended with status {} after SIGTERM: {}", i, *status,
                                 log_end(fmt::format("node-{}", i))));
    }
}

std::uint64_t Town::pieces() const {
    std::uint64_t sum = pieces_ended_;
    for (const auto* clients : {&clients_, &leaving_})
        for (const Client& client : *clients) sum += client.ledger->header.used.load();
    return sum;
}

}  // namespace life
