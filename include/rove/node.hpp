// Nodes, peers and packages, and calls of packages' functions with plain bytes. Programs include rove/rove.hpp, which puts typed
// calls of plain C++ functions on top.
//
//   Node      a process that takes part: its memory, its code cache, its mailboxes
//   Peer      this node's link to one other node
//   Package   an immutable, content-addressed unit of mobile code, made by `rove build`
//   Entry     one of a package's functions
//   RawCall   one invocation of such a function in flight
//
//       rove::Node node;
//       rove::Peer peer = node.connect("127.0.0.1:7400");
//       rove::Package package = rove::Package::open("sum.rove");
//       std::vector<std::byte> answer = peer.call(package.entry("sum"), bytes).get();
//
// The node at the other end need not know the package: the first call brings the code along.
//
// All of this may be used from any thread. Everything throws rove::Error, and std::bad_alloc where this process itself has no memory
// left; nothing else. Where another node has none the error is `overloaded`.
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

#include "rove/error.hpp"
#include "rove/shared_type.hpp"
#include "rove/within.hpp"

namespace rove {

class NodeCore;
class PackageStore;
class Peer;
class PeerGroup;
struct PeerState;
template <typename T>
class Buffer;
template <typename T>
class Call;
namespace detail {
struct Edge;
}

// 0…n-1 among nodes that joined one another; with the top bit set, a client.
using NodeId = std::uint32_t;

// What a function ran as.
enum class RanAs : std::uint8_t { resident = 0, image = 1, bitcode = 2 };
[[nodiscard]] std::string_view to_string(RanAs ran) noexcept;

// Where a std::vector crosses into librove.so: with -D_GLIBCXX_DEBUG a vector is another type, so such a program misses these functions
// when it is linked, instead of being damaged when it runs. All else is usable in one, and get_into() is in place of get().
#ifdef _GLIBCXX_DEBUG
#define ROVE_GIVES_VECTOR [[gnu::abi_tag("glibcxx_debug")]]
#else
#define ROVE_GIVES_VECTOR
#endif

// Which forms of a package are sent and run. both: a function begins on its image at once, and goes on with its bitcode when that has been
// compiled. image, bitcode: that form only.
enum class Forms : std::uint8_t { both, image, bitcode };

// Which transport a node may use.
//   best  shared memory where both ends are on one machine, else a stream over sockets
//   shm   shared memory only
//   tcp   streams only
//   ucx   UCX's transports (librove-ucx.so), for networks where everybody who can reach a port of this process is trusted with
//         the process: UCX writes where a message says. Both ends must choose it
enum class FabricChoice : std::uint8_t { best, shm, tcp, ucx };

// How a node waits when nothing comes. All of them see a frame that comes at once equally fast.
//   latency   spins for ever: for nodes that have a core each
//   balanced  spins as long as that has been worth while lately (20 us at most), then lets others have the core, then sleeps
//   frugal    sleeps as soon as nothing is there
enum class Waiting : std::uint8_t { latency, balanced, frugal };

struct NodeOptions {
    // "host:port", "[v6]:port" or "unix:PATH"; port 0 picks one. Loopback only. Empty: a client that nobody can connect to.
    std::string listen = {};
    // The address of a node to join; the two, and all others that joined, get dense ids and learn of each other.
    std::string join = {};
    FabricChoice fabric = FabricChoice::best;
    // True: threads of the node's own serve. False: poll() does, and every wait on a RawCall; nothing moves without them, and a
    // post over a socket, which shares a message with others, leaves with the next of them. The thread that serves runs the functions and
    // callbacks that come meanwhile, in place: while it is in one that takes long, another thread of the program that waits for a call
    // serves in its stead; where none does, nothing moves until it returns, and what it waited for may be late by as much.
    bool own_thread = true;
    // Functions that run long (half a millisecond and more) at once, where the node has threads of its own. More of them wait in their
    // mailboxes. Calls from one node begin in their order, so what a node sends after such a call waits with it: a call that long
    // functions wait for has to come from another node. All other nodes are served meanwhile. Three more threads see to that: one
    // serves, one watches it, and one runs no function, so that replies, time limits and the node's end are seen to when all others are
    // in functions. 1: each function runs to its end before the next begins, and nothing else happens meanwhile. 1 to 64.
    unsigned threads = 4;
    Waiting waiting = Waiting::balanced;
    // What rove_host_object gives to functions that run on this node. Not owned.
    void* host_object = nullptr;
    // A directory of *.rove files whose functions are resident from the start; empty: none.
    std::filesystem::path packages = {};
    // Bound on code held, packages' bytes included; least recently used code is evicted beyond it.
    std::size_t code_bytes_max = 256UL * 1024 * 1024;
    // Bound on packages known, loaded or not; beyond it those without code and statics are forgotten, and asked for anew.
    std::size_t packages_max = 4096;
    // Bound on the memory that peers may allocate here (Peer::allocate), all together.
    std::size_t buffer_bytes_max = 4UL * 1024 * 1024 * 1024;
    Forms forms = Forms::both;
    // The file whose bytes prove, on loopback TCP, that both ends are the same user; made when it is not there.
    // Empty: $ROVE_COOKIE, else rove/cookie under $XDG_CONFIG_HOME or ~/.config.
    std::filesystem::path cookie = {};
    // What is written to stderr: trace, debug, info, warn, error or off. One setting for the process: the last node's.
    std::string log = "warn";
    // How long the end of a node may take. Functions that wait for calls are told so (`cancelled`) after four fifths of it; one that
    // has not returned by then is left to itself, in a thread that nobody waits for.
    std::chrono::milliseconds grace{5000};
    // How long connect() and a join may take, and the name in `listen` to be resolved.
    std::chrono::milliseconds connect_timeout{5000};
};

// How a function's code gets to a peer that lacks it.
//   cached         ahead of its first call, once
//   inlined        in the frames of its first calls; where it keeps being called, the peer keeps it, and it counts as cached
//   always_inlined in the frame of every call
enum class Sending : std::uint8_t { cached, inlined, always_inlined };

// One function of a package. Cheap to copy; keeps the package alive.
class Entry {
public:
    [[nodiscard]] const std::string& name() const;
    [[nodiscard]] std::string id() const;  // the FunctionId as 32 hexadecimal digits
    // The same function, sent in another way. Inlined code is an image; unsupported, from the call, where the package has none for
    // the peer's target, or one over 64 KiB.
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

class Package {
public:
    // Reads a package file and checks all of it. invalid: not there, truncated, altered, or of another abi.
    [[nodiscard]] static Package open(const std::filesystem::path& path);
    [[nodiscard]] static Package parse(std::span<const std::byte> file);

