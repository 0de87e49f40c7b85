// Nodes, peers and packages, and calls of packages' functions with plain bytes. Programs include rove/rove.hpp, which adds typed
// calls of plain C++ functions.
//
//   Node      a process that takes part: its memory, its code cache, its mailboxes
//   Peer      one other node, as this node is linked to it
//   Package   an immutable, content-addressed unit of mobile code, made by `rove build`
//   Entry     one of a package's functions
//   RawCall   one invocation of such a function in flight
//
//       rove::Node node;
//       rove::Peer peer = node.connect("127.0.0.1:7400");
//       rove::Package package = rove::Package::open("sum.rove");
//       std::vector<std::byte> answer = peer.call(package.entry("sum"), bytes).get();
//
// The other node need not know the package: the first call sends the code along.
//
// Threads: all of this may be used from any thread, unless a class says otherwise.
// Errors: everything throws rove::Error, and std::bad_alloc if this process has no memory left; nothing else. If another node has no
// memory left the error is `overloaded`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "rove/detail/shared_type.hpp"
#include "rove/error.hpp"
#include "rove/forms.hpp"
#include "rove/within.hpp"

namespace rove {

class Engine;
class NodeCore;
class PackageStore;
class Peer;
class PeerGroup;
class PeerState;
template <typename T>
class Buffer;
template <typename T>
class Call;
namespace detail {
struct Inside;
}

// The id of a node: 0…n-1 among nodes that have joined one another. With the top bit set it is a client's.
using NodeId = std::uint32_t;

// Marks functions of librove.so that pass a std::vector. With -D_GLIBCXX_DEBUG a vector is another type: such a program then fails to
// link these functions, instead of being corrupted at run time. All other functions work in it; get_into() replaces get().
#ifdef _GLIBCXX_DEBUG
#define ROVE_GIVES_VECTOR [[gnu::abi_tag("glibcxx_debug")]]
#else
#define ROVE_GIVES_VECTOR
#endif

// Which transport a node may use.
//   best  shared memory if both ends are on one machine, otherwise a stream over sockets
//   shm   shared memory only
//   tcp   streams only
//   ucx   UCX's transports (librove-ucx.so), for networks where every program that can reach a port of this process is trusted with
//         the process, because UCX writes to addresses that messages name. Both ends must choose it
enum class FabricChoice : std::uint8_t { best, shm, tcp, ucx };

// How a node waits while no frame arrives. Each mode handles a frame that arrives at once equally fast.
//   latency   spins for ever: for nodes that have a core each
//   balanced  spins for up to 20 us, for less while other threads want the core, then yields the core, then sleeps
//   frugal    sleeps as soon as there is nothing to do
enum class Waiting : std::uint8_t { latency, balanced, frugal };

// NodeOptions::engines: as many as pay, which is one for each core that the process may use, and no more than 16; one
// where the node has no threads of its own.
inline constexpr unsigned kEnginesAuto = ~0U;

// The constructor of Node checks these: an option outside its choices is `invalid`, and the message lists them.
struct NodeOptions {
    // The address to listen on: "host:port", "[v6]:port" or "unix:PATH"; port 0 chooses a free one. Loopback only. Empty: a client, to
    // which no node can connect.
    std::string listen = {};
    // The address of a node to join. All nodes that have joined one another get dense ids and know each other. Empty: none.
    std::string join = {};
    FabricChoice fabric = FabricChoice::best;
    // Which threads serve the node: receive replies, and run functions and callbacks.
    //   true   threads of the node's own
    //   false  the thread that is in poll(), or that waits for a call; when no thread does either, nothing is served, and a post over a
    //          socket, which is coalesced with others, is sent at the next poll() or wait. The serving thread runs functions and callbacks
    //          in place. While it is in a long one, another thread of the program that waits for a call serves instead; if none waits,
    //          nothing is served until the function returns, and the serving thread's own wait may end that much later
    bool own_thread = true;
    // How many functions that run long (half a millisecond and more) may run at once, if the node has threads of its own: 1 to 64. More of
    // them wait in their mailboxes; other nodes are still served. Calls from one node begin in their order, so calls that a node sends
    // after such a call wait with it: a call that long functions wait for must be sent by another node. The node makes three more threads:
    // one serves, one watches it, and one runs no function, so that replies, time limits and the node's end are handled while all others
    // are in functions. 1: each function runs to its end before the next begins, and nothing else is done in that time.
    unsigned threads = 4;
    // How many engines serve the node, 1 to 64, or kEnginesAuto. Each is a thread that looks after its own peers: a peer is given to the engine
    // with the fewest when it is met. So short functions of several peers run at once, on as many cores as there are engines. Each has
    // `threads` of its own, polls, and sleeps when it is idle; with Waiting::latency each keeps a core busy. A node has 16,384 peers at
    // most, whatever the number of engines; calls in flight, and results that wait, are bounded for each engine. Several
    // engines need own_thread: a program's thread that waits for a call, or asks whether it has ended, would serve that call's engine alone.
    // A call that the node sends on to itself, or that comes back to it, asks for missing code only over links of the engine that runs it.
    unsigned engines = 1;
    Waiting waiting = Waiting::balanced;
    // The pointer that rove_host_object and Here::host_object return on this node. Not owned.
    void* host_object = nullptr;
    // A directory of *.rove files whose functions are resident from the start. Empty: none.
    std::filesystem::path packages = {};
    // Bound on the code held, including packages' bytes. Beyond it the least recently used code is evicted.
    std::size_t code_bytes_max = 256UL * 1024 * 1024;
    // Bound on the packages known, loaded or not. Beyond it packages without code, statics and constructors are forgotten, and requested
    // again when they are called.
    std::size_t packages_max = 4096;
    // Bound on the memory that all peers together may allocate here (Peer::allocate).
    std::size_t buffer_bytes_max = 4UL * 1024 * 1024 * 1024;
    Forms forms = Forms::both;
    // The file whose bytes prove, on loopback TCP, that both ends belong to the same user; created if it does not exist.
    // Empty: $ROVE_COOKIE, else rove/cookie under $XDG_CONFIG_HOME or ~/.config.
    std::filesystem::path cookie = {};
    // The lowest level that is logged to stderr: trace, debug, info, warn, error or off. One setting for the process: the last node's.
    std::string log = "warn";
    // How long the end of a node may take. After four fifths of it, calls that functions wait for end as `cancelled`. A function that
    // has not returned at the end of the grace is abandoned, in a thread that is not joined.
    std::chrono::milliseconds grace{5000};
    // How long connect() and a join may take, and resolving the name in `listen`.
    std::chrono::milliseconds connect_timeout{5000};
};

// How a function's code is sent to a peer that lacks it.
//   cached         before its first call, once
//   inlined        in the frames of its first calls; after several calls to one peer it is sent once and called as cached
//   always_inlined in the frame of every call
enum class Sending : std::uint8_t { cached, inlined, always_inlined };

// One function of a package. Cheap to copy; keeps the package alive.
class Entry {
public:
    [[nodiscard]] const std::string& name() const;
    [[nodiscard]] std::string id() const;  // the FunctionId as 32 hexadecimal digits
    // The same function, sent in another way. Code is inlined as an image. The call is `unsupported` if the package has no image for
    // the peer's target, or one of more than 64 KiB.
    [[nodiscard]] Entry sent(Sending sending) const {
        Entry other = *this;
        other.sending_ = sending;
        return other;
    }

private:
    friend class Batch;
    friend class Package;
    friend class Peer;
    Entry(std::shared_ptr<PackageStore> package, std::size_t index) : package_(std::move(package)), index_(index) {}
    std::shared_ptr<PackageStore> package_;
    std::size_t index_;
    Sending sending_ = Sending::cached;
};

// A package file in memory. Cheap to copy.
class Package {
public:
    // Reads a package file and checks it: its form, and each slice by its digest. Nothing in the file says what its manifest was when it was
    // packed. invalid: it does not exist, is truncated or malformed, a slice is altered, or it has another abi.
    [[nodiscard]] static Package open(const std::filesystem::path& path);
    [[nodiscard]] static Package parse(std::span<const std::byte> file);

