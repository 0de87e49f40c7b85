// A node's life: how it starts, meets others and loses them. Its end is in ending.cpp.
#include "node/core.hpp"

#include <sodium.h>
#include <unistd.h>

#include <algorithm>

#include "base/fork.hpp"
#include "base/own_code_pages.hpp"
#include "fabric/local.hpp"
#include "fabric/ucx/ucx_fabric.hpp"
#include "node/built_ins.hpp"
#include "node/control/control.hpp"
#include "node/here.hpp"
#include "node/log.hpp"
#include "node/names.hpp"
#include "node/offload.hpp"
#include "node/options.hpp"

namespace rove {

namespace {

Result<std::unique_ptr<fabric::Fabric>> open_fabric(FabricChoice choice) {
    if (choice == FabricChoice::ucx) return fabric::open_ucx_fabric({});
    return fabric::open_local_fabric({.direct = choice != FabricChoice::tcp, .stream = choice != FabricChoice::shm});
}

bool prepare_libsodium() {
    const NoForkMeanwhile whole;  // it has a lock
    return sodium_init() >= 0;
}

}  // namespace

NodeCore::NodeCore(NodeOptions options, std::unique_ptr<fabric::Fabric> fabric)
    : options_(std::move(options)),
      fabric_(std::move(fabric)),
      spare_memory_(std::make_shared<SpareMemory>()),
      calls_(randombytes_random(), spare_memory_),
      memory_(options_.buffer_bytes_max) {
    options_.grace = std::min(options_.grace, kOptionTimeMax);
    options_.connect_timeout = std::min(options_.connect_timeout, kOptionTimeMax);
}

// Over that fabric; null: over the one that the options name.
Result<std::shared_ptr<NodeCore>> NodeCore::create(NodeOptions options, std::unique_ptr<fabric::Fabric> fabric) {
    if (!prepare_libsodium()) return fail(ErrorCode::internal, "libsodium cannot find a source of random numbers");
    (void)built_ins();  // enrols what is built in
    std::shared_ptr<NodeCore> core(new NodeCore(std::move(options), std::move(fabric)), Delete());
    remember(core);
    if (const Status started = core->start(); !started) {
        core->shut_down();
        return tl::unexpected<Error>(started.error());
    }
    return core;
}

NodeCore::~NodeCore() {
    shut_down();
}

std::string NodeCore::name() const {
    return options_.listen.empty() ? std::string("this client") : fmt::format("node {}", id());
}

Status NodeCore::start() {
    ROVE_CHECK(check_options(options_));
    log().set_level(spdlog::level::from_str(options_.log));
    touch_own_code_pages();
    if (!options_.listen.empty()) code::prepare_process();
    if (!fabric_) {
        ROVE_TRY(fabric_, open_fabric(options_.fabric));
    }
    ROVE_CHECK(lead_.open(*fabric_, options_.waiting, options_.threads));
    ROVE_TRY(control_, control::Control::create(*this));
    ROVE_TRY(address_, control_->listen(options_.listen));
    code::CodeOptions code;
    code.node = options_.listen.empty() ? "this client" : "the node at " + address_;
    code.host_symbols = host_symbols();
    code.forms = options_.forms;
    code.code_bytes_max = options_.code_bytes_max;
    code.packages_max = options_.packages_max;
    code.on_ready = [this](const Digest&) { lead_.wake_unlocked(); };
    cache_ = std::make_unique<code::CodeCache>(std::move(code));
    if (!options_.listen.empty()) {
        cache_->warm_up();
        detail::read_own_code();
    }
    ROVE_CHECK(preload());
    if (!options_.listen.empty()) control_->accept();
    // The lead is taken before others are met: they may call at once.
    // Beside the threads for functions that run long there are one that serves the mailboxes, one that watches it, and one that
    // stands by and runs no function; with one thread each function runs to its end.
    if (options_.own_thread) {
        Hold hold(*this);
        ROVE_CHECK(own_threads_.start(options_.threads < 2 ? 1 : options_.threads + 2));
    }
    if (!options_.join.empty()) return control_->join(options_.join);
    if (!options_.listen.empty()) set_identity(0, 1);
    control_->identity_known();
    return {};
}

Status NodeCore::preload() {
    if (options_.packages.empty()) return {};
    std::error_code error;
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(options_.packages, error))
        if (file.path().extension() == ".rove") files.push_back(file.path());
    if (error)
        return fail(ErrorCode::invalid, "packages directory {}: {}", options_.packages.string(), error.message());
    std::sort(files.begin(), files.end());
    std::vector<std::shared_ptr<PackageStore>> functions;
    for (const auto& file : files) {  // interfaces first: functions link to them
        ROVE_TRY(std::shared_ptr<PackageStore> package, PackageStore::open(file));
        ROVE_TRY(package, cache_->add(package, true));
        if (!package->manifest().interface) {
            functions.push_back(package);
            continue;
        }
        if (const auto loaded = cache_->load_interface(package); !loaded)
            return prefixed(loaded.error(), file.string());
    }
    for (const auto& package : functions)
        if (const Status loaded = cache_->load(package); !loaded)
            return prefixed(loaded.error(), package->manifest().name);
    return {};
}