    [[nodiscard]] const std::string& name() const;
    [[nodiscard]] std::string digest() const;  // 64 hexadecimal digits
    [[nodiscard]] bool is_interface() const;
    ROVE_GIVES_VECTOR [[nodiscard]] const std::vector<std::string>& entries() const;
    // invalid: no such entry; the message lists those there are.
    [[nodiscard]] Entry entry(std::string_view name) const;

private:
    friend class Peer;
    explicit Package(std::shared_ptr<PackageStore> store) : store_(std::move(store)) {}
    std::shared_ptr<PackageStore> store_;
};

// What a call brought back.
struct Reply {
    std::vector<std::byte> data;
    NodeId node = 0;  // where the function ended
    RanAs ran = RanAs::image;
    unsigned hops = 0;  // how often it was sent on
};

// One invocation in flight. Dropping it forgets the call; a late reply is recognised and discarded.
class RawCall {
public:
    RawCall(RawCall&& other) noexcept
        : core_(std::exchange(other.core_, nullptr)), slot_(other.slot_), generation_(other.generation_) {}
    RawCall& operator=(RawCall&& other) noexcept;
    ~RawCall();

    // True when the call has ended. Polls once where the node has no thread of its own.
    [[nodiscard]] bool done();
    // Waits for the end; false when the time is up and the call still in flight.
    bool wait_for(std::chrono::milliseconds timeout);
    // Waits, and gives the reply's bytes or throws the call's error. Once.
    ROVE_GIVES_VECTOR [[nodiscard]] std::vector<std::byte> get();
    ROVE_GIVES_VECTOR [[nodiscard]] Reply reply();  // get() with the circumstances
    // get() into the caller's memory: nothing is allocated for results of up to 64 bytes. Gives the result's size. invalid: it is
    // larger than `into`.
    std::size_t get_into(std::span<std::byte> into);

private:
    friend class CallFrame;
    friend class Peer;
    RawCall(NodeCore* core, std::uint16_t slot, std::uint32_t generation)
        : core_(core), slot_(slot), generation_(generation) {}
    void forget() noexcept;
    NodeCore* core_;  // null: the result was taken. A node lives as long as it has calls.
    std::uint16_t slot_;
    std::uint32_t generation_;
};

// A call's payload, made once and sent as often as you like, to one peer or several, changed in place between the sends.
// Nothing of it is kept by a send. Threads: one at a time.
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

// A call whose payload is written straight into the peer's mailbox. Fill payload(), then call() or post(), once; a frame that
// is dropped is not sent. Until then other sends to this peer wait, so be quick about it; the thread that has begun a frame cannot
// send anything else to the same peer. It may outlive its Node: call() and post() throw cancelled then.
class CallFrame {
public:
    CallFrame(CallFrame&& other) noexcept;
    CallFrame& operator=(CallFrame&&) = delete;
    ~CallFrame();
    // 16-byte aligned. What it holds at first means nothing.
    [[nodiscard]] std::span<std::byte> payload() noexcept { return place_; }
    [[nodiscard]] RawCall call();
    void post();

private:
    friend class Peer;
    CallFrame(NodeCore* core, PeerState* peer) : core_(core), peer_(peer) {}
    NodeCore* core_;  // null: sent
    PeerState* peer_;
    std::shared_ptr<void> link_;  // null: `place_` is in `aside_`
    std::span<std::byte> place_;
    std::uint32_t handle_ = 0;
    std::optional<std::chrono::steady_clock::time_point> deadline_;  // of a limit, which began with the frame
    // Where the mailbox is full, or the peer does not know the function yet:
    std::shared_ptr<Peer> through_;
    std::optional<Entry> entry_;
    std::unique_ptr<std::byte[]> aside_;
};

// Several posts of one function, with payloads of one size, that share frames. They leave when a frame is full, with post(),
// and at the end. Threads: one at a time.
class Batch {
public:
    Batch(Batch&&) noexcept;
    Batch& operator=(Batch&&) = delete;
    ~Batch();  // posts; where that fails, the posts are lost
    // Room for the payload of one more post, until the next member is called.
    [[nodiscard]] std::span<std::byte> add();
    void post();

private:
    friend class Peer;
    struct Gathered;
    explicit Batch(std::unique_ptr<Gathered> gathered);
    std::unique_ptr<Gathered> gathered_;
};

// What became of an interface's names where another interface or the node itself has them, too. Other names are in neither list.
struct LoadReport {
    // Names that were another interface's and are this one's now: "name (was of package X)". Functions that had arrived keep what they
    // were linked to.
    std::vector<std::string> replaced;
    // Names that the node's process has itself, such as those of the C library: functions go on to link to the node's own. Only an
    // interface that the node finds in its NodeOptions::packages takes these over.
    std::vector<std::string> kept;
};

// What a node's program offers, for people.
struct FunctionDescription {
    std::string id;  // the FunctionId as 32 hexadecimal digits
    std::string name;
    std::string signature;
};
struct NodeDescription {
    NodeId node = 0;
    std::string address;
    std::string target;  // of its machine: "x86_64-linux-gnu"
    std::string lane;    // to it: "direct" (shared memory) or "message" (TCP or Unix socket, or UCX)
    std::uint32_t node_count = 1;
};

// Types with dedicated Peer overloads.
template <typename F>
inline constexpr bool kIsMessage = std::is_same_v<F, Entry> || std::is_same_v<F, Message> || std::is_same_v<F, Within>;

// A link to one node. Cheap to copy; may outlive its node, and every call is `cancelled` then. When the node at the other end is gone, calls in flight
// fail as disconnected, and the next call tries to reach its address again.
class Peer {
public:
    // ---- time limits
    // The same peer, with a limit for each thing that is asked of it through this copy, and through copies of that: everything below
    // that sends or waits. timed_out when it is up. A Within that is passed to one of them counts instead.
    [[nodiscard]] Peer limited(Within limit) const {
        Peer other = *this;
        other.limit_ns_ = limit.ns;
        return other;
    }