    [[nodiscard]] const std::string& name() const;
    [[nodiscard]] std::string digest() const;  // 64 hexadecimal digits
    [[nodiscard]] bool is_interface() const;
    ROVE_GIVES_VECTOR [[nodiscard]] const std::vector<std::string>& entries() const;
    // invalid: no such entry; the message lists the entries.
    [[nodiscard]] Entry entry(std::string_view name) const;

private:
    friend class Peer;
    explicit Package(std::shared_ptr<PackageStore> store) : store_(std::move(store)) {}
    std::shared_ptr<PackageStore> store_;
};

// The result of a call, with its circumstances.
struct Reply {
    std::vector<std::byte> data;
    NodeId node = 0;  // the node on which the function ended
    RanAs ran = RanAs::image;
    unsigned hops = 0;  // how many times it was forwarded
};

// One invocation in flight. Destroying it does not wait: the call is forgotten, and a late reply is recognised and discarded.
// Threads: one at a time.
class RawCall {
public:
    RawCall(RawCall&& other) noexcept
        : engine_(std::exchange(other.engine_, nullptr)), slot_(other.slot_), generation_(other.generation_) {}
    RawCall& operator=(RawCall&& other) noexcept;
    ~RawCall();

    // Whether the call has ended. Polls the node once if it has no thread of its own.
    [[nodiscard]] bool done();
    // Waits for the end; false: the time is over and the call is still in flight.
    bool wait_for(std::chrono::milliseconds timeout);
    // Waits; returns the reply's bytes or throws the call's error. Once.
    ROVE_GIVES_VECTOR [[nodiscard]] std::vector<std::byte> get();
    ROVE_GIVES_VECTOR [[nodiscard]] Reply reply();  // get(), with the circumstances
    // get() into the caller's memory; results of up to 64 bytes need no allocation. Returns the result's size. invalid: it is
    // larger than `into`.
    std::size_t get_into(std::span<std::byte> into);

private:
    friend class CallFrame;
    friend class Peer;
    RawCall(Engine* engine, std::uint16_t slot, std::uint32_t generation)
        : engine_(engine), slot_(slot), generation_(generation) {}
    void forget() noexcept;
    Engine* engine_;  // the engine that sent it; null: the result was taken. A node exists as long as it has calls
    std::uint16_t slot_;
    std::uint32_t generation_;
};

// A call's payload, made once and sent any number of times, to one peer or several, and changed in place between the sends.
// A send copies it. Threads: one at a time.
class Message {
public:
    Message(Entry entry, std::size_t payload_bytes) : entry_(std::move(entry)), payload_(payload_bytes) {}
    [[nodiscard]] std::span<std::byte> payload() noexcept { return payload_; }
    [[nodiscard]] const Entry& entry() const noexcept { return entry_; }

private:
    friend class Peer;
    Entry entry_;
    std::vector<std::byte> payload_;
};

// A call whose payload is written straight into the peer's mailbox. Fill payload(), then use call() or post(), once; a frame that
// is destroyed before is not sent. Until then other sends to this peer wait, so keep the time short; the thread that has begun a frame must
// not send anything else to the same peer. A frame may outlive its Node: call() and post() then throw `cancelled`. Threads: one at a time.
class CallFrame {
public:
    CallFrame(CallFrame&& other) noexcept;
    CallFrame& operator=(CallFrame&&) = delete;
    ~CallFrame();
    // 16-byte aligned; its initial content is undefined.
    [[nodiscard]] std::span<std::byte> payload() noexcept { return place_; }
    [[nodiscard]] RawCall call();
    void post();

private:
    friend class Peer;
    CallFrame(Engine* engine, PeerState* peer) : engine_(engine), peer_(peer) {}
    Engine* engine_;  // the engine that has the peer's link; null: sent
    PeerState* peer_;
    std::shared_ptr<void> link_;  // null: `place_` is in `aside_`
    std::span<std::byte> place_;
    std::uint32_t handle_ = 0;
    // The end of a time limit, which began with the frame.
    std::optional<std::chrono::steady_clock::time_point> deadline_;
    // Used if the mailbox is full, or the peer does not know the function yet:
    std::shared_ptr<Peer> through_;
    std::optional<Entry> entry_;
    std::unique_ptr<std::byte[]> aside_;
};

// Several posts of one function, with payloads of one size, coalesced into frames. A frame is sent when it is full, by post(),
// and by the destructor. Where that fails, add() and post() throw: what was gathered for this frame was not posted, or the error says how
// many of it were. Threads: one at a time.
class Batch {
public:
    Batch(Batch&&) noexcept;
    Batch& operator=(Batch&&) = delete;
    ~Batch();  // posts; if that fails, the posts are lost
    // Room for the payload of one more post; valid until the next member function is called.
    [[nodiscard]] std::span<std::byte> add();
    void post();

private:
    friend class Peer;
    struct Gathered;
    explicit Batch(std::unique_ptr<Gathered> gathered);
    std::unique_ptr<Gathered> gathered_;
};

// A function that a node's program offers.
struct FunctionDescription {
    std::string id;  // the FunctionId as 32 hexadecimal digits
    std::string name;
    std::string signature;
};
// A node, as Peer::description() returns it.
struct NodeDescription {
    NodeId node = 0;
    std::string address;
    std::string target;  // the target of its machine: "x86_64-linux-gnu"
    std::string lane;    // to it: "direct" (shared memory) or "message" (TCP or Unix socket, or UCX)
    std::uint32_t node_count = 1;
};

namespace detail {
// Types with dedicated Peer overloads.
template <typename F>
inline constexpr bool kHasOwnOverload =
    std::is_same_v<F, Entry> || std::is_same_v<F, Message> || std::is_same_v<F, Within>;

// What each operation through a Peer may spend.
struct Limits {
    std::int64_t time_ns = kForever;  // including the sending; negative: no limit
    [[nodiscard]] Limits with(Within limit) const {
        Limits other = *this;
        other.time_ns = limit.ns;
        return other;
    }
};
}  // namespace detail

// A link to one node. Cheap to copy. May outlive its Node, which keeps its descriptors until then; every call then ends as `cancelled`. When
// the other node ends, calls in flight fail as `disconnected`, and the next call tries to reach its address again.
class Peer {
public:
    // ---- time limits
    // The same peer, with a time limit for each operation through this copy, and through copies of it: everything below
    // that sends or waits. Error: timed_out. A Within that is passed to an operation replaces this limit.
    [[nodiscard]] Peer limited(Within limit) const {
        Peer other = *this;
        other.limits_ = limits_.with(limit);
        return other;
    }