std::vector<Digest> NodeCore::resident_digests() {
    // At most as many as fit a control message well; for others the code is sent once, which does no harm.
    constexpr std::size_t kMost = 1024;
    std::vector<Digest> digests;
    for (const auto& package : cache_->packages())
        if (digests.size() < kMost) digests.push_back(package->digest());
    return digests;
}

Result<std::unique_ptr<fabric::Link>> NodeCore::open_link() {
    Hold hold(*this);
    return fabric_->open_link();
}

Result<std::unique_ptr<fabric::Link>> NodeCore::open_stream(int socket, const fabric::StreamKeys& keys) {
    Hold hold(*this);
    return fabric_->open_stream(socket, keys);
}

Status NodeCore::connect_link(fabric::Link& link, Bytes offer) {
    Hold hold(*this);
    return link.connect(offer);
}

void NodeCore::drop_link(std::unique_ptr<fabric::Link> link) {
    Hold hold(*this);
    link.reset();
}

Result<NodeCore::Adopted> NodeCore::adopt(Meeting meeting, std::unique_ptr<fabric::Link> opened,
                                          std::shared_ptr<PeerState> old) {
    Hold hold(*this);
    std::unique_ptr<fabric::Link> link = std::move(opened);  // ends under the lock, wherever this ends
    std::shared_ptr<PeerState> peer = std::move(old);
    for (std::size_t i = 0; !peer && meeting.member && i < peers_.size(); ++i)  // a member that came back
        if (peers_[i]->member && peers_[i]->id == meeting.id && !peers_[i]->link) peer = peers_[i];
    if (!peer) peer = std::make_shared<PeerState>(sender_.waiting_bytes());
    const bool is_new = std::find(peers_.begin(), peers_.end(), peer) == peers_.end();
    if (is_new && peers_.size() >= kPeersMax)
        return fail(ErrorCode::overloaded,
                    "{} has {} peers, the most a node has at once; try again when some have left", name(), kPeersMax);
    if (peer->linked() && !meeting.replace) return Adopted{peer, peer->meeting, false};
    if (peer->link && !peer->lost && peer->link->broken() == nullptr)
        peer->lost = Error(ErrorCode::disconnected, "it was met again");
    if (peer->link) clean_up(*peer);
    if (PeerState* const former = meeting.member ? routes_.member(meeting.id) : nullptr) {
        former->lost = Error(ErrorCode::disconnected, "another process took its place");  // before its end was seen
        clean_up(*former);
    }
    peer->id = meeting.id;
    peer->my_id = meeting.my_id;
    peer->member = meeting.member;
    peer->process = meeting.process;
    if (!meeting.address.empty()) peer->address = std::move(meeting.address);
    peer->triple = std::move(meeting.triple);
    peer->node_count = meeting.node_count;
    peer->has_residents = meeting.has_residents;
    peer->features = meeting.features;
    peer->code_sent.insert(meeting.resident.begin(), meeting.resident.end());
    peer->back = routes_.name_for(*peer);
    if (is_new) peers_.push_back(peer);  // before anything points to it, and memory is too short for more
    link->settled();
    peer->lane = link->lane();
    peer->link = std::move(link);
    ++links_version_;
    peer->lost.reset();
    peer->broken_since.reset();
    peer->meeting.store(++meetings_, std::memory_order_relaxed);
    peer->hang_up = std::move(meeting.hang_up);
    try {
        enter(*peer);
        log().info("{}: met {} ({} lane)", name(), who(*peer), peer->lane);
    } catch (const std::bad_alloc&) {
        lose_now(*peer, Error(ErrorCode::overloaded, "no memory"));
        throw;
    }
    lead_.wake();
    return Adopted{peer, peer->meeting, true};
}