    // ---- typed calls (rove/rove.hpp)

    // Calls a function there: rove::fn<f>, a lambda, and what else rove/function.hpp names. Gives a Call of its result. Throws only
    // where it cannot be sent; what goes wrong later comes with the Call. disconnected: the node cannot be reached. timed_out: the
    // limit (limited()) is up. overloaded: too many calls in flight, or no room for this one. unsupported: the node lacks the
    // function, and its code cannot travel. invalid: the arguments are over message_bytes_max(), or this is a fork's child. cancelled:
    // the Node has ended.
    template <typename F, typename... Args>
        requires(!kIsMessage<F>)
    auto async(const F& function, const Args&... args) const;
    // The same, given a time: timed_out when that is up, from here where it could not be sent, else from the Call.
    template <typename F, typename... Args>
    auto async(Within limit, const F& function, const Args&... args) const;
    // async(…).get()
    template <typename F, typename... Args>
        requires(!kIsMessage<F>)
    auto sync(const F& function, const Args&... args) const;
    template <typename F, typename... Args>
    auto sync(Within limit, const F& function, const Args&... args) const;
    // Without a reply: nobody is told of its end.
    template <typename F, typename... Args>
        requires(!kIsMessage<F>)
    void post(const F& function, const Args&... args) const;
    // The same, given a time to be sent in.
    template <typename F, typename... Args>
        requires(!kIsMessage<F>)
    void post(Within limit, const F& function, const Args&... args) const;

