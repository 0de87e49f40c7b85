// NodeCore: the implementation of rove::Node: the engines that work for it, the code that runs on it, the control plane by which it meets other
// nodes, and what all of these share. The layers above (C++, C, functions that run here) get these parts from it.
//
// Which engine. What concerns a peer is asked of the engine that has its link (PeerState::engine); what a running function asks, of the one that
// runs it (rove_here); what concerns a call, of the one that has sent it (rove_pending, RawCall). What concerns the whole node is asked of each
// engine in turn (engines()). A node that is met gets a link of the engine that EngineChoice chooses. For all else the node chooses
// (first_engine()).
//
// Threads: any, except create() and the destructor, which run in one thread each. Functions here take the lock of one engine after the other
// where they say so (EXCLUDES), and never the locks of two at once.
//
// Invariants: a node has at least one engine, and their number is constant. What engines share outlives them. A node that was shut down stays
// so. If functions had not returned by then, the node keeps itself, with all that they use, until the process ends (abandoned_).
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fork.hpp"
#include "code/cache.hpp"
#include "engine/engine.hpp"
#include "engine/node_functions.hpp"
#include "node/engine_choice.hpp"
#include "services/objects.hpp"

namespace rove {

namespace control {
class Control;
}

class NodeCore final : public std::enable_shared_from_this<NodeCore> {
public:
    // With as many engines, and over the fabric, as the options say.
    [[nodiscard]] static Result<std::shared_ptr<NodeCore>> create(NodeOptions options);
    // With an engine for each of these, whatever the options say. Null: the fabric that the options name.
    using Fabrics = std::vector<std::unique_ptr<fabric::Fabric>>;
    [[nodiscard]] static Result<std::shared_ptr<NodeCore>> create(NodeOptions options, Fabrics fabrics);
    ~NodeCore();
    NodeCore(const NodeCore&) = delete;
    void shut_down() EXCLUDES(lock_of<EngineLock>);

    // ---- its parts; whatever takes a lock is said there
    [[nodiscard]] std::span<const std::unique_ptr<Engine>> engines() const { return engines_; }
    // The node's choice, for what concerns no peer, no call and no running function: the first.
    [[nodiscard]] Engine& first_engine() { return *engines_.front(); }
    [[nodiscard]] NodeIds& ids() { return shared_.ids; }
    // What the functions that every node has work on (built_ins.hpp).
    [[nodiscard]] SharedState& shared() { return shared_; }
    [[nodiscard]] NodeFunctions& functions() { return functions_; }
    [[nodiscard]] Objects& objects() { return objects_; }

    // ---- what it is
    [[nodiscard]] const NodeOptions& options() const { return options_; }
    [[nodiscard]] const std::string& address() const { return address_; }
    [[nodiscard]] NodeId id() const { return shared_.ids.id(); }
    [[nodiscard]] std::uint32_t node_count() const { return shared_.ids.node_count(); }
    [[nodiscard]] std::string name() const;  // "node 2", "this client": for messages

    // ---- for threads of the program
    [[nodiscard]] Result<std::shared_ptr<PeerState>> connect(std::string_view address) EXCLUDES(lock_of<EngineLock>);
    // As Engine::poll and Engine::interrupt, for all engines.
    unsigned poll(std::chrono::milliseconds wait) EXCLUDES(lock_of<EngineLock>);
    void interrupt() noexcept;
    // The peer that functions on this node reach by that id, whichever engine has the link. As Peers::linked.
    [[nodiscard]] Result<std::shared_ptr<PeerState>> linked(NodeId to) EXCLUDES(lock_of<EngineLock>);
    // The engine over whose link functions that run on `here` call that node. `here`, where it is this node, or none has a link.
    [[nodiscard]] Engine& engine_towards(NodeId to, Engine& here);
    // The engine by which functions that run on `here` answer that call: it has the link towards the caller, or has made the call itself.
    [[nodiscard]] Engine& engine_to_answer(const wire::CallContext& call, Engine& here);
    // As Peers::knows_owner and Peers::reaches.
    [[nodiscard]] bool knows_owner(NodeId owner) const EXCLUDES(lock_of<EngineLock>);
    [[nodiscard]] bool reaches(NodeId node, std::string_view address) const EXCLUDES(lock_of<EngineLock>);
    // Calls point to an engine of their node: it stays until the last of them has been taken or forgotten.
    void outlive_node(const std::shared_ptr<NodeCore>& self) EXCLUDES(lock_of<EngineLock>);

    // ---- whether this node may be used (lifetime.cpp); none of these takes an engine's lock
    // This process is a fork of the one that made the node: its threads and its locks are not here, and its links are the parent's.
    [[nodiscard]] bool is_inherited() const { return process_.is_past(); }
    // False: it was shut down, which ends its engines, or is inherited.
    [[nodiscard]] bool is_usable() const {
        return std::ranges::all_of(engines_, [](const auto& each) { return each->is_usable(); });
    }
    [[nodiscard]] Error why_unusable() const;
    // The node that has an engine at that address; null: it was freed. For callers that may keep the address for longer than the node lives.
    [[nodiscard]] static std::shared_ptr<NodeCore> living(const void* engine);
    // Shuts a node down and frees it. Leaves it alone where it is inherited or functions have not returned.
    struct Delete {
        void operator()(NodeCore* core) const;
    };

private:
    NodeCore(NodeOptions options, std::size_t engines);
    [[nodiscard]] Status start(Fabrics fabrics);
    [[nodiscard]] std::vector<std::unique_ptr<Engine>> make_engines(std::size_t count);
    static void remember(const std::shared_ptr<NodeCore>& core);

    std::atomic<bool> shut_down_{false};
    std::atomic<bool> polls_interrupted_{false};  // of several engines
    const MakingProcess process_;
    NodeOptions options_;
    std::string address_;
    const std::function<std::string()> name_ = [this] { return name(); };
    std::unique_ptr<code::CodeCache> cache_;
    std::unique_ptr<control::Control> control_;
    SharedState shared_;
    Objects objects_{name_};
    const std::vector<std::unique_ptr<Engine>> engines_;
    EngineChoice choice_{engines_};
    NodeFunctions functions_{cache_};
    bool is_abandoned_ = false;            // a function did not end with the node …
    std::shared_ptr<NodeCore> abandoned_;  // … which keeps itself then
};

}  // namespace rove
