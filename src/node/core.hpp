// NodeCore: what implements rove::Node. It joins the layers: frames come in from the fabric, functions from the code
// cache run on them, replies go out.
//
// Threads. One lock, the lead's, guards all of a node's state. One thread at a time leads (lead.hpp): it drains mailboxes and runs functions
// in place, without the lock. Where a function runs long, another thread leads; its frame is held in the mailbox until it ends. Long functions
// beyond NodeOptions::threads wait in their mailboxes.
// The control thread (meeting, membership, a peer's death) takes the lock for short steps.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.hpp"
#include "base/fork.hpp"
#include "code/cache.hpp"
#include "node/absent_members.hpp"
#include "node/calls.hpp"
#include "node/code_exchange.hpp"
#include "node/complaints.hpp"
#include "node/large_turns.hpp"
#include "node/lead.hpp"
#include "node/memory.hpp"
#include "node/objects.hpp"
#include "node/own_functions.hpp"
#include "node/own_threads.hpp"
#include "node/peer_state.hpp"
#include "node/pieces.hpp"
#include "node/routes.hpp"
#include "node/run.hpp"
#include "node/sender.hpp"
#include "node/untaken_memory.hpp"
#include "wire/control.hpp"

namespace rove {

namespace control {
class Control;
}

// Frames taken from one peer before the next one is looked at: a busy peer does not starve the others.
inline constexpr unsigned kBatchMax = 64;
// Functions on one thread that wait for calls, one within the other: bounds the stack, and ends circles. At 1 KiB of Rove's own
// frames each, 128 KiB of a thread's 8 MiB.
inline constexpr unsigned kNestedMax = 128;
// And no function is run on top of another with less than this left of the thread's stack: a function may count on as much, whichever
// others wait beneath it. It is a sixteenth of the 8 MiB that threads have unless their program says otherwise.
inline constexpr std::size_t kStackReserveBytes = 512UL * 1024;
// Peers at once. Each has 2 MiB of mailboxes.
inline constexpr std::size_t kPeersMax = wire::control::kMembersMax;

class NodeCore final : public std::enable_shared_from_this<NodeCore>, private Lead::Duties {
public:
    [[nodiscard]] static Result<std::shared_ptr<NodeCore>> create(NodeOptions options,
                                                                  std::unique_ptr<fabric::Fabric> fabric = nullptr);
    ~NodeCore();
    NodeCore(const NodeCore&) = delete;