    // Memory there, zeroed. overloaded (from the Call): over the node's NodeOptions::buffer_bytes_max.
    template <typename T>
    [[nodiscard]] Call<Buffer<T>> allocate(std::size_t count) const;
    // From a range of T here into the beginning of a buffer, and all of a buffer into a range here, which must live until the
    // Call has ended. invalid: it does not fit. The buffer says which node it is on.
    template <typename Range, typename T>
    Call<void> put(const Range& from, const Buffer<T>& to) const;
    template <typename T, typename Range>
    Call<void> get(const Buffer<T>& from, Range&& into) const;
    // The same, given a time: timed_out when that is up; a transfer may have been made in part then.
    template <typename T>
    [[nodiscard]] Call<Buffer<T>> allocate(Within limit, std::size_t count) const;
    template <typename Range, typename T>
    Call<void> put(Within limit, const Range& from, const Buffer<T>& to) const;
    template <typename T, typename Range>
    Call<void> get(Within limit, const Buffer<T>& from, Range&& into) const;

    // The functions of the node's own program.
    ROVE_GIVES_VECTOR [[nodiscard]] std::vector<FunctionDescription> functions() const;
    [[nodiscard]] NodeDescription description() const;

    // ---- calls of packages' functions; limited() gives them a time

    // Begins a call with a copy of the payload. Waits where the peer's mailbox is full. invalid: payload over
    // message_bytes_max(); unsupported: no form for the peer's target; disconnected: it cannot be reached.
    [[nodiscard]] RawCall call(const Entry& entry, std::span<const std::byte> payload = {}) const;
    // The same without a reply: nobody is told of its end.
    void post(const Entry& entry, std::span<const std::byte> payload = {}) const;
    [[nodiscard]] RawCall call(Message& message) const { return call(message.entry_, message.payload_); }
    void post(Message& message) const { post(message.entry_, message.payload_); }
    [[nodiscard]] RawCall call(Within limit, const Entry& entry, std::span<const std::byte> payload = {}) const {
        return limited(limit).call(entry, payload);
    }
    void post(Within limit, const Entry& entry, std::span<const std::byte> payload = {}) const {
        limited(limit).post(entry, payload);
    }
    // The same with the payload written in place: of payload_bytes_max() at most, here and below. A limit begins with the frame, and
    // with each frame that a Batch sends.
    [[nodiscard]] CallFrame begin(const Entry& entry, std::size_t payload_bytes) const;
    [[nodiscard]] Batch batch(const Entry& entry, std::size_t payload_bytes) const;
    // Goes there and back, and runs nothing. `payload` is brought along, for measurements.
    [[nodiscard]] RawCall ping(std::span<const std::byte> payload = {}) const;
    // The same without the way back.
    void deliver(std::span<const std::byte> payload) const;
    // Brings a package ahead of its first call and waits. Functions that arrive later link to an interface's names; the report lists
    // those that the interface took over, and those that it did not get.
    ROVE_GIVES_VECTOR LoadReport load(const Package& package) const;