    // ---- typed calls (rove/rove.hpp)

    // Calls a function there: rove::fn<f>, a lambda, or another form of rove/function.hpp. Returns a Call<T> of its result. Throws only
    // if the call cannot be sent; later errors are thrown by the Call.
    //   disconnected  the node cannot be reached
    //   timed_out     the limit (limited()) is over
    //   overloaded    too many calls in flight, or no room for this one
    //   unsupported   the node lacks the function, and its code cannot travel
    //   invalid       the arguments are over message_bytes_max(), or this process is the child of a fork()
    //   cancelled     the Node has ended
    template <typename F, typename... Args>
        requires(!detail::kHasOwnOverload<F>)
    auto async(const F& function, const Args&... args) const;
    // The same with a time limit. timed_out: thrown here if the call could not be sent in time, otherwise by the Call.
    template <typename F, typename... Args>
    auto async(Within limit, const F& function, const Args&... args) const;
    // async(…).get()
    template <typename F, typename... Args>
        requires(!detail::kHasOwnOverload<F>)
    auto sync(const F& function, const Args&... args) const;
    template <typename F, typename... Args>
    auto sync(Within limit, const F& function, const Args&... args) const;
    // A call without a reply: its end, and its errors, are not reported.
    template <typename F, typename... Args>
        requires(!detail::kHasOwnOverload<F>)
    void post(const F& function, const Args&... args) const;
    // The same with a time limit for the sending.
    template <typename F, typename... Args>
        requires(!detail::kHasOwnOverload<F>)
    void post(Within limit, const F& function, const Args&... args) const;