    // ---- the public edge; functions take the lock, getters do not
    [[nodiscard]] Result<std::shared_ptr<PeerState>> connect(std::string_view address) EXCLUDES(lock_of<NodeLock>);
    // Whom a call is for. Pointers, so that making one costs nothing; what they point to outlives the send.
    struct Callee {
        const FunctionId* id;                                    // by which the peer's handle is found
        const std::shared_ptr<PackageStore>* package = nullptr;  // null, or null in it: nothing to ship
        std::string_view name{};                                 // for messages
        // Of a function of this program: its id as a shipped one (null: it does not travel), and its schema.
        bool own = false;
        const FunctionId* shipped = nullptr;
        std::uint32_t schema = 0;
    };
    struct Outgoing {
        Callee callee;
        Pieces payload;
        bool wants_reply = true;
        Sending sending = Sending::cached;
        // For all of it: until then it may wait for a link and for room (after that nothing was sent), and for its answer.
        Deadline deadline{};
    };
    [[nodiscard]] Result<CallTable::Id> call(const std::shared_ptr<PeerState>& peer, const Outgoing& outgoing)
        EXCLUDES(lock_of<NodeLock>);
    struct Begun {                   // a frame that the caller fills in place
        std::shared_ptr<void> link;  // whose mailbox has the place; null: there is none now, so use call()
        std::span<std::byte> place;
        std::uint32_t handle = 0;
    };
    [[nodiscard]] Result<Begun> begin(const std::shared_ptr<PeerState>& peer, const Outgoing& outgoing,
                                      std::size_t payload_bytes) EXCLUDES(lock_of<NodeLock>);
    [[nodiscard]] Result<CallTable::Id> post_begun(PeerState& peer, Begun begun, bool wants_reply, Deadline deadline)
        EXCLUDES(lock_of<NodeLock>);
    void drop_begun(PeerState& peer, std::shared_ptr<void> link) EXCLUDES(lock_of<NodeLock>);
    // Several posts of one function; payloads lie wire::batch_stride(payload_bytes) apart.
    [[nodiscard]] Status post_batch(const std::shared_ptr<PeerState>& peer, const Outgoing& outgoing,
                                    std::size_t payload_bytes) EXCLUDES(lock_of<NodeLock>);
    [[nodiscard]] Result<CallTable::Id> ping(const std::shared_ptr<PeerState>& peer, Bytes payload, bool wants_reply,
                                             Deadline deadline) EXCLUDES(lock_of<NodeLock>);
    [[nodiscard]] Result<CallTable::Id> load(const std::shared_ptr<PeerState>& peer,
                                             const std::shared_ptr<PackageStore>& package, Deadline deadline)
        EXCLUDES(lock_of<NodeLock>);
    // True: ended.
    [[nodiscard]] bool wait(CallTable::Id id, std::optional<TimePoint> deadline) EXCLUDES(lock_of<NodeLock>);
    [[nodiscard]] bool test(CallTable::Id id) EXCLUDES(lock_of<NodeLock>);
    [[nodiscard]] Result<CallEnd> finish(CallTable::Id id) EXCLUDES(lock_of<NodeLock>);  // waits, and frees the slot
    // The same into the caller's memory; gives the result's size. invalid: it is larger than `into`.
    [[nodiscard]] Result<std::size_t> finish_into(CallTable::Id id, std::span<std::byte> into)
        EXCLUDES(lock_of<NodeLock>);
    void forget(CallTable::Id id) EXCLUDES(lock_of<NodeLock>);
    // Its result names some, to be freed where nobody takes it.
    void expect_memory(CallTable::Id id) EXCLUDES(lock_of<NodeLock>);
    // Ends a call from this side: what comes for it later is discarded.
    void cancel(CallTable::Id id) EXCLUDES(lock_of<NodeLock>);
    void limit(CallTable::Id id, TimePoint deadline) EXCLUDES(lock_of<NodeLock>);
    // Has `notify(argument)` called when the call has ended, by the thread that leads. False: it has ended already.
    // Null takes back what was asked for. False: it has been called, is being called, or was never asked for.
    [[nodiscard]] bool notify(CallTable::Id id, void (*notify)(void*), void* argument) EXCLUDES(lock_of<NodeLock>);
    // The result in place, until the call is forgotten: waits for it.
    [[nodiscard]] Result<Bytes> result(CallTable::Id id) EXCLUDES(lock_of<NodeLock>);
    // The same; but nothing, where it came in parts while this waited and all of them were given to the sink.
    [[nodiscard]] Result<std::optional<Bytes>> result_into(CallTable::Id id, const ResultSink& sink)
        EXCLUDES(lock_of<NodeLock>);
    [[nodiscard]] std::optional<std::size_t> wait_any(std::span<const CallTable::Id> ids,
                                                      std::optional<TimePoint> deadline) EXCLUDES(lock_of<NodeLock>);
    // Leads, or waits, until done() gives true; that is asked whenever something has happened.
    void drive(const std::function<bool()>& done, std::optional<TimePoint> deadline) EXCLUDES(lock_of<NodeLock>);
    // Calls point to their node: it stays until the last of them has been taken or forgotten.
    void outlive_node(std::shared_ptr<NodeCore> self) EXCLUDES(lock_of<NodeLock>);
    unsigned poll(std::chrono::milliseconds wait) EXCLUDES(lock_of<NodeLock>);
    void wake() noexcept;
    void shut_down() EXCLUDES(lock_of<NodeLock>);
    [[nodiscard]] Peer::Counters counters(PeerState& peer) EXCLUDES(lock_of<NodeLock>);
    // Whether whoever is called that here is still linked.
    [[nodiscard]] bool knows_owner(NodeId owner) EXCLUDES(lock_of<NodeLock>);
    // Whom frames for it are sent to; null: nobody.
    [[nodiscard]] std::shared_ptr<PeerState> peer_of(NodeId node) EXCLUDES(lock_of<NodeLock>);
    // For members without a link: bytes of results, and errors.
    [[nodiscard]] std::size_t replies_kept() EXCLUDES(lock_of<NodeLock>);
    // With a link, or that somebody has a handle of.
    [[nodiscard]] std::size_t peers_known() EXCLUDES(lock_of<NodeLock>);
    // Copies: a reconnect changes what a peer is.
    [[nodiscard]] NodeDescription describe(const PeerState& peer) EXCLUDES(lock_of<NodeLock>);

    [[nodiscard]] const NodeOptions& options() const { return options_; }
    [[nodiscard]] const std::string& address() const { return address_; }
    [[nodiscard]] NodeId id() const { return routes_.id(); }
    [[nodiscard]] std::uint32_t node_count() const { return routes_.node_count(); }
    [[nodiscard]] std::string name() const;  // "node 2", "client": for messages

