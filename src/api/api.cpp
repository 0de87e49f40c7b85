// The public C++ edge: Results become exceptions here, and nowhere else.
#include "api/access.hpp"
#include "base/log.hpp"
#include "node/core.hpp"
#include "package/package.hpp"
#include "program/callables.hpp"
#include "rove/node.hpp"
#include "rove/peer_group.hpp"
#include "wire/lists.hpp"

namespace rove {

std::string_view to_string(RanAs ran) noexcept {
    switch (ran) {
        case RanAs::resident: return "resident";
        case RanAs::image: return "image";
        case RanAs::bitcode: return "bitcode";
    }
    return "unknown";
}

static_assert(ROVE_MESSAGE_BYTES_MAX == wire::kMessageBytesMax);

namespace {
NodeCore& usable(const std::shared_ptr<NodeCore>& core) {
    return detail::usable(core.get());
}
[[gnu::always_inline]] inline Engine& usable(const std::shared_ptr<NodeCore>& core,
                                             const std::shared_ptr<PeerState>& peer) {
    return detail::usable(core.get(), peer.get());
}
[[noreturn, gnu::noinline]] void throw_moved_package() {
    throw Error(ErrorCode::invalid, "this Package or Entry was moved from: use the one that it was moved to");
}
// The store of a package or an entry. Throws if that was moved from.
PackageStore& present(const std::shared_ptr<PackageStore>& store) {
    if (!store) throw_moved_package();
    return *store;
}
[[gnu::always_inline]] inline Callee callee_of(const std::shared_ptr<PackageStore>& package, std::size_t entry) {
    return {
        .id = &present(package).function_ids()[entry], .package = &package, .name = package->manifest().entries[entry]};
}
Within left_of(const Deadline& deadline) {
    return {deadline ? detail::ns_of(*deadline - Clock::now()) : detail::kForever};
}
// For what a shut down node still answers, and an inherited one does not.
NodeCore& own(NodeCore* core) {
    if (detail::present(core).is_inherited()) detail::throw_error(core->why_unusable());
    return *core;
}
NodeCore& own(const std::shared_ptr<NodeCore>& core) {
    return own(core.get());
}
// What the peer's engine knows of it.
Peers& peers_of(const std::shared_ptr<NodeCore>& core, const std::shared_ptr<PeerState>& peer) {
    (void)own(core);
    return peer->engine->peers();
}
// For calls in flight: results that arrived before the node was shut down can be taken afterwards.
OwnCalls& calls_of(Engine* engine) {
    if (engine == nullptr) throw Error(ErrorCode::invalid, "the call's result was taken already");
    if (engine->is_inherited()) detail::throw_error(engine->node().why_unusable());
    return engine->own_calls();
}
}  // namespace

// ---- Package, Entry

Package Package::open(const std::filesystem::path& path) {
    return Package(value_or_throw(PackageStore::open(path)));
}
Package Package::parse(std::span<const std::byte> file) {
    return Package(value_or_throw(PackageStore::parse(file)));
}
const std::string& Package::name() const {
    return present(store_).manifest().name;
}
std::string Package::digest() const {
    return present(store_).digest().hex();
}
bool Package::is_interface() const {
    return present(store_).manifest().interface;
}
const std::vector<std::string>& Package::entries() const {
    return present(store_).manifest().entries;
}
Entry Package::entry(std::string_view name) const {
    return {store_, value_or_throw(present(store_).entry(name))};
}

const std::string& Entry::name() const {
    return present(package_).manifest().entries[index_];
}
std::string Entry::id() const {
    return present(package_).function_ids()[index_].hex();
}

// ---- RawCall

RawCall& RawCall::operator=(RawCall&& other) noexcept {
    if (this == &other) return *this;
    forget();
    engine_ = std::exchange(other.engine_, nullptr);
    slot_ = other.slot_;
    generation_ = other.generation_;
    return *this;
}

RawCall::~RawCall() {
    forget();
}

void RawCall::forget() noexcept {
    Engine* engine = std::exchange(engine_, nullptr);
    if (engine != nullptr && !engine->is_inherited()) engine->own_calls().forget({slot_, generation_});
}

bool RawCall::done() {
    return calls_of(engine_).test({slot_, generation_});
}

bool RawCall::wait_for(std::chrono::milliseconds timeout) {
    return calls_of(engine_).wait({slot_, generation_}, deadline_of(detail::ns_of(timeout)));
}

Reply RawCall::reply() {
    OwnCalls& calls = calls_of(engine_);
    engine_ = nullptr;
    CallEnd end = value_or_throw(calls.finish({slot_, generation_}));
    if (end.large.size() > 0) end.data.assign(end.large.bytes().begin(), end.large.bytes().end());
    return {std::move(end.data), end.node, end.ran, end.hops};
}

std::vector<std::byte> RawCall::get() {
    return reply().data;
}

std::size_t RawCall::get_into(std::span<std::byte> into) {
    OwnCalls& calls = calls_of(engine_);
    engine_ = nullptr;
    return value_or_throw(calls.finish_into({slot_, generation_}, into));
}

// ---- CallFrame

CallFrame::CallFrame(CallFrame&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)),
      peer_(other.peer_),
      link_(std::move(other.link_)),
      place_(std::exchange(other.place_, {})),
      handle_(other.handle_),
      deadline_(other.deadline_),
      through_(std::move(other.through_)),
      entry_(std::move(other.entry_)),
      aside_(std::move(other.aside_)) {}

