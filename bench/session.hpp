// What most shapes measure with: a node of its own, a client of it in this process, and a call that is repeated.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/machine.hpp"
#include "bench/report.hpp"
#include "bench/shapes.hpp"
#include "bench/sides.hpp"
#include "rove/node.hpp"

namespace rove::bench {

struct Sides {
    std::vector<std::string> flags;  // the node's
    bool preload = false;            // the node has all functions from the start
    Forms forms = Forms::both;       // in which the client sends them
    bool own_thread = false;         // the client's node has threads of its own
    bool both_cores = false;         // either side may use both cores; otherwise each has its own
};

[[nodiscard]] FabricChoice fabric_of(const Settings& settings);

// A node of its own and a client of it.
class Session {
public:
    Session(const Settings& settings, const Sides& sides);

    [[nodiscard]] const Peer& peer() const { return *peer_; }
    [[nodiscard]] const Cores& cores() const { return cores_; }
    [[nodiscard]] const std::string& address() const { return address_; }  // the node's
    [[nodiscard]] pid_t node_pid() const { return node_.pid(); }
    [[nodiscard]] const std::string& cookie() const { return cookie_; }  // the file by which it lets clients in
    [[nodiscard]] Package package(const std::string& name) const;

private:
    const Settings& settings_;
    Cores cores_;
    Scratch scratch_;
    std::string cookie_;
    Process node_;
    std::string address_;
    std::unique_ptr<Node> client_;
    std::unique_ptr<Peer> peer_;
};

// One repeated call: a mode, a function, a size. The only place that knows how a mode is asked for.
class Sender {
public:
    Sender(const Session& session, const std::string& mode, const std::string& function, std::size_t size);

    void call();
    void post();
    [[nodiscard]] const Entry& entry() const { return entry_; }
    [[nodiscard]] std::size_t size() { return message_.payload().size(); }
    [[nodiscard]] double frame_bytes() const { return peer_.counters().frame_bytes_last; }

private:
    static Entry prepared(const Session& session, const std::string& mode, const std::string& function);

    const Peer& peer_;
    bool deliver_;
    Entry entry_;
    Message message_;
};

// Half the round trip of each of `samples` calls.
[[nodiscard]] OneWay ping_pong(Sender& sender, std::size_t samples);

}  // namespace rove::bench