    [[nodiscard]] NodeId node() const;          // the peer's id
    [[nodiscard]] std::string address() const;  // that it listens on; empty for a client
    [[nodiscard]] std::string lane() const;     // "direct" (shared memory) or "message" (TCP or Unix socket, or UCX)
    [[nodiscard]] std::uint32_t node_count() const;  // as the peer said when they met

    struct Counters {
        std::uint64_t frames_sent = 0, bytes_sent = 0, frames_received = 0, code_bytes_sent = 0;
        std::uint32_t frame_bytes_last = 0;  // of the last call or post
    };
    [[nodiscard]] Counters counters() const;

    [[nodiscard]] static std::size_t payload_bytes_max() noexcept;  // that a frame carries
    [[nodiscard]] static std::size_t message_bytes_max() noexcept;  // that a call, and a reply, may have

private:
    friend class CallFrame;
    friend class Node;
    friend struct detail::Edge;
    Peer(std::shared_ptr<NodeCore> core, std::shared_ptr<PeerState> state)
        : core_(std::move(core)), state_(std::move(state)) {}
    std::shared_ptr<NodeCore> core_;
    std::shared_ptr<PeerState> state_;
    std::int64_t limit_ns_ = -1;  // as of Within
};

class Node {
public:
    // Starts listening, joins, preloads. invalid: an address or option is wrong; refused: not a loopback address, or not
    // the same user; disconnected, timed_out: nobody at the join address, or nobody who answers; overloaded: no thread, descriptor or
    // memory is left; unsupported: a package to be loaded first has no form for this machine.
    explicit Node(NodeOptions options = {});
    // Finishes what runs, leaves, fails calls still in flight as cancelled.
    ~Node();
    Node(Node&&) noexcept = default;
    Node& operator=(Node&&) = delete;

    // Meets the node at an address, or gives the link there already is. disconnected, timed_out: nobody there, or nobody who answers;
    // refused: not the same user; invalid: no address; overloaded: either side has a bound's worth of peers; unsupported: another version
    // of Rove; cancelled: this node ends.
    [[nodiscard]] Peer connect(std::string_view address);
    [[nodiscard]] PeerGroup connect(std::initializer_list<std::string_view> addresses);
    [[nodiscard]] PeerGroup connect(const std::vector<std::string>& addresses);
    // Lets functions that run on this node find an object: here.object<T>(name). Not owned: it must outlive the node, or be
    // taken back. Functions that use it run while others do: it guards itself. invalid: there is another one of that name.
    template <typename T>
    void share(const std::string& name, T& object) {
        share(name, &object, detail::shared_type<T>());
    }
    void unshare(const std::string& name);
    // The functions of this program.
    ROVE_GIVES_VECTOR [[nodiscard]] static std::vector<FunctionDescription> functions();
    // Does what there is to do and returns how many frames it handled; waits up to `wait` for the first (negative: for ever). Where
    // another thread does that already it waits for as long, or until that one has brought what some thread waits for.
    unsigned poll(std::chrono::milliseconds wait = std::chrono::milliseconds(0));
    // Ends a poll() that waits, from any thread or a signal handler's; where none does, the next one does not wait.
    void wake() noexcept;

    [[nodiscard]] const std::string& address() const;  // with the real port; empty for a client
    [[nodiscard]] NodeId id() const;
    [[nodiscard]] std::uint32_t node_count() const;

private:
    friend struct detail::Edge;
    explicit Node(std::shared_ptr<NodeCore> core) noexcept : core_(std::move(core)) {}
    void share(const std::string& name, void* object, const char* type);
    std::shared_ptr<NodeCore> core_;
};

}  // namespace rove