// Where others find the peer by its id, and what was kept for it.
void NodeCore::enter(PeerState& peer) {
    routes_.enter(peer);
    if (!peer.member) return;
    AbsentMembers::Met kept_for = absent_.met(peer.id, peer.process);
    peer.sent_on = std::move(kept_for.sent_on);
    for (const ByteBuffer& kept : kept_for.frames) {
        const wire::Frame frame = wire::frame_in(kept);
        sender_.send_or_cut(peer, frame.header, frame.extra, frame.payload);
    }
    end_orphans();
}

bool NodeCore::linked(const PeerState& peer) {
    Hold hold(*this);
    return peer.linked();
}

void NodeCore::lose(const std::shared_ptr<PeerState>& peer, std::uint64_t meeting, Error why) {
    Hold hold(*this);
    if (peer->link && !peer->lost && peer->meeting == meeting) lose_now(*peer, std::move(why));
}

void NodeCore::lose_now(PeerState& peer, Error why) {
    peer.lost = std::move(why);
    housekeeping_due_ = {};
    housekeeping_in_ = 1;
    lead_.wake();
    lead_.tell_waiting();
}

void NodeCore::member_expected(NodeId member, const AbsentMembers::Process& process, const std::string& why) {
    Hold hold(*this);
    // A link that is still there is one that ends: clean_up() says why.
    if (routes_.member(member) == nullptr) absent_.expected(member, process, why);
    end_orphans();
}

void NodeCore::member_gone(NodeId member, const std::string& why) {
    Hold hold(*this);
    absent_.gone(member, why, Clock::now());
    end_orphans();
}

Result<std::shared_ptr<PeerState>> NodeCore::connect(std::string_view address) {
    {
        Hold hold(*this);
        for (const auto& peer : peers_)  // a member's address may be its own word: the control plane knows
            if (peer->address == address && !peer->member && peer->linked()) return peer;
    }
    return control_->connect(std::string(address), nullptr);
}

NodeDescription NodeCore::describe(const PeerState& peer) {
    Hold hold(*this);
    return {peer.id, peer.address, peer.triple, peer.lane, peer.node_count};
}

bool NodeCore::test(CallTable::Id id) {
    if (!options_.own_thread) (void)poll(std::chrono::milliseconds(0));
    Hold hold(*this);
    if (!has_ended(id) && in_user_code_.core == this) look_once(hold.lock());
    return has_ended(id);
}

bool NodeCore::has_ended(CallTable::Id id) {
    const CallSlot* slot = calls_.find(id);
    return slot == nullptr || slot->state == CallSlot::State::ended;
}

void NodeCore::forget(CallTable::Id id) {
    Afterwards afterwards;
    Hold hold(*this);
    free_slot(id, afterwards);
}

void NodeCore::free_slot(CallTable::Id id, Afterwards& afterwards) {
    if (CallSlot* const slot = calls_.find(id)) {
        if (slot->brings_memory) leave_memory(*slot);
        calls_.release(*slot);
    }
    if (self_) afterwards.last = last_use();
    if (spare_memory_->is_over()) afterwards.memory = TrimAtEnd(spare_memory_);
}

std::shared_ptr<NodeCore> NodeCore::last_use() {
    return self_ && calls_.used() == 0 && begun_frames_ == 0 ? std::exchange(self_, nullptr) : nullptr;
}

void NodeCore::outlive_node(std::shared_ptr<NodeCore> self) {
    Hold hold(*this);
    if (calls_.used() > 0 || begun_frames_ > 0) self_ = std::move(self);
}

}  // namespace rove