CallFrame::~CallFrame() {
    if (engine_ == nullptr || !link_) return;
    if (engine_->is_inherited())
        (void)new std::shared_ptr<void>(std::move(link_));  // the parent's link: it is not ended here
    else
        engine_->caller().drop_begun(*peer_, std::move(link_));
}

RawCall CallFrame::call() {
    if (engine_ == nullptr) throw Error(ErrorCode::invalid, "the frame was sent already");
    Engine* engine = &detail::usable(*engine_);  // where it is not, the frame is still to be dropped
    engine_ = nullptr;
    if (!link_) return through_->limited(left_of(deadline_)).call(*entry_, place_);
    const CallId id =
        value_or_throw(engine->caller().post_begun(*peer_, {std::move(link_), place_, handle_}, true, deadline_));
    return {engine, id.slot, id.generation};
}

void CallFrame::post() {
    if (engine_ == nullptr) throw Error(ErrorCode::invalid, "the frame was sent already");
    Engine* engine = &detail::usable(*engine_);  // where it is not, the frame is still to be dropped
    engine_ = nullptr;
    if (!link_) return through_->limited(left_of(deadline_)).post(*entry_, place_);
    (void)value_or_throw(engine->caller().post_begun(*peer_, {std::move(link_), place_, handle_}, false, deadline_));
}

// ---- Batch

struct Batch::Gathered {
    std::shared_ptr<NodeCore> core;
    std::shared_ptr<PeerState> peer;
    Entry entry;
    std::size_t payload_bytes;
    detail::Limits limits;  // for each frame
    std::vector<std::byte> bytes;
    std::size_t used = 0;
};

namespace {
// The bytes of payloads that share a frame: enough that the frame itself costs little beside them, and less than a bank of the ring.
constexpr std::size_t kBatchBytes = 2048 - wire::kHeaderBytes;
}  // namespace

Batch::Batch(std::unique_ptr<Gathered> gathered) : gathered_(std::move(gathered)) {}
Batch::Batch(Batch&&) noexcept = default;

Batch::~Batch() {
    try {
        if (gathered_ && gathered_->peer->engine->is_usable()) post();
    } catch (const std::exception& error) {  // an Error, or memory has run out
        log().warn("the posts of a batch were dropped: {}", error.what());
    }
}

// The state of a batch. Throws if the batch was moved from.
template <typename Gathered>
static Gathered& present(const std::unique_ptr<Gathered>& gathered) {
    if (!gathered) throw Error(ErrorCode::invalid, "this Batch was moved from: use the one that it was moved to");
    return *gathered;
}

std::span<std::byte> Batch::add() {
    Gathered& g = present(gathered_);
    const std::size_t stride = wire::batch_stride(g.payload_bytes);
    if (g.used + stride > g.bytes.size()) post();
    const std::span<std::byte> room(g.bytes.data() + g.used, g.payload_bytes);
    g.used += stride;
    return room;
}

void Batch::post() {
    Gathered& g = present(gathered_);
    const Bytes payload = Bytes(g.bytes).first(std::exchange(g.used, 0));
    if (!payload.empty())
        value_or_throw(usable(g.core, g.peer)
                           .caller()
                           .post_batch(g.peer,
                                       detail::outgoing_within(g.limits, callee_of(g.entry.package_, g.entry.index_),
                                                               payload, /*wants_reply=*/false, g.entry.sending_),
                                       g.payload_bytes));
}

// ---- Peer

CallFrame Peer::begin(const Entry& entry, std::size_t payload_bytes) const {
    Engine& engine = usable(core_, state_);
    CallFrame frame(&engine, state_.get());
    const Outgoing outgoing = detail::outgoing_within(limits_, callee_of(entry.package_, entry.index_), {},
                                                      /*wants_reply=*/false, entry.sending_);
    frame.deadline_ = outgoing.deadline;
    BegunFrame begun = value_or_throw(engine.caller().begin(state_, outgoing, payload_bytes));
    frame.link_ = std::move(begun.link);
    frame.place_ = begun.place;
    frame.handle_ = begun.handle;
    if (!frame.link_) {
        frame.through_ = std::make_shared<Peer>(*this);
        frame.entry_ = entry;
        frame.aside_ = std::make_unique<std::byte[]>(payload_bytes);
        frame.place_ = {frame.aside_.get(), payload_bytes};
    }
    return frame;
}

