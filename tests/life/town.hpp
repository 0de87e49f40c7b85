// The town: three nodes and the clients that come and go, and the trouble that befalls them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "answers.hpp"
#include "ledger.hpp"
#include "plan.hpp"
#include "processes.hpp"
#include "usage.hpp"

namespace life {

struct Setting {
    std::string fabric;
    unsigned engines;      // of each node
    std::string scratch;   // a folder of this run's own
    std::string programs;  // build/…/bin
    std::string packages;  // build/…/life
    unsigned rate = 100;   // of each thread of a client, a second
};

// The record of a client after its end.
struct ClientRecord {
    std::uint32_t number = 0;
    unsigned build = 1;
    std::string ledger;
    bool killed = false;  // by the plan: what it was in the middle of is open
    bool quiet = false;   // lived before the trouble, so that nothing it posted may be lost
};

class Town {
public:
    Town(Setting setting, const Plan& plan);
    ~Town();

    void start_nodes();
    // Two clients, one of each build, without trouble, for that long and until they have been answered; then what the nodes hold.
    void warm_up(std::chrono::milliseconds length);
    void start_clients();
    void apply(const Event& event);
    // Does what is due: continues or restarts processes, and notices those that have ended unexpectedly.
    void tick();
    // No more trouble: all go on, all nodes run, and all clients are answered.
    void calm();
    // Clients send no more and wait for their answers; a last one sees that each node reaches each other.
    void finish_clients();
    void roll_call();
    // Compares once more the resources of the nodes that were never restarted.
    void compare_usage();
    void stop_nodes();

    [[nodiscard]] const std::vector<ClientRecord>& records() const { return records_; }
    [[nodiscard]] const std::vector<std::string>& complaints() const { return complaints_; }
    [[nodiscard]] const std::vector<std::string>& usages() const { return usages_; }
    // The least numbers of answers, and when they were reached.
    [[nodiscard]] const std::vector<std::string>& answers() const { return answers_; }
    [[nodiscard]] unsigned clients() const { return static_cast<unsigned>(clients_.size()); }
    [[nodiscard]] unsigned count_of(Trouble trouble) const { return counts_[static_cast<unsigned>(trouble)]; }
    [[nodiscard]] std::uint64_t pieces() const;
    [[nodiscard]] const std::string& last_trouble() const { return last_trouble_; }

private:
    struct NodeProcess {
        std::string address;
        Process process;
        bool lived_through = true;
        bool wanted = false;         // should run; else it is down by the plan
        unsigned failed_starts = 0;  // in a row
        unsigned listened = 0;       // how often it had by the last of them
        Usage before;
    };
    struct Client {
        Process process;
        Ledger* ledger;
        std::size_t record;
        Clock::time_point leave_until;  // when it must have ended, once it has been told to
    };
    struct Later {
        Clock::time_point at;
        std::function<void()> what;
    };

    void start_node(unsigned index);
    bool wait_until_listening(unsigned index);
    void start_client(std::uint64_t seed, unsigned build, bool roll_call = false);
    void tell(Client& client, Phase phase, std::chrono::milliseconds limit);
    void client_trouble(const Event& event);
    void kill_node(unsigned index, int signal, std::chrono::milliseconds pause);
    void stop_for(const Process& process, std::chrono::milliseconds length);
    void check_nodes();
    void check_clients(std::vector<Client>& clients, bool told);
    void keep_maps(unsigned index, const char* when) const;  // for whoever looks for what was not given back
    void wait_for_leaving();
    void wait_for(const Answers& answers, const char* when);
    void later(std::chrono::milliseconds pause, std::function<void()> what);
    void complain(std::string what);
    [[nodiscard]] std::string log_end(const std::string& name) const;

    const Setting setting_;
    const Plan& plan_;
    int runs_;
    NodeProcess nodes_[kNodes];
    std::vector<Client> clients_, leaving_;
    std::vector<ClientRecord> records_;
    std::vector<Later> later_;
    std::vector<std::string> complaints_, usages_, answers_;
    std::string last_trouble_;
    unsigned counts_[static_cast<unsigned>(Trouble::count)]{};
    std::uint64_t pieces_ended_ = 0;
};

}  // namespace life