    // Allocates memory there, zeroed. overloaded (from the Call): beyond that node's NodeOptions::buffer_bytes_max.
    template <typename T>
    [[nodiscard]] Call<Buffer<T>> allocate(std::size_t count) const;
    // put copies a range of T here to the beginning of a buffer, get copies all of a buffer into a range here. The range must exist until
    // the Call has ended. invalid: it does not fit. The buffer determines the node.
    template <typename Range, typename T>
    Call<void> put(const Range& from, const Buffer<T>& to) const;
    template <typename T, typename Range>
    Call<void> get(const Buffer<T>& from, Range&& into) const;
    // The same with a time limit. timed_out: a part of the transfer may have been done.
    template <typename T>
    [[nodiscard]] Call<Buffer<T>> allocate(Within limit, std::size_t count) const;
    template <typename Range, typename T>
    Call<void> put(Within limit, const Range& from, const Buffer<T>& to) const;
    template <typename T, typename Range>
    Call<void> get(Within limit, const Buffer<T>& from, Range&& into) const;

    // The functions of the node's own program.
    ROVE_GIVES_VECTOR [[nodiscard]] std::vector<FunctionDescription> functions() const;
    [[nodiscard]] NodeDescription description() const;

    // ---- calls of packages' functions; limited() gives them a time limit

