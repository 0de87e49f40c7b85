// Caller: how calls of this process are sent, including those that are made by functions which run here. It meets a lost peer again, waits for
// room in a full mailbox, sends the code that the peer lacks, and splits payloads that are larger than a frame. How calls end is in OwnCalls.
//
// Threads: what takes the engine's lock says so (EXCLUDES); all else runs under it.
//
// Invariants: a call is sent at most once, and where an error is returned, it was not sent; of a batch whose function the peer does not know
// yet the first may have been, and the error says how many. Those of one thread to one peer start there in their order.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/link_ends.hpp"
#include "engine/local_frames.hpp"
#include "engine/peers.hpp"
#include "engine/pieces.hpp"
#include "peer/code_exchange.hpp"
#include "peer/own_functions.hpp"
#include "program/callables.hpp"

namespace rove {

// The function that is called. It holds pointers, so that making one costs nothing; the objects outlive the send.
struct Callee {
    const FunctionId* id;                                    // by which the peer's handle is found
    const std::shared_ptr<PackageStore>* package = nullptr;  // null, or null in it: nothing to ship
    std::string_view name{};                                 // for messages
    // If it is a function of this program: its id as a shipped function (null: it does not travel), and its schema.
    bool own = false;
    const FunctionId* shipped = nullptr;
    const detail::Callable* not_shipped = nullptr;  // that function, where it does not travel
    std::uint32_t schema = 0;
};

struct Outgoing {
    Callee callee;
    Pieces payload;
    wire::CallContext context{};  // without the caller, which is added when it is sent
    Sending sending = Sending::cached;
    // For all of it: until then it may wait for a link and for room (after that nothing was sent), and for its answer.
    Deadline deadline{};
};

// A frame that the caller fills in place.
struct BegunFrame {
    std::shared_ptr<void> link;  // whose mailbox has the place; null: there is none now, so use call()
    std::span<std::byte> place;
    std::uint32_t handle = 0;
};

// The call with which a function forwards its own.
struct Onward {
    NodeId node;
    FunctionId function;
    Bytes payload;
    wire::CallContext context;
};

// Adds what is known of the code that travels, and gives that; looks for it the first time. overloaded: that cannot be done now.
[[nodiscard]] Result<const detail::Callable::Code*> complete(Callee& callee, const detail::Callable& callable);

class Caller {
public:
    using Lock = HeldLock;
    using PeerPointer = std::shared_ptr<PeerState>;

    // The parts of the node that this one uses. They outlive it.
    struct Beside {
        Lead& lead;
        Runner& runner;
        Routes& routes;
        Peers& peers;
        LinkEnds& link_ends;
        RoomWaits& rooms;
        Sender& sender;
        CodeExchange& exchange;
        OwnFunctions& own_functions;
        OwnCalls& own_calls;
        LocalFrames& local;
        const std::unique_ptr<code::CodeCache>& cache;  // made when the node starts
        const std::shared_ptr<SpareMemory>& spare_memory;
        const FunctionId& free_memory;  // what every node has
        // Meets the peer again at that address, in that time. Without the lock.
        std::function<Result<PeerPointer>(const std::string& address, const PeerPointer& peer, Deadline)> meet;
        std::function<std::string()> name;  // of this node, for messages
    };
    explicit Caller(Beside beside)
        : lead_(beside.lead),
          runner_(beside.runner),
          routes_(beside.routes),
          peers_(beside.peers),
          link_ends_(beside.link_ends),
          rooms_(beside.rooms),
          sender_(beside.sender),
          exchange_(beside.exchange),
          own_functions_(beside.own_functions),
          own_calls_(beside.own_calls),
          local_(beside.local),
          cache_(beside.cache),
          spare_memory_(beside.spare_memory),
          free_memory_(beside.free_memory),
          meet_(std::move(beside.meet)),
          name_(std::move(beside.name)) {}

    // ---- for threads of the program
    [[nodiscard]] Result<CallId> call(const PeerPointer& peer, const Outgoing& outgoing) EXCLUDES(lock_of<EngineLock>);
    [[nodiscard]] Result<BegunFrame> begin(const PeerPointer& peer, const Outgoing& outgoing, std::size_t payload_bytes)
        EXCLUDES(lock_of<EngineLock>);
    [[nodiscard]] Result<CallId> post_begun(PeerState& peer, BegunFrame begun, bool wants_reply, Deadline deadline)
        EXCLUDES(lock_of<EngineLock>);
    void drop_begun(PeerState& peer, std::shared_ptr<void> link) EXCLUDES(lock_of<EngineLock>);
    // Several posts of one function; their payloads begin wire::batch_stride(payload_bytes) apart.
    [[nodiscard]] Status post_batch(const PeerPointer& peer, const Outgoing& outgoing, std::size_t payload_bytes)
        EXCLUDES(lock_of<EngineLock>);
    [[nodiscard]] Result<CallId> ping(const PeerPointer& peer, Bytes payload, bool wants_reply, Deadline deadline)
        EXCLUDES(lock_of<EngineLock>);
    [[nodiscard]] Result<CallId> load(const PeerPointer& peer, const std::shared_ptr<PackageStore>& package,
                                      Deadline deadline) EXCLUDES(lock_of<EngineLock>);
    // A post that never waits and never meets anybody. It is dropped if that meeting has ended, because its object ended with it.
    void post_in_meeting(PeerState& peer, std::uint64_t meeting, const Callee& callee, Bytes payload)
        EXCLUDES(lock_of<EngineLock>);

