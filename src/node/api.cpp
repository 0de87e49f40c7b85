// The public C++ edge: Results become exceptions here, and nowhere else.
#include "node/core.hpp"
#include "package/package.hpp"
#include "rove/rove.hpp"

namespace rove {

std::string_view to_string(RanAs ran) noexcept {
    switch (ran) {
        case RanAs::resident: return "resident";
        case RanAs::image: return "image";
        case RanAs::bitcode: return "bitcode";
    }
    return "unknown";
}

// ---- Package, Entry

Package Package::open(const std::filesystem::path& path) {
    return Package(value_or_throw(PackageStore::open(path)));
}
Package Package::parse(std::span<const std::byte> file) {
    return Package(value_or_throw(PackageStore::parse(file)));
}
const std::string& Package::name() const {
    return store_->manifest().name;
}
std::string Package::digest() const {
    return store_->digest().hex();
}
bool Package::is_interface() const {
    return store_->manifest().interface;
}
const std::vector<std::string>& Package::entries() const {
    return store_->manifest().entries;
}
Entry Package::entry(std::string_view name) const {
    return {store_, value_or_throw(store_->entry(name))};
}

const std::string& Entry::name() const {
    return package_->manifest().entries[index_];
}
std::string Entry::id() const {
    return package_->function_ids()[index_].hex();
}

// ---- Call

Call& Call::operator=(Call&& other) noexcept {
    if (this == &other) return *this;
    forget();
    core_ = std::move(other.core_);
    slot_ = other.slot_;
    generation_ = other.generation_;
    return *this;
}

Call::~Call() {
    forget();
}

void Call::forget() noexcept {
    if (core_) core_->forget({slot_, generation_});
    core_.reset();
}

bool Call::done() {
    if (!core_) throw Error(ErrorCode::invalid, "the call's result was taken already");
    return core_->test({slot_, generation_});
}

bool Call::wait_for(std::chrono::milliseconds timeout) {
    if (!core_) throw Error(ErrorCode::invalid, "the call's result was taken already");
    return core_->wait({slot_, generation_}, Clock::now() + timeout);
}

Reply Call::reply() {
    if (!core_) throw Error(ErrorCode::invalid, "the call's result was taken already");
    const std::shared_ptr<NodeCore> core = std::move(core_);
    CallEnd end = value_or_throw(core->finish({slot_, generation_}));
    return {std::move(end.data), end.node, static_cast<RanAs>(end.ran), end.hops};
}

std::vector<std::byte> Call::get() {
    return reply().data;
}

std::size_t Call::get_into(std::span<std::byte> into) {
    if (!core_) throw Error(ErrorCode::invalid, "the call's result was taken already");
    const std::shared_ptr<NodeCore> core = std::move(core_);
    return value_or_throw(core->finish_into({slot_, generation_}, into));
}

// ---- Peer

Call Peer::call(const Entry& entry, std::span<const std::byte> payload) const {
    const CallTable::Id id = value_or_throw(core_->call(state_, {entry.package_, entry.index_, payload, true}));
    return {core_, id.slot, id.generation};
}

void Peer::post(const Entry& entry, std::span<const std::byte> payload) const {
    (void)value_or_throw(core_->call(state_, {entry.package_, entry.index_, payload, false}));
}

LoadReport Peer::load(const Package& package) const {
    const CallTable::Id id = value_or_throw(core_->load(state_, package.store_));
    const std::vector<std::byte> lines = Call(core_, id.slot, id.generation).get();
    LoadReport report;
    std::string_view rest = as_text(lines);
    for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
        report.replaced.emplace_back(rest.substr(0, end));
        rest.remove_prefix(end + 1);
    }
    return report;
}

NodeId Peer::node() const {
    return state_->id;
}
const std::string& Peer::address() const {
    return state_->address;
}
std::string Peer::lane() const {
    return state_->lane;
}
std::uint32_t Peer::node_count() const {
    return state_->node_count;
}
Peer::Counters Peer::counters() const {
    return core_->counters(*state_);
}
std::size_t Peer::payload_bytes_max() noexcept {
    return wire::kPayloadBytesMax;
}

// ---- Node

Node::Node(NodeOptions options) : core_(value_or_throw(NodeCore::create(std::move(options)))) {}

Node::~Node() {
    if (core_) core_->shut_down();
}

Peer Node::connect(std::string_view address) {
    return {core_, value_or_throw(core_->connect(address))};
}
unsigned Node::poll(std::chrono::milliseconds wait) {
    return core_->poll(wait);
}
void Node::wake() noexcept {
    core_->wake();
}
const std::string& Node::address() const {
    return core_->address();
}
NodeId Node::id() const {
    return core_->id();
}
std::uint32_t Node::node_count() const {
    return core_->node_count();
}

}  // namespace rove
