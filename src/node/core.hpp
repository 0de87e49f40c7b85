// NodeCore: what implements rove::Node: the engine that works for it, the code that runs on it, the control plane by which it meets others,
// and what all of these share. It gives them to the layers above (C++, C, functions that run here).
//
// Threads: any, but for the beginning and the end of a node. Functions here take the engine's lock where they say so (EXCLUDES).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "code/cache.hpp"
#include "engine/engine.hpp"
#include "engine/node_functions.hpp"
#include "services/objects.hpp"

namespace rove {

namespace control {
class Control;
}

class NodeCore final : public std::enable_shared_from_this<NodeCore> {
public:
    // Over that fabric; null: over the one that the options name.
    [[nodiscard]] static Result<std::shared_ptr<NodeCore>> create(NodeOptions options,
                                                                  std::unique_ptr<fabric::Fabric> fabric = nullptr);
    ~NodeCore();
    NodeCore(const NodeCore&) = delete;
    void shut_down() EXCLUDES(lock_of<EngineLock>);

    // ---- its parts; whatever takes a lock is said there
    // The one that works for it; a running function's is rove_here's.
    [[nodiscard]] Engine& engine() { return engine_; }
    [[nodiscard]] NodeIds& ids() { return shared_.ids; }
    [[nodiscard]] MemoryTable& memory() { return shared_.memory; }
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
    // Calls point to their node: it stays until the last of them has been taken or forgotten.
    void outlive_node(std::shared_ptr<NodeCore> self) EXCLUDES(lock_of<EngineLock>);

    // ---- how far this node may be used (lifetime.cpp); none takes a lock
    // This process is a fork of the one that made the node: its threads and its locks are not here, and its links are the parent's.
    [[nodiscard]] bool is_inherited() const { return engine_.is_inherited(); }
    // False: it was shut down, or is inherited. Two relaxed loads.
    [[nodiscard]] bool is_usable() const { return !engine_.is_stopped() && !is_inherited(); }
    [[nodiscard]] Error why_unusable() const;
    // The node whose engine is at that address; null: it was freed. For callers that may keep the address for longer than the node lives.
    [[nodiscard]] static std::shared_ptr<NodeCore> living(const void* engine);
    // Frees a node, or leaves it alone where it is inherited.
    struct Delete {
        void operator()(NodeCore* core) const;
    };

private:
    explicit NodeCore(NodeOptions options);
    [[nodiscard]] Status start(std::unique_ptr<fabric::Fabric> fabric);
    static void remember(const std::shared_ptr<NodeCore>& core);

    std::atomic<bool> shut_down_{false};
    NodeOptions options_;
    std::string address_;
    const std::function<std::string()> name_ = [this] { return name(); };
    std::unique_ptr<code::CodeCache> cache_;
    std::unique_ptr<control::Control> control_;
    SharedState shared_;
    Objects objects_{name_};
    Engine engine_;
    NodeFunctions functions_;
    // Itself, where a function did not end with the node.
    std::shared_ptr<NodeCore> abandoned_;
};

}  // namespace rove