    // ---- for functions that run here
    [[nodiscard]] Status send_on(const Onward& onward) EXCLUDES(lock_of<EngineLock>);
    // A function of this program, or of a package that is loaded here, by its code: on another node, on this one, or on the
    // client that the caller is.
    [[nodiscard]] Result<CallId> call_from_here(NodeId to, code::EntryPoint function, const Pieces& payload,
                                                const wire::CallContext& context, Deadline deadline)
        EXCLUDES(lock_of<EngineLock>);

    // ---- under the lock
    // Memory on the peer that a call's answer names, and nobody takes.
    void free_memory(PeerState& peer, Bytes place) REQUIRES(lock_of<EngineLock>);
    // The node ends: peers that are lost are not met again.
    void close() REQUIRES(lock_of<EngineLock>) { closed_ = true; }

private:
    struct LargeSend;

    [[nodiscard]] Result<CallId> call_any(const PeerPointer& peer, const Outgoing& outgoing);
    [[nodiscard]] std::optional<CallId> send_at_once(PeerState& peer, const Outgoing& outgoing)
        REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Result<CallId> call_whole(const PeerPointer& peer, Lock& lock, const Outgoing& outgoing,
                                            const wire::Staged* staged) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Result<CallId> call_inline(PeerState& peer, const Outgoing& outgoing) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Result<const ByteBuffer*> inline_code(PeerState& peer, const FunctionId& function,
                                                        const std::shared_ptr<PackageStore>& whole)
        REQUIRES(lock_of<EngineLock>);
    // `handle`: the peer's for the function, as far as it has given one. `in_parts`: the payload is a Staged.
    [[nodiscard]] Status send_call(PeerState& peer, const Callee& callee, std::optional<std::uint32_t> handle,
                                   const wire::CallContext& context, Bytes payload, bool in_parts = false)
        REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Status ready_to_send(const PeerPointer& peer, Lock& lock, std::size_t payload_bytes,
                                       Deadline deadline) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] static Status no_frame_begun(const PeerState& peer) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Status make_alive(const PeerPointer& peer, Lock& lock, Deadline deadline)
        REQUIRES(lock_of<EngineLock>);

    // ---- payloads that are larger than a frame (caller_parts.cpp)
    [[nodiscard]] Result<CallId> call_in_parts(const PeerPointer& peer, Lock& lock, const Outgoing& outgoing)
        REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Status begin_large(PeerState& peer, Lock& lock, LargeSend& sent) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Status send_in_parts(PeerState& peer, Lock& lock, LargeSend& sent) REQUIRES(lock_of<EngineLock>);
    // Waits with wait(deadline, manner) until that says that it is done.
    template <typename Wait>
    [[nodiscard]] Status wait_in_large(Lock& lock, LargeSend& sent, const Wait& wait) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Status keep_apart(Lock& lock, LargeSend& sent) REQUIRES(lock_of<EngineLock>);
    void take_back_parts(PeerState& peer, const LargeSend& sent) REQUIRES(lock_of<EngineLock>);

    Lead& lead_;
    Runner& runner_;
    Routes& routes_;
    Peers& peers_;
    LinkEnds& link_ends_;
    RoomWaits& rooms_;
    Sender& sender_;
    CodeExchange& exchange_;
    OwnFunctions& own_functions_;
    OwnCalls& own_calls_;
    LocalFrames& local_;
    const std::unique_ptr<code::CodeCache>& cache_;
    const std::shared_ptr<SpareMemory>& spare_memory_;
    const FunctionId& free_memory_;
    const std::function<Result<PeerPointer>(const std::string&, const PeerPointer&, Deadline)> meet_;
    const std::function<std::string()> name_;
    const MakingProcess process_;
    bool closed_ GUARDED_BY(lock_of<EngineLock>) = false;
    // The package that call_whole() had kept last: the first calls of its other functions need not ask for that again, which takes a lock.
    std::shared_ptr<PackageStore> kept_last_ GUARDED_BY(lock_of<EngineLock>);
    // Extensions of inline frames, ready to be sent.
    std::unordered_map<FunctionId, ByteBuffer> inline_codes_ GUARDED_BY(lock_of<EngineLock>);
};

}  // namespace rove
