// NodeCore: what stands behind rove::Node. It joins the layers: frames come in from the fabric, functions from the code
// cache run on them, replies go out.
//
// Threads. One lock guards all of a node's state. One thread at a time *leads*: it drains mailboxes and runs functions,
// and lets go of the lock while a function runs and while it sleeps. Whoever waits for a call leads if nobody does; the
// node's own thread, where there is one, gives the lead to such a thread, so that a reply never crosses threads to be
// seen. The control thread (meeting, membership, a peer's death) takes the lock for short steps.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "code/cache.hpp"
#include "node/calls.hpp"
#include "node/peer_state.hpp"
#include "node/sleeper.hpp"

namespace rove {

namespace control {
class Control;
}

// How long a parked call waits for its code before it fails. Code comes from a live process over a link that is watched,
// so this only ends waits for a peer that is stopped.
inline constexpr auto kCodeWaitMax = std::chrono::seconds(5);
// Frames taken from one peer before the next one is looked at: a busy peer does not starve the others.
inline constexpr unsigned kBatchMax = 64;
// Peers at once. Each has 2 MiB of mailboxes.
inline constexpr std::size_t kPeersMax = 1024;

class NodeCore : public std::enable_shared_from_this<NodeCore> {
public:
    [[nodiscard]] static Result<std::shared_ptr<NodeCore>> create(NodeOptions options);
    ~NodeCore();
    NodeCore(const NodeCore&) = delete;

    // ---- the public edge (api.cpp); each takes the lock
    [[nodiscard]] Result<std::shared_ptr<PeerState>> connect(std::string_view address);
    struct Outgoing {
        std::shared_ptr<PackageStore> package;
        std::size_t entry = 0;
        Bytes payload;
        bool wants_reply = true;
    };
    [[nodiscard]] Result<CallTable::Id> call(const std::shared_ptr<PeerState>& peer, const Outgoing& outgoing);
    [[nodiscard]] Result<CallTable::Id> load(const std::shared_ptr<PeerState>& peer,
                                             const std::shared_ptr<PackageStore>& package);
    [[nodiscard]] bool wait(CallTable::Id id, std::optional<TimePoint> deadline);  // true: ended
    [[nodiscard]] bool test(CallTable::Id id);
    [[nodiscard]] Result<CallEnd> take(CallTable::Id id);  // frees the slot; precondition: ended
    void forget(CallTable::Id id);
    unsigned poll(std::chrono::milliseconds wait);
    void wake() noexcept;
    void shut_down();
    [[nodiscard]] Peer::Counters counters(PeerState& peer);

