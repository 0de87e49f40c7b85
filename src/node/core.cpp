// A node's life: how it is put together, starts and ends. lifetime.cpp decides whether it may be used.
#include "node/core.hpp"

#include <sodium.h>
#include <unistd.h>

#include <algorithm>

#include "base/descriptor.hpp"
#include "base/fork.hpp"
#include "base/log.hpp"
#include "base/own_code_pages.hpp"
#include "code/own_code.hpp"
#include "control/control.hpp"
#include "fabric/local.hpp"
#include "fabric/ucx/ucx_fabric.hpp"
#include "node/built_ins.hpp"
#include "node/host_symbols.hpp"
#include "node/options.hpp"
#include "peer/names.hpp"
#include "program/callables.hpp"

namespace rove {

namespace {

// How long a thread that polls several engines waits for each before it serves the others again.
constexpr auto kPollSlice = std::chrono::milliseconds(1);

Result<std::unique_ptr<fabric::Fabric>> open_fabric(FabricChoice choice) {
    if (choice == FabricChoice::ucx) return fabric::open_ucx_fabric({});
    return fabric::open_local_fabric({.direct = choice != FabricChoice::tcp, .stream = choice != FabricChoice::shm});
}

bool prepare_libsodium() {
    const NoForkMeanwhile whole;  // it has a lock
    return sodium_init() >= 0;
}

}  // namespace

NodeCore::NodeCore(NodeOptions options, std::size_t engines)
    : options_(std::move(options)),
      shared_(static_cast<unsigned>(engines), options_.buffer_bytes_max),
      engines_(make_engines(engines)) {
    options_.grace = std::min(options_.grace, kOptionTimeMax);
    options_.connect_timeout = std::min(options_.connect_timeout, kOptionTimeMax);
}

std::vector<std::unique_ptr<Engine>> NodeCore::make_engines(std::size_t count) {
    std::vector<std::unique_ptr<Engine>> made;
    while (made.size() < count)
        made.push_back(std::make_unique<Engine>(
            Engine::Beside{.node = *this,
                           .options = options_,
                           .cache = cache_,
                           .shared = shared_,
                           .index = static_cast<unsigned>(made.size()),
                           .free_memory = built_ins().free,
                           .meet = [this](const std::string& at, const std::shared_ptr<PeerState>& peer,
                                          Deadline deadline) { return control_->connect(at, peer, deadline); },
                           .name = name_}));
    return made;
}

Result<std::shared_ptr<NodeCore>> NodeCore::create(NodeOptions options) {
    Fabrics named(engines_of(options));
    return create(std::move(options), std::move(named));
}

Result<std::shared_ptr<NodeCore>> NodeCore::create(NodeOptions options, Fabrics fabrics) {
    fill_standard_descriptors();
    if (!prepare_libsodium()) return fail(ErrorCode::internal, "libsodium cannot find a source of random numbers");
    (void)built_ins();  // enrols what is built in
    std::shared_ptr<NodeCore> core(new NodeCore(std::move(options), fabrics.size()), Delete());
    remember(core);
    if (const Status started = core->start(std::move(fabrics)); !started) {
        core->shut_down();
        return tl::unexpected<Error>(started.error());
    }
    return core;
}

NodeCore::~NodeCore() {
    control_.reset();                                                  // before the fabric, whose links it may have
    if (options_.host_object != nullptr) code::leave_code_in_place();  // as Node::share()
}

std::string NodeCore::name() const {
    return options_.listen.empty() ? std::string("this client") : fmt::format("node {}", id());
}

Status NodeCore::start(Fabrics fabrics) {
    ROVE_CHECK(check_options(options_));
    log().set_level(spdlog::level::from_str(options_.log));
    touch_own_code_pages();
    if (!options_.listen.empty()) code::prepare_process();
    for (std::size_t i = 0; i < engines_.size(); ++i) {
        if (!fabrics[i]) {
            ROVE_TRY(fabrics[i], open_fabric(options_.fabric));
        }
        ROVE_CHECK(engines_[i]->open(std::move(fabrics[i])));
    }
    ROVE_TRY(control_, control::Control::create({.options = options_,
                                                 .ids = shared_.ids,
                                                 .engines = choice_,
                                                 .functions = functions_,
                                                 .name = name_,
                                                 .every_second = [this] {
                                                     for (const auto& each : engines_) each->each_second();
                                                 }}));
    ROVE_TRY(address_, control_->listen(options_.listen));
    code::CodeOptions code;
    code.node = options_.listen.empty() ? "this client" : "the node at " + address_;
    code.host_symbols = host_symbols();
    code.forms = options_.forms;
    code.code_bytes_max = options_.code_bytes_max;
    code.packages_max = options_.packages_max;
    code.on_ready = [this](const Digest&) {
        for (const auto& each : engines_) each->code_is_ready();
    };
    cache_ = std::make_unique<code::CodeCache>(std::move(code));
    for (const auto& each : engines_) each->use_code();
    if (!options_.listen.empty()) {
        cache_->warm_up();
        detail::read_own_code();
    }
    ROVE_CHECK(functions_.preload(options_.packages));
    if (!options_.listen.empty()) control_->accept();
    // The lead is taken before others are met: they may call at once.
    // Beside the threads for functions that run long there are one that serves the mailboxes, one that watches it, and one that
    // stands by and runs no function; with one thread each function runs to its end.
    if (options_.own_thread)
        for (const auto& each : engines_)
            ROVE_CHECK(each->start_threads(options_.threads < 2 ? 1 : options_.threads + 2));
    if (!options_.join.empty()) return control_->join(options_.join);
    if (!options_.listen.empty()) shared_.ids.set_identity(0, 1);
    control_->identity_known();
    return {};
}

Result<std::shared_ptr<PeerState>> NodeCore::connect(std::string_view address) {
    for (const auto& each : engines_)
        if (std::shared_ptr<PeerState> peer = each->peers().linked_at(address)) return peer;
    return control_->connect(std::string(address), nullptr);
}

Result<std::shared_ptr<PeerState>> NodeCore::linked(NodeId to) {
    Result<std::shared_ptr<PeerState>> found = first_engine().peers().linked(to);
    for (std::size_t i = 1; !found && i < engines_.size(); ++i) found = engines_[i]->peers().linked(to);
    return found;
}

Engine& NodeCore::engine_towards(NodeId to, Engine& here) {
    if (engines_.size() == 1 || to == id()) return here;
    const auto linked = shared_.between.with_link(to);
    return linked ? *engines_[*linked] : here;
}

Engine& NodeCore::engine_to_answer(const wire::CallContext& call, Engine& here) {
    if (engines_.size() == 1) return here;
    const auto engine =
        call.node == id() ? shared_.between.with_call(call.generation) : here.routes().with_way(call.node);
    return engine ? *engines_[*engine] : here;
}

// Several engines are served in turns: a thread leads one at a time.
unsigned NodeCore::poll(std::chrono::milliseconds wait) {
    if (engines_.size() == 1) return first_engine().poll(wait);
    const Deadline until = wait.count() < 0 ? std::nullopt : deadline_of(detail::ns_of(wait));
    unsigned handled = 0;
    for (auto slice = std::chrono::milliseconds(0);; slice = kPollSlice) {
        for (const auto& each : engines_) handled += each->poll(handled > 0 ? std::chrono::milliseconds(0) : slice);
        if (handled > 0 || polls_interrupted_.exchange(false) || (until && Clock::now() >= *until)) return handled;
    }
}

void NodeCore::interrupt() noexcept {
    polls_interrupted_ = true;
    for (const auto& each : engines_) each->interrupt();
}

bool NodeCore::knows_owner(NodeId owner) const {
    return std::ranges::any_of(engines_, [owner](const auto& each) { return each->peers().knows_owner(owner); });
}

bool NodeCore::reaches(NodeId node, std::string_view address) const {
    return std::ranges::any_of(engines_, [&](const auto& each) { return each->peers().reaches(node, address); });
}

void NodeCore::outlive_node(const std::shared_ptr<NodeCore>& self) {
    for (const auto& each : engines_) {
        const Hold hold(each->lock());
        each->own_calls().outlive_node(self);
    }
}

void NodeCore::shut_down() {
    if (shut_down_.exchange(true)) return;
    if (control_) control_->stop_accepting();  // nobody new is met
    if (!Engine::end_all(engines_)) {
        is_abandoned_ = true;
        abandoned_ = weak_from_this().lock();  // null where it is being freed: Delete leaves it alone
    }
    if (control_) control_->stop();
    if (cache_) cache_->stop();  // without the lock: its workers answer loads
    code::wait_until_open();     // the process may end next
    for (const auto& each : engines_) each->drop_links();
}

}  // namespace rove