    // Begins a call with a copy of the payload. Waits while the peer's mailbox is full. invalid: payload over
    // message_bytes_max(); unsupported: no form for the peer's target; disconnected: it cannot be reached.
    [[nodiscard]] RawCall call(const Entry& entry, std::span<const std::byte> payload = {}) const;
    // The same without a reply: its end is not reported.
    void post(const Entry& entry, std::span<const std::byte> payload = {}) const;
    [[nodiscard]] RawCall call(Message& message) const { return call(message.entry_, message.payload_); }
    void post(Message& message) const { post(message.entry_, message.payload_); }
    [[nodiscard]] RawCall call(Within limit, const Entry& entry, std::span<const std::byte> payload = {}) const {
        return limited(limit).call(entry, payload);
    }
    void post(Within limit, const Entry& entry, std::span<const std::byte> payload = {}) const {
        limited(limit).post(entry, payload);
    }
    // The same with the payload written in place, of payload_bytes_max() at most, here and below. A limit starts with the frame, and
    // with each frame that a Batch sends.
    [[nodiscard]] CallFrame begin(const Entry& entry, std::size_t payload_bytes) const;
    [[nodiscard]] Batch batch(const Entry& entry, std::size_t payload_bytes) const;
    // A round trip that runs no function. `payload` is sent along, for measurements.
    [[nodiscard]] RawCall ping(std::span<const std::byte> payload = {}) const;
    // The same without a reply.
    void deliver(std::span<const std::byte> payload) const;
    // Sends a package before its first call, and waits until it is loaded. Functions that arrive later are linked to an interface's names;
    // the report lists names that the interface took over, and names that it did not get.
    ROVE_GIVES_VECTOR LoadReport load(const Package& package) const;

    [[nodiscard]] NodeId node() const;          // the peer's id in its cluster; nodes that have joined none are all 0
    [[nodiscard]] std::string address() const;  // the address on which it listens; empty for a client
    [[nodiscard]] std::string lane() const;     // "direct" (shared memory) or "message" (TCP or Unix socket, or UCX)
    [[nodiscard]] std::uint32_t node_count() const;  // as the peer reported it when the two connected