    [[nodiscard]] const NodeOptions& options() const { return options_; }
    [[nodiscard]] const std::string& address() const { return address_; }
    [[nodiscard]] NodeId id() const { return id_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint32_t node_count() const { return node_count_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::string name() const;  // "node 2", "client": for messages

    // ---- for running functions (here.cpp); each takes the lock
    [[nodiscard]] Status reply(const wire::FrameHeader& to, code::Ran ran, Bytes data);
    [[nodiscard]] Status reply_error(const wire::FrameHeader& to, const Error& error);
    struct Onward {
        NodeId node;
        FunctionId function;
        Bytes payload;
        wire::FrameHeader header;  // origin, call, generation, hops, flags of the frame to send
    };
    [[nodiscard]] Status send_on(const Onward& onward);
    [[nodiscard]] std::optional<std::uint64_t> find_function(std::string_view name);  // a rove_function
    [[nodiscard]] std::optional<FunctionId> function_of(std::uint64_t handle);

    // ---- for the control thread; each takes the lock
    [[nodiscard]] Result<std::unique_ptr<fabric::Link>> open_link();
    [[nodiscard]] Status connect_link(fabric::Link& link, Bytes offer);
    void drop_link(std::unique_ptr<fabric::Link> link);
    struct Meeting {
        NodeId id, my_id;
        bool member;
        std::string address, triple;
        std::uint32_t node_count;
        std::vector<Digest> resident;
        std::function<void()> hang_up;
    };
    // Makes a peer of a link that is connected, or brings an old one back to life.
    [[nodiscard]] Result<std::shared_ptr<PeerState>> adopt(Meeting meeting, std::unique_ptr<fabric::Link> link,
                                                           std::shared_ptr<PeerState> old);
    void lose(const std::shared_ptr<PeerState>& peer, const Error& why);
    void set_identity(NodeId id, std::uint32_t node_count);
    void set_node_count(std::uint32_t node_count);
    [[nodiscard]] std::vector<Digest> resident_digests();

private:
    explicit NodeCore(NodeOptions options);
    [[nodiscard]] Status start();
    [[nodiscard]] Status preload();

    // The node's lock, taken in a way that the leader, who holds it while it spins, notices.
    class Hold {
    public:
        explicit Hold(NodeCore& core) : lock_(core.mutex_, std::defer_lock) {
            core.wanting_.fetch_add(1, std::memory_order_relaxed);
            lock_.lock();
            core.wanting_.fetch_sub(1, std::memory_order_relaxed);
        }
        [[nodiscard]] std::unique_lock<std::mutex>& lock() { return lock_; }

    private:
        std::unique_lock<std::mutex> lock_;
    };
    using Lock = std::unique_lock<std::mutex>;

    // ---- leading (lead.cpp)
    unsigned lead_step(Lock& lock, std::optional<TimePoint> deadline);
    unsigned work(Lock& lock);
    void idle(Lock& lock, std::optional<TimePoint> deadline);
    void sleep(Lock& lock, std::optional<TimePoint> deadline);
    void serve_own_thread();
    void make_way(Lock& lock);
    bool lead_until(Lock& lock, std::optional<TimePoint> deadline, const std::function<bool()>& done);
    unsigned housekeep(Lock& lock);
    void call_ended();

    // ---- arrivals (dispatch.cpp)
    unsigned serve(PeerState& peer, Lock& lock);
    unsigned serve_local(Lock& lock);
    [[nodiscard]] bool on_call(PeerState* from, const wire::Frame& frame, Lock& lock);  // false: it stays, parked
    unsigned serve_calls(PeerState& peer, Lock& lock);
    void run_parked(Lock& lock);
    void on_reply_traffic(PeerState& from, const wire::Frame& frame, Lock& lock);
    void on_reply(const PeerState* from, const wire::Frame& frame);
    void on_bind(PeerState& from, const wire::Frame& frame);
    void on_load(const wire::Frame& frame);
    void run(const code::Entered& entered, code::Function& function, const wire::Frame& frame, Lock& lock);
    [[nodiscard]] bool park(PeerState* from, const wire::Frame& frame, const code::Function* function, bool ask);
    [[nodiscard]] std::optional<Error> checked(PeerState& from, const wire::Frame& frame) const;

    // ---- code (code_traffic.cpp)
    void on_code(PeerState& from, const wire::Frame& frame);
    void on_need(PeerState& from, const wire::Frame& frame);
    void on_lack(PeerState& from, const wire::Frame& frame);
    void ask_for_code(PeerState* from, const Parked& parked, NodeId origin);
    struct CodeTarget {
        NodeId node;     // who gets it
        PeerState& via;  // the link it goes over
        std::string_view triple;
    };
    // Sends the manifest and every form that this process has for the target, `first` form first; which ones were sent?
    [[nodiscard]] Result<bool> send_code(const CodeTarget& to, PackageStore& package, wire::Form form,
                                         bool with_manifest);
    [[nodiscard]] Status send_part(const CodeTarget& to, const Digest& package, std::uint32_t part, Bytes bytes);
    [[nodiscard]] Status part_arrived(PeerState& from, const Digest& package, std::uint32_t part, Bytes bytes);
    [[nodiscard]] bool may_send(wire::Form form) const;
    void give_up(const wire::NeedCode& need, std::string_view why);
    void give_up_parked(const Digest& package, const Error& why);
    [[nodiscard]] std::shared_ptr<PackageStore> package_with(const FunctionId& function) const;

    // ---- sending (sending.cpp)
    [[nodiscard]] Status send(PeerState& peer, fabric::Traffic traffic, wire::FrameHeader header, Bytes extra,
                              Bytes payload);
    // For what must not be lost as long as the peer lives: cuts off a peer that does not take it.
    void send_or_cut(PeerState& peer, wire::FrameHeader header, Bytes extra, Bytes payload);
    void flush(PeerState& peer);
    static void remember_forwarded(PeerState& peer, const wire::FrameHeader& header);
    [[nodiscard]] Status send_to_self(const Onward& onward);
    [[nodiscard]] Status offer(PeerState& peer, const std::shared_ptr<PackageStore>& package);
    [[nodiscard]] Peer::Counters counters_of(const PeerState& peer) const;
    [[nodiscard]] PeerState* route(NodeId node) const;
    void route_frame(const wire::Frame& frame);
    [[nodiscard]] Status send_call(PeerState& peer, const FunctionId& function,
                                   const std::shared_ptr<PackageStore>& package, wire::FrameHeader header,
                                   Bytes payload);
    [[nodiscard]] Status end_with_reply(const wire::FrameHeader& call, code::Ran ran, Bytes data);
    [[nodiscard]] Status end_with_error(const wire::FrameHeader& call, const Error& error);
    void end_call(wire::FrameHeader reply, Bytes payload);
    [[nodiscard]] Status make_alive(const std::shared_ptr<PeerState>& peer, Lock& lock);
    [[nodiscard]] Status wait_for_room(PeerState& peer, Lock& lock);
    void clean_up(PeerState& peer);
    void fail_forwarded(PeerState& peer);
    void wake_leader();

    NodeOptions options_;
    std::string address_;
    std::atomic<NodeId> id_{0};
    std::atomic<std::uint32_t> node_count_{1};

    std::mutex mutex_;
    std::atomic<int> wanting_{0};  // threads that want the lock: the leader lets go when it is not 0
    bool leading_ = false;
    bool asleep_ = false;
    bool stopping_ = false;
    int lead_wanted_ = 0;              // threads that wait for a call and would lead
    std::condition_variable changed_;  // the lead became free, or a call ended
    unsigned idle_steps_ = 0;
    TimePoint idle_since_{};
    TimePoint housekeeping_due_{};
    std::atomic<bool> woken_{false};  // by wake(): a poll that waits returns

    Sleeper sleeper_;
    std::unique_ptr<code::CodeCache> cache_;
    std::unique_ptr<fabric::Fabric> fabric_;
    CallTable calls_;
    std::vector<std::shared_ptr<PeerState>> peers_;  // only the leader takes any away
    std::vector<PeerState*> members_;                // by dense id; null: gone, or myself
    std::unordered_map<NodeId, PeerState*> clients_;
    std::unordered_map<FunctionId, std::shared_ptr<PackageStore>> offered_;  // functions of this program's own packages
    std::deque<Buffer> local_;                                               // frames this node sends to itself
    std::size_t local_bytes_ = 0;
    std::optional<Parked> local_parked_;

    std::unique_ptr<control::Control> control_;
    std::thread thread_;
};

}  // namespace rove