    // ---- how far this node may be used (lifetime.cpp); none takes the lock
    // This process is a fork of the one that made the node: its threads and its locks are not here, and its links are the parent's.
    [[nodiscard]] bool is_inherited() const { return generation_ != process_generation(); }
    // After code that is not the node's: it has forked, and this is the child. It returns in the parent alone.
    void stay_in_parent(const std::string& what) const {
        if (is_inherited()) end_child_of(what.c_str());
    }
    [[noreturn]] void keep_thread(rove_here* here) EXCLUDES(lock_of<NodeLock>);  // null: of a callback
    [[noreturn]] static void exit_thread(void* result);  // in place of pthread_exit() for shipped code
    [[nodiscard]] static bool is_in_function();          // this thread is, and in no callback on top of it
    // False: it was shut down, or is inherited. Two relaxed loads.
    [[nodiscard]] bool is_usable() const { return !stopped_.load(std::memory_order_relaxed) && !is_inherited(); }
    [[nodiscard]] Error why_unusable() const;
    // The node at that address; null: it was freed. For callers that may keep the address for longer than the node lives.
    [[nodiscard]] static std::shared_ptr<NodeCore> living(const void* node);
    // Frees a node, or leaves it alone where it is inherited.
    struct Delete {
        void operator()(NodeCore* core) const;
    };
    // A post that never waits and never meets anybody: where the meeting that it belongs to is over, so is what it was about.
    void post_in_meeting(PeerState& peer, std::uint64_t meeting, const Callee& callee, Bytes payload)
        EXCLUDES(lock_of<NodeLock>);

    // ---- for running functions; as above
    [[nodiscard]] Status reply(const wire::FrameHeader& to, RanAs ran, const Pieces& data) EXCLUDES(lock_of<NodeLock>);
    void reply_error(const wire::FrameHeader& to, const Error& error) EXCLUDES(lock_of<NodeLock>);
    struct Onward {
        NodeId node;
        FunctionId function;
        Bytes payload;
        wire::FrameHeader header;  // origin, call, generation, hops, flags of the frame to send
    };
    [[nodiscard]] Status send_on(const Onward& onward) EXCLUDES(lock_of<NodeLock>);
    // A rove_function.
    [[nodiscard]] std::optional<std::uint64_t> find_function(std::string_view name) EXCLUDES(lock_of<NodeLock>);
    [[nodiscard]] std::optional<FunctionId> function_of(std::uint64_t handle) EXCLUDES(lock_of<NodeLock>);

    // The peer that functions on this node reach by that id. invalid: there is no link.
    [[nodiscard]] Result<std::shared_ptr<PeerState>> linked(NodeId to) EXCLUDES(lock_of<NodeLock>);
    // A function of this program, or of a package that is loaded here, by its code: on another node, on this one, or on the
    // client that the caller is.
    [[nodiscard]] Result<CallTable::Id> call_from_here(NodeId to, code::EntryPoint function, const Pieces& payload,
                                                       bool wants_reply, Deadline deadline) EXCLUDES(lock_of<NodeLock>);
    void hand_over_here() EXCLUDES(lock_of<NodeLock>);
    // While the sum is not 0, this thread takes replies only where it waits.
    static void forbid_nesting(int change) { no_nesting_ += static_cast<unsigned>(change); }
    [[nodiscard]] std::optional<code::Entered> hold_code(const code::Function& function);
    [[nodiscard]] MemoryTable& memory() { return memory_; }
    [[nodiscard]] Objects& objects() { return objects_; }
    // Whether the member of that id is reached at that address.
    [[nodiscard]] bool reaches(NodeId node, std::string_view address) EXCLUDES(lock_of<NodeLock>);