Batch Peer::batch(const Entry& entry, std::size_t payload_bytes) const {
    (void)detail::present(core_.get());
    if (payload_bytes > wire::kPayloadBytesMax)
        throw Error(ErrorCode::invalid, "a payload of " + std::to_string(payload_bytes) + " bytes is over the limit");
    const std::size_t room = std::max(kBatchBytes, wire::batch_stride(payload_bytes));
    return Batch(std::unique_ptr<Batch::Gathered>(
        new Batch::Gathered{core_, state_, entry, payload_bytes, limits_, std::vector<std::byte>(room)}));
}

RawCall Peer::ping(std::span<const std::byte> payload) const {
    const CallId id =
        value_or_throw(usable(core_, state_).caller().ping(state_, payload, true, deadline_of(limits_.time_ns)));
    return {state_->engine, id.slot, id.generation};
}

void Peer::deliver(std::span<const std::byte> payload) const {
    (void)value_or_throw(usable(core_, state_).caller().ping(state_, payload, false, deadline_of(limits_.time_ns)));
}

RawCall Peer::call(const Entry& entry, std::span<const std::byte> payload) const {
    const CallId id =
        value_or_throw(usable(core_, state_)
                           .caller()
                           .call(state_, detail::outgoing_within(limits_, callee_of(entry.package_, entry.index_),
                                                                 payload, /*wants_reply=*/true, entry.sending_)));
    return {state_->engine, id.slot, id.generation};
}

void Peer::post(const Entry& entry, std::span<const std::byte> payload) const {
    (void)value_or_throw(usable(core_, state_)
                             .caller()
                             .call(state_, detail::outgoing_within(limits_, callee_of(entry.package_, entry.index_),
                                                                   payload, /*wants_reply=*/false, entry.sending_)));
}

LoadReport Peer::load(const Package& package) const {
    (void)present(package.store_);
    const CallId id =
        value_or_throw(usable(core_, state_).caller().load(state_, package.store_, deadline_of(limits_.time_ns)));
    const std::vector<std::byte> lines = RawCall(state_->engine, id.slot, id.generation).get();
    wire::LoadedNames names = wire::loaded_names(as_text(lines));
    return {std::move(names.replaced), std::move(names.kept)};
}

NodeId Peer::node() const {
    return peers_of(core_, state_).id_of(*state_);
}
std::string Peer::address() const {
    return peers_of(core_, state_).describe(*state_).address;
}
std::string Peer::lane() const {
    return std::string(fabric::name_of(peers_of(core_, state_).lane_of(*state_)));
}
std::uint32_t Peer::node_count() const {
    return peers_of(core_, state_).describe(*state_).node_count;
}
Peer::Counters Peer::counters() const {
    return peers_of(core_, state_).counters(*state_);
}
std::size_t Peer::payload_bytes_max() noexcept {
    return wire::kPayloadBytesMax;
}
std::size_t Peer::message_bytes_max() noexcept {
    return wire::kMessageBytesMax;
}
NodeDescription Peer::description() const {
    return peers_of(core_, state_).describe(*state_);
}

// ---- Node

Node::Node(NodeOptions options) : core_(value_or_throw(NodeCore::create(std::move(options)))) {}

Node::~Node() {
    if (!core_ || core_->is_inherited()) return;
    core_->shut_down();
    core_->outlive_node(core_);
}

Peer Node::connect(std::string_view address) {
    return {core_, value_or_throw(usable(core_).connect(address))};
}
void Node::share(const std::string& name, void* object, const char* type) {
    value_or_throw(usable(core_).objects().share(name, object, type));
    // Values that functions put into the object may point to their code (a control block, a vtable), and live for as long as the program likes.
    code::leave_code_in_place();
}
void Node::unshare(const std::string& name) {
    own(core_).objects().unshare(name);
}
unsigned Node::poll(std::chrono::milliseconds wait) {
    const std::shared_ptr<NodeCore> core = core_;  // a callback may end the node
    return usable(core).poll(wait);
}
void Node::wake() noexcept {
    if (core_ && core_->is_usable()) core_->interrupt();
}
const std::string& Node::address() const {
    return detail::present(core_.get()).address();
}
NodeId Node::id() const {
    return detail::present(core_.get()).id();
}
std::uint32_t Node::node_count() const {
    return detail::present(core_.get()).node_count();
}

}  // namespace rove