    struct Counters {
        std::uint64_t frames_sent = 0, bytes_sent = 0, frames_received = 0, code_bytes_sent = 0;
        std::uint32_t frame_bytes_last = 0;  // the last call's or post's
    };
    [[nodiscard]] Counters counters() const;

    // The largest payload of one frame; the largest payload of a call, and the largest reply.
    [[nodiscard]] static std::size_t payload_bytes_max() noexcept;
    [[nodiscard]] static std::size_t message_bytes_max() noexcept;

private:
    friend class CallFrame;
    friend class Node;
    friend struct detail::Inside;
    Peer(std::shared_ptr<NodeCore> core, std::shared_ptr<PeerState> state)
        : core_(std::move(core)), state_(std::move(state)) {}
    std::shared_ptr<NodeCore> core_;
    std::shared_ptr<PeerState> state_;
    detail::Limits limits_;
};

// This process as a node. Movable; a Node that was moved from is `invalid` to use.
class Node {
public:
    // Starts listening, joins, and preloads packages.
    //   invalid                  an address or option is wrong
    //   refused                  not a loopback address, or a node of another user
    //   disconnected, timed_out  no node at the join address, or no answer from it
    //   overloaded               no thread, descriptor or memory is left
    //   unsupported              a package to be preloaded has no form for this machine
    explicit Node(NodeOptions options = {});
    // Within NodeOptions::grace: waits until peers have begun the posts that were sent to them, for a fifth of that time and for one second at
    // most; waits for functions that run; leaves the cluster; ends calls in flight as `cancelled`.
    ~Node();
    Node(Node&&) noexcept = default;
    Node& operator=(Node&&) = delete;

    // Connects to the node at an address, or returns the existing link.
    //   disconnected, timed_out  no node there, or no answer from it
    //   refused                  another user's node
    //   invalid                  not an address
    //   overloaded               either side has as many peers as it may have
    //   unsupported              another version of Rove
    //   cancelled                this node is ending
    [[nodiscard]] Peer connect(std::string_view address);
    [[nodiscard]] PeerGroup connect(std::initializer_list<std::string_view> addresses);
    [[nodiscard]] PeerGroup connect(const std::vector<std::string>& addresses);
    // Lets functions that run on this node find an object: here.object<T>(name). Not owned: it must outlive the node, or be
    // withdrawn by unshare(). Several functions may use it at the same time, so it must guard itself. invalid: the name is taken, is
    // empty or has a zero in it.
    template <typename T>
    void share(const std::string& name, T& object) {
        static_assert(
            !std::is_const_v<T>,
            "rove: a constant cannot be shared, because functions may ask for it as something that they change; "
            "share a variable, and let those that only read it ask for here.object<const T>(name)");
        if constexpr (!std::is_const_v<T>) share(name, &object, detail::shared_type<T>());
    }
    void unshare(const std::string& name);
    // The functions of this program.
    ROVE_GIVES_VECTOR [[nodiscard]] static std::vector<FunctionDescription> functions();
    // Serves the node: handles the frames that have arrived and returns how many; waits up to `wait` for the first (negative: for ever). If
    // another thread serves already, it waits for the same time, or until that thread has handled something for which a thread waits.
    unsigned poll(std::chrono::milliseconds wait = std::chrono::milliseconds(0));
    // Ends a poll() that waits; if none does, the next poll() does not wait. May be called from any thread and from a signal handler.
    void wake() noexcept;

    // The address on which it listens, with the actual port; empty for a client.
    [[nodiscard]] const std::string& address() const;
    [[nodiscard]] NodeId id() const;
    [[nodiscard]] std::uint32_t node_count() const;

private:
    friend struct detail::Inside;
    explicit Node(std::shared_ptr<NodeCore> core) noexcept : core_(std::move(core)) {}
    void share(const std::string& name, void* object, const char* type);
    std::shared_ptr<NodeCore> core_;
};

}  // namespace rove