    // ---- for the control thread; as above
    [[nodiscard]] Result<std::unique_ptr<fabric::Link>> open_link() EXCLUDES(lock_of<NodeLock>);
    [[nodiscard]] bool has_streams() const { return fabric_->has_streams(); }
    [[nodiscard]] Result<std::unique_ptr<fabric::Link>> open_stream(int socket, const fabric::StreamKeys& keys)
        EXCLUDES(lock_of<NodeLock>);
    [[nodiscard]] Status connect_link(fabric::Link& link, Bytes offer) EXCLUDES(lock_of<NodeLock>);
    void drop_link(std::unique_ptr<fabric::Link> link) EXCLUDES(lock_of<NodeLock>);
    struct Meeting {
        NodeId id, my_id;
        bool member;
        AbsentMembers::Process process{};  // of a member
        std::string address, triple;
        std::uint32_t node_count;
        std::vector<Digest> resident;
        bool has_residents = false;
        bool replace = false;        // a link that the peer still has is no good: the other end says so
        std::uint32_t features = 0;  // that both ends have
        std::function<void(const Error&)> hang_up;
    };
    struct Adopted {
        std::shared_ptr<PeerState> peer;
        std::uint64_t meeting = 0;  // its number, for lose()
        bool taken = false;         // false: the peer has a good link already, and this one was dropped
    };
    // Makes a peer of a link that is connected, or brings an old one back to life.
    [[nodiscard]] Result<Adopted> adopt(Meeting meeting, std::unique_ptr<fabric::Link> link,
                                        std::shared_ptr<PeerState> old) EXCLUDES(lock_of<NodeLock>);
    void warn_of_deadlocks() EXCLUDES(lock_of<NodeLock>);  // to be called every second or so
    // The connection of that meeting has ended. Nothing happens where the peer was met again since. Needs no memory.
    void lose(const std::shared_ptr<PeerState>& peer, std::uint64_t meeting, Error why) EXCLUDES(lock_of<NodeLock>);
    // Of a member without a link: it is being met again, or its process has gone.
    void member_expected(NodeId member, const AbsentMembers::Process& process, const std::string& why)
        EXCLUDES(lock_of<NodeLock>);
    void member_gone(NodeId member, const std::string& why) EXCLUDES(lock_of<NodeLock>);
    // There is a link, and nothing is known against it.
    [[nodiscard]] bool linked(const PeerState& peer) EXCLUDES(lock_of<NodeLock>);
    void set_identity(NodeId id, std::uint32_t node_count) { routes_.set_identity(id, node_count); }
    void set_node_count(std::uint32_t node_count) { routes_.set_node_count(node_count); }
    [[nodiscard]] std::vector<Digest> resident_digests();

    // The node's lock.
    class SCOPED_CAPABILITY Hold {
    public:
        explicit Hold(NodeCore& core) ACQUIRE(lock_of<NodeLock>) : hold_(core.lead_.mutex()) {}
        ~Hold() RELEASE() {}
        [[nodiscard]] HeldLock& lock() { return hold_.lock(); }

    private:
        rove::Hold hold_;
    };

private:
    friend class Gathering;
    friend struct CoreView;  // tests/node/core_view.hpp
    NodeCore(NodeOptions options, std::unique_ptr<fabric::Fabric> fabric);
    [[nodiscard]] Status start();
    [[nodiscard]] Status preload();

    using Lock = HeldLock;

    struct Manner {               // how a thread waits
        bool quiet = false;       // it takes replies and parts, and runs no function on top of the one that it is in
        bool holds_back = false;  // as quiet, but it leads where others could: only for a short time
        LargeTurns::Turn* turn = nullptr;  // that it keeps meanwhile: others pass it while a function runs on top
    };
    // What became of a call's frame.
    enum class Taken : std::uint8_t {
        parked,  // nothing: it stays at the head of its mailbox, and is looked at again
        done,    // whoever took it from the mailbox gives it back, now
        held,    // its function runs on in another thread's time, which gives it back when that ends; the lead was lost
    };

    // What this thread has begun without the lock, and as whose leader: where it waits for a call there, it steps aside.
    struct InUserCode {
        NodeCore* core = nullptr;
        std::uint64_t term = 0;
        Run* run = nullptr;
    };
    // Initial-exec: a plain load beside the thread pointer, also from librove.so; constinit: without a look whether it was made.
    static constinit thread_local InUserCode in_user_code_ [[gnu::tls_model("initial-exec")]];
    // Of this thread: waits within functions, and scopes in which it waits quietly.
    static constinit thread_local unsigned nested_ [[gnu::tls_model("initial-exec")]],
        no_nesting_ [[gnu::tls_model("initial-exec")]];

    // ---- what the leader does (turn.cpp): Lead::Duties
    unsigned work(Lead::Turn& turn) override REQUIRES(lock_of<NodeLock>);
    void watch(Lead::Turn& turn) noexcept override REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] bool waits_for_room() const override REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Lead::Rest rest(const Lead::Turn& turn) override REQUIRES(lock_of<NodeLock>);
    void woke_up() override REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] bool runs_function() const override REQUIRES(lock_of<NodeLock>);
    void take_function_away() noexcept override REQUIRES(lock_of<NodeLock>);
    void follower_came() override REQUIRES(lock_of<NodeLock>);
    unsigned tend(Lead::Turn& turn, unsigned handled) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] bool progress_is_due(unsigned handled) REQUIRES(lock_of<NodeLock>);
    unsigned serve_all(Lead::Turn& turn) REQUIRES(lock_of<NodeLock>);

    // ---- functions while they run (runs.cpp)
    // This thread is in the function that the leader runs.
    [[nodiscard]] bool runs_as_leader() const REQUIRES(lock_of<NodeLock>) {
        return in_user_code_.core == this && !lead_.lost(in_user_code_.term) && running_ != nullptr;
    }
    [[nodiscard]] static bool is_deep();
    // Of `options_.threads`, for functions that run long.
    [[nodiscard]] unsigned places_taken() const REQUIRES(lock_of<NodeLock>);
    void set_aside(Run& run) noexcept REQUIRES(lock_of<NodeLock>);
    void begin_run(Run& run) REQUIRES(lock_of<NodeLock>);
    void end_run(Run& run) REQUIRES(lock_of<NodeLock>);
    template <typename Code>
    static void call_out(const Run& run, const Code& code);
    void hand_over_at_once(Run& run) noexcept REQUIRES(lock_of<NodeLock>);
    void end_handed_over(Run& run) REQUIRES(lock_of<NodeLock>);
    void take_place(Run& run) REQUIRES(lock_of<NodeLock>);
    void give_place(Run& run) REQUIRES(lock_of<NodeLock>);
    template <typename Done>
    bool lead_until(Lock& lock, Deadline deadline, const Done& done, Manner manner) REQUIRES(lock_of<NodeLock>);
    template <typename Done>
    bool lead_until(Lock& lock, Deadline deadline, const Done& done) REQUIRES(lock_of<NodeLock>) {
        return lead_until(lock, deadline, done, {});
    }
    void go_beneath(const Lead::Turn& turn) REQUIRES(lock_of<NodeLock>);
    static void come_up(const Lead::Turn& turn);
    unsigned housekeep(Lead::Turn& turn) REQUIRES(lock_of<NodeLock>);
    void call_ended(CallSlot& slot) REQUIRES(lock_of<NodeLock>) {
        if (slot.notify != nullptr) ready_.push_back(slot.id());
        lead_.tell_waiting();
    }
    unsigned tell_of_ends(Lead::Turn& turn) REQUIRES(lock_of<NodeLock>);
    void tell_of_last_ends(Lock& lock, const OwnThreads::One& self) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] bool is_beneath_here(const Run& run) const REQUIRES(lock_of<NodeLock>);
    unsigned end_late_calls() REQUIRES(lock_of<NodeLock>);
    bool step_aside() REQUIRES(lock_of<NodeLock>);
    void look_once(Lock& lock) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] bool has_ended(CallTable::Id id) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] std::optional<std::size_t> finish_at_once(Lock& lock, CallTable::Id id, std::span<std::byte> into)
        REQUIRES(lock_of<NodeLock>);
    struct Afterwards {                  // what is left to be done without the lock when a slot is free
        std::shared_ptr<NodeCore> last;  // this node itself, where that was the last call that it had stayed for
        TrimAtEnd memory;
        [[gnu::always_inline]] ~Afterwards() {}  // each call has one
    };
    void free_slot(CallTable::Id id, Afterwards& afterwards) REQUIRES(lock_of<NodeLock>);
    void leave_memory(CallSlot& slot) noexcept REQUIRES(lock_of<NodeLock>);
    void on_late_reply(PeerState* from, const wire::Frame& frame) REQUIRES(lock_of<NodeLock>);
    void free_memory(PeerState& peer, Bytes place) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] std::shared_ptr<NodeCore> last_use() REQUIRES(lock_of<NodeLock>);
    static void remember(const std::shared_ptr<NodeCore>& core);
    [[nodiscard]] bool wait_for(Lock& lock, CallTable::Id id, std::optional<TimePoint> deadline)
        REQUIRES(lock_of<NodeLock>);
    void wait_into(Lock& lock, CallTable::Id id, const ResultSink& sink) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Result<CallSlot*> ended_slot(CallTable::Id id) REQUIRES(lock_of<NodeLock>);

    // ---- arrivals (checked.cpp, dispatch.cpp)
    unsigned serve(PeerState& peer, Lead::Turn& turn) REQUIRES(lock_of<NodeLock>);
    unsigned serve_local(Lead::Turn& turn) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Taken on_call(PeerState* from, const wire::Frame& frame, Lead::Turn& turn)
        REQUIRES(lock_of<NodeLock>);
    std::optional<Taken> run_leading(code::Function& function, PeerState* from, const wire::Frame& frame,
                                     Lead::Turn& turn) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Taken on_rare_call(PeerState* from, const wire::Frame& frame, Lead::Turn& turn)
        REQUIRES(lock_of<NodeLock>);
    void bind(PeerState& peer, const FunctionId& named, const code::Function& function) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Result<code::Function*> unpack_inline(PeerState& from, const wire::Frame& frame)
        REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] bool leave_to_follower(const code::Function& function, Lead::Turn& turn) REQUIRES(lock_of<NodeLock>);
    unsigned serve_calls(PeerState& peer, Lead::Turn& turn) REQUIRES(lock_of<NodeLock>);
    void leave_to_others(Lead::Turn& turn) REQUIRES(lock_of<NodeLock>);
    void run_parked(Lead::Turn& turn) REQUIRES(lock_of<NodeLock>);
    void on_reply_traffic(PeerState& from, const wire::Frame& frame) REQUIRES(lock_of<NodeLock>);
    void on_reply(PeerState* from, const wire::Frame& frame) REQUIRES(lock_of<NodeLock>);
    void on_load(const PeerState& from, const wire::Frame& frame) REQUIRES(lock_of<NodeLock>);
    Taken run(Run& run, const wire::Frame& frame, Lead::Turn& turn) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] bool run_one(Run& run, const wire::FrameHeader& call, Bytes payload, bool in_mailbox);
    void run_here(Run& run, rove_here& here, Bytes payload) noexcept EXCLUDES(lock_of<NodeLock>);
    [[nodiscard]] bool is_plain_call(const PeerState& from, const wire::Frame& frame) const REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] bool take_part(PeerState& from, const wire::Frame& frame) REQUIRES(lock_of<NodeLock>);
    void forget_parts(PeerState& from, std::uint64_t number) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] unsigned cut_off_slow_senders(TimePoint now) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Result<code::Function*> either_function(const wire::Either& either) REQUIRES(lock_of<NodeLock>);
    Taken refuse(PeerState* from, const wire::Frame& frame, const Error& why) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] bool must_wait_for_thread(const code::Function& function, const PeerState* from) const
        REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] bool waits_where_places_are_rare(const code::Function& function) const REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] code::Function* own_shipped(const FunctionId& function) REQUIRES(lock_of<NodeLock>);
    void on_reply_part(PeerState& from, const wire::Frame& frame) REQUIRES(lock_of<NodeLock>);
    Taken park(PeerState* from, const wire::Frame& frame, const code::Function* function, bool ask)
        REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] std::optional<Error> checked(const PeerState& from, const wire::Frame& frame,
                                               fabric::Traffic among) const REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] bool takes_code(const PeerState& from) const;
    [[nodiscard]] static bool may_answer(const PeerState& from, const CallSlot& slot);

    // ---- sending (sending.cpp)
    [[nodiscard]] Status send_to_self(const Onward& onward) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Peer::Counters counters_of(const PeerState& peer) const REQUIRES(lock_of<NodeLock>);
    void bury(std::shared_ptr<fabric::Link> link) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Status send_call(PeerState& peer, const Callee& callee, wire::FrameHeader header, Bytes payload)
        REQUIRES(lock_of<NodeLock>);
    struct LargeSend;
    [[nodiscard]] Result<CallTable::Id> call_in_parts(const std::shared_ptr<PeerState>& peer, Lock& lock,
                                                      const Outgoing& outgoing) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Status begin_large(PeerState& peer, Lock& lock, LargeSend& sent) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Status send_in_parts(PeerState& peer, Lock& lock, LargeSend& sent) REQUIRES(lock_of<NodeLock>);
    // Waits with wait(deadline, manner) until that says that it is done.
    template <typename Wait>
    [[nodiscard]] Status wait_in_large(Lock& lock, LargeSend& sent, const Wait& wait) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Status keep_apart(Lock& lock, LargeSend& sent) REQUIRES(lock_of<NodeLock>);
    void take_back_parts(PeerState& peer, const LargeSend& sent) REQUIRES(lock_of<NodeLock>);
    // False: the caller's node does not take them.
    [[nodiscard]] bool reply_in_parts(const wire::FrameHeader& call, const Pieces& data, Lock& lock)
        REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] bool await_room_to_reply(NodeId to, std::size_t bytes, std::size_t waiting, Lock& lock)
        REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] wire::FrameHeader answer_to(const wire::FrameHeader& call) const REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Status end_with_reply(const wire::FrameHeader& call, RanAs ran, const Pieces& data, Lock* lock)
        REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] bool reply_at_once(const wire::FrameHeader& call, RanAs ran, Bytes data) REQUIRES(lock_of<NodeLock>);
    void end_with_error(const wire::FrameHeader& call, const Error& error) noexcept REQUIRES(lock_of<NodeLock>);
    void end_without_answer(rove_here& here) noexcept EXCLUDES(lock_of<NodeLock>);
    void tell_of_failed_post(const wire::FrameHeader& call, const Error& error) noexcept REQUIRES(lock_of<NodeLock>);
    void end_call(wire::FrameHeader reply, Bytes payload) noexcept REQUIRES(lock_of<NodeLock>);
    // Of every call that has just been sent: its answer has what is left of the time that it was given.
    CallTable::Id sent_within(CallTable::Id call, bool wants_reply, const Deadline& deadline)
        REQUIRES(lock_of<NodeLock>) {
        if (!wants_reply || !deadline) return call;
        limit_sent(call, *deadline);
        return call;
    }
    void limit_sent(CallTable::Id call, TimePoint deadline) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Result<CallTable::Id> call_any(const std::shared_ptr<PeerState>& peer, const Outgoing& outgoing);
    [[nodiscard]] std::optional<CallTable::Id> send_at_once(PeerState& peer, const Outgoing& outgoing)
        REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Result<CallTable::Id> call_whole(const std::shared_ptr<PeerState>& peer, Lock& lock,
                                                   const Outgoing& outgoing, const wire::Staged* staged)
        REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Result<CallTable::Id> call_inline(PeerState& peer, const Outgoing& outgoing)
        REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Result<const ByteBuffer*> inline_code(PeerState& peer, const FunctionId& function,
                                                        const PackageStore& package) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Status ready_to_send(const std::shared_ptr<PeerState>& peer, Lock& lock, std::size_t payload_bytes,
                                       Deadline deadline) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] static Status no_frame_begun(const PeerState& peer);
    [[nodiscard]] Status make_alive(const std::shared_ptr<PeerState>& peer, Lock& lock, Deadline deadline)
        REQUIRES(lock_of<NodeLock>);
    struct RoomWait;
    [[nodiscard]] Status wait_for_room(PeerState& peer, Lock& lock, fabric::Traffic traffic, std::size_t bytes,
                                       Deadline deadline, Manner manner) REQUIRES(lock_of<NodeLock>);
    unsigned tell_of_room() REQUIRES(lock_of<NodeLock>);
    void let_others(Lock& lock) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] Error stopped() const;
    void enter(PeerState& peer) REQUIRES(lock_of<NodeLock>);
    void lose_now(PeerState& peer, Error why) REQUIRES(lock_of<NodeLock>);
    void clean_up(PeerState& peer) REQUIRES(lock_of<NodeLock>);
    [[nodiscard]] bool leave_routes(PeerState& peer) REQUIRES(lock_of<NodeLock>);
    void end_sent_on(PeerState& peer, bool member, const Error& not_sent) REQUIRES(lock_of<NodeLock>);

    // ---- a link's end (link_end.cpp)
    [[nodiscard]] static bool awaits_goodbye(PeerState& peer);
    [[nodiscard]] Status await_goodbye(PeerState& peer, Lock& lock, Deadline deadline) REQUIRES(lock_of<NodeLock>);
    void notice_end(PeerState& peer) REQUIRES(lock_of<NodeLock>);
    void take_last_replies(PeerState& peer) REQUIRES(lock_of<NodeLock>);
    void keep_replies_of(PeerState& peer) REQUIRES(lock_of<NodeLock>);
    void end_orphans() REQUIRES(lock_of<NodeLock>);

    const std::uint32_t generation_ = process_generation();
    std::atomic<bool> stopped_{false};  // calls cannot begin any more
    // Frames that callers fill: the node stays for them as for calls.
    std::size_t begun_frames_ GUARDED_BY(lock_of<NodeLock>) = 0;
    NodeOptions options_;
    std::string address_;
    Routes routes_;

    bool ending_ GUARDED_BY(lock_of<NodeLock>) = false;     // whatever still waits is told so: it has had its time
    Run* running_ GUARDED_BY(lock_of<NodeLock>) = nullptr;  // the function that the leader runs
    unsigned busy_ GUARDED_BY(lock_of<NodeLock>) = 0;       // functions that have not returned, callbacks included
    // Of these: run beside the leader, and do not wait for a call.
    unsigned long_runs_ GUARDED_BY(lock_of<NodeLock>) = 0;
    LongRuns long_run_list_ GUARDED_BY(lock_of<NodeLock>);
    std::vector<RoomWait*> room_waits_ GUARDED_BY(lock_of<NodeLock>);  // threads that wait for room
    // Frames, and turns, until the clock is looked at again.
    unsigned housekeeping_in_ GUARDED_BY(lock_of<NodeLock>) = 1;
    bool turn_was_cut_short_ GUARDED_BY(lock_of<NodeLock>) = false;  // it lost the lead before tend()
    TimePoint housekeeping_due_ GUARDED_BY(lock_of<NodeLock>){};
    TimePoint progressed_at_ GUARDED_BY(lock_of<NodeLock>){};
    std::size_t served_first_ GUARDED_BY(lock_of<NodeLock>) = 0;  // of `peers_`, by whoever leads next
    // Steps until the fabric is given a turn where no link needs it.
    unsigned progress_in_ GUARDED_BY(lock_of<NodeLock>) = 1;
    std::uint64_t links_version_ GUARDED_BY(lock_of<NodeLock>) = 1;  // changes with the links there are
    std::unique_ptr<code::CodeCache> cache_;
    std::unique_ptr<fabric::Fabric> fabric_;
    Lead lead_{*this};  // after the fabric, which outlives the links that it watches
    OwnThreads own_threads_{lead_, [this] { return name(); }};
    std::shared_ptr<SpareMemory> spare_memory_;            // for payloads and results in parts
    Complaints complaints_ GUARDED_BY(lock_of<NodeLock>);  // of peers
    CallTable calls_ GUARDED_BY(lock_of<NodeLock>);
    // Calls that ended and notify somebody, where nobody has forgotten them meanwhile.
    std::deque<CallId> ready_ GUARDED_BY(lock_of<NodeLock>);
    std::vector<std::shared_ptr<PeerState>> peers_ GUARDED_BY(lock_of<NodeLock>);  // only the leader takes any away
    std::vector<std::shared_ptr<fabric::Link>> buried_
        GUARDED_BY(lock_of<NodeLock>);                    // that ended: a function may still run on a frame of theirs
    DroppedBytes dropped_ GUARDED_BY(lock_of<NodeLock>);  // what waited for peers that have gone
    AbsentMembers absent_ GUARDED_BY(lock_of<NodeLock>);  // members without a link
    Sender sender_ GUARDED_BY(lock_of<NodeLock>){{.peers = peers_,
                                                  .routes = routes_,
                                                  .absent = absent_,
                                                  .complaints = complaints_,
                                                  .name = [this] { return name(); },
                                                  .wake = [this]() REQUIRES(lock_of<NodeLock>) { lead_.wake(); }}};
    OwnFunctions own_functions_ GUARDED_BY(lock_of<NodeLock>);
    std::optional<Parked> local_parked_ GUARDED_BY(lock_of<NodeLock>);
    CodeExchange exchange_ GUARDED_BY(lock_of<NodeLock>){{.options = options_,
                                                          .cache = cache_,
                                                          .peers = peers_,
                                                          .routes = routes_,
                                                          .sender = sender_,
                                                          .complaints = complaints_,
                                                          .own_functions = own_functions_,
                                                          .local_parked = local_parked_,
                                                          .name = [this] { return name(); }}};
    std::uint64_t meetings_ GUARDED_BY(lock_of<NodeLock>) = 0;              // ever, with whomever
    std::array<SeenInline, 64> seen_inline_ GUARDED_BY(lock_of<NodeLock>);  // by some bits of the function's id
    std::unordered_map<FunctionId, ByteBuffer> inline_codes_
        GUARDED_BY(lock_of<NodeLock>);                           // extensions, ready to be sent
    std::list<ByteBuffer> local_ GUARDED_BY(lock_of<NodeLock>);  // frames this node sends to itself
    std::size_t local_bytes_ GUARDED_BY(lock_of<NodeLock>) = 0;
    std::size_t staged_bytes_ GUARDED_BY(lock_of<NodeLock>) = 0;  // of payloads that come in parts, from all peers
    std::uint64_t gathered_ GUARDED_BY(lock_of<NodeLock>) = 0;    // runs that have read theirs themselves, ever
    MemoryTable memory_;
    UntakenMemory untaken_ GUARDED_BY(lock_of<NodeLock>);
    Objects objects_{[this] { return name(); }};

    std::unique_ptr<control::Control> control_;
    bool shut_down_ GUARDED_BY(lock_of<NodeLock>) = false;
    std::shared_ptr<NodeCore> abandoned_
        GUARDED_BY(lock_of<NodeLock>);  // itself, where a function did not end with the node
    std::shared_ptr<NodeCore> self_ GUARDED_BY(lock_of<NodeLock>);  // while Calls outlive the Node
};

}  // namespace rove
