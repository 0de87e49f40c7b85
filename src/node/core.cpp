// A node's life: how it starts, meets others and loses them. Its end is in ending.cpp.
#include "node/core.hpp"

#include <sodium.h>
#include <unistd.h>

#include <algorithm>

#include "base/fork.hpp"
#include "base/log.hpp"
#include "base/own_code_pages.hpp"
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

Result<std::unique_ptr<fabric::Fabric>> open_fabric(FabricChoice choice) {
    if (choice == FabricChoice::ucx) return fabric::open_ucx_fabric({});
    return fabric::open_local_fabric({.direct = choice != FabricChoice::tcp, .stream = choice != FabricChoice::shm});
}

bool prepare_libsodium() {
    const NoForkMeanwhile whole;  // it has a lock
    return sodium_init() >= 0;
}

}  // namespace

// Each part is given references to those that it uses, some of which are made after it: none is used before all are made.
NodeCore::NodeCore(NodeOptions options, std::unique_ptr<fabric::Fabric> fabric)
    : options_(std::move(options)),
      fabric_(std::move(fabric)),
      memory_(options_.buffer_bytes_max),
      lead_(turns_),
      own_threads_(lead_, name_),
      runner_({.node = *this,
               .options = options_,
               .lead = lead_,
               .duties = turns_,
               .own_threads = own_threads_,
               .cache = cache_}),
      local_(lead_, name_),
      peers_({.lead = lead_,
              .routes = routes_,
              .absent = absent_,
              .sender = sender_,
              .link_ends = link_ends_,
              .name = name_}),
      sender_({.peers = peers_.all(),
               .routes = routes_,
               .absent = absent_,
               .complaints = complaints_,
               .name = name_,
               .wake = [this]() REQUIRES(lock_of<NodeLock>) { lead_.wake(); }}),
      exchange_({.options = options_,
                 .cache = cache_,
                 .peers = peers_.all(),
                 .routes = routes_,
                 .sender = sender_,
                 .complaints = complaints_,
                 .own_functions = own_functions_,
                 .local_parked = local_.parked_place(),
                 .name = name_}),
      rooms_(lead_, runner_, name_),
      own_calls_({.options = options_,
                  .lead = lead_,
                  .duties = turns_,
                  .runner = runner_,
                  .sender = sender_,
                  .routes = routes_,
                  .fabric = fabric_,
                  .peers = peers_.all(),
                  .spare_memory = spare_memory_,
                  .name = name_,
                  .call_back = [this](const Run& run, const CallSlot::Notify& notify) { call_back(run, notify); },
                  .free_memory =
                      [this](PeerState& peer, Bytes place) {
                          node_lock_is_held();
                          caller_.free_memory(peer, place);
                      }},
                 randombytes_random()),
      answers_({.lead = lead_,
                .runner = runner_,
                .rooms = rooms_,
                .sender = sender_,
                .routes = routes_,
                .own_calls = own_calls_,
                .complaints = complaints_,
                .name = name_}),
      checks_(options_, routes_),
      payload_parts_(peers_.all(), spare_memory_, name_),
      link_ends_({.lead = lead_,
                  .runner = runner_,
                  .housekeeping = housekeeping_,
                  .routes = routes_,
                  .absent = absent_,
                  .checks = checks_,
                  .answers = answers_,
                  .own_calls = own_calls_,
                  .exchange = exchange_,
                  .payload_parts = payload_parts_,
                  .memory = memory_,
                  .complaints = complaints_,
                  .name = name_}),
      finder_(
          {.options = options_, .cache = cache_, .own_functions = own_functions_, .sender = sender_, .name = name_}),
      gatherings_({.node = *this,
                   .options = options_,
                   .cache = cache_,
                   .lead = lead_,
                   .runner = runner_,
                   .own_threads = own_threads_,
                   .checks = checks_,
                   .answers = answers_,
                   .payload_parts = payload_parts_,
                   .housekeeping = housekeeping_,
                   .run = [this](Run& run, rove_here& here) { dispatcher_.run_here(run, here, {}); },
                   .others_wait =
                       [this](const PeerState& read, TimePoint now) {
                           node_lock_is_held();
                           return turns_.others_wait(read, now);
                       }}),
      dispatcher_({.node = *this,
                   .options = options_,
                   .cache = cache_,
                   .lead = lead_,
                   .runner = runner_,
                   .own_threads = own_threads_,
                   .peers = peers_.all(),
                   .local = local_,
                   .sender = sender_,
                   .exchange = exchange_,
                   .checks = checks_,
                   .functions = finder_,
                   .own_calls = own_calls_,
                   .answers = answers_,
                   .payload_parts = payload_parts_,
                   .gatherings = gatherings_,
                   .link_ends = link_ends_,
                   .keep_thread = [this](rove_here* here) { keep_thread(here); },
                   .name = name_}),
      turns_({.lead = lead_,
              .runner = runner_,
              .peers = peers_,
              .link_ends = link_ends_,
              .dispatcher = dispatcher_,
              .local = local_,
              .own_calls = own_calls_,
              .rooms = rooms_,
              .payload_parts = payload_parts_,
              .absent = absent_,
              .housekeeping = housekeeping_,
              .memory = memory_,
              .fabric = fabric_,
              .spare_memory = spare_memory_}),
      caller_({.lead = lead_,
               .runner = runner_,
               .routes = routes_,
               .peers = peers_,
               .link_ends = link_ends_,
               .rooms = rooms_,
               .sender = sender_,
               .exchange = exchange_,
               .own_functions = own_functions_,
               .own_calls = own_calls_,
               .local = local_,
               .cache = cache_,
               .spare_memory = spare_memory_,
               .free_memory = built_ins().free,
               .meet = [this](const std::string& at, const std::shared_ptr<PeerState>& peer,
                              Deadline deadline) { return control_->connect(at, peer, deadline); },
               .name = name_}),
      functions_(lead_, cache_),
      locked_fabric_(lead_, fabric_) {
    options_.grace = std::min(options_.grace, kOptionTimeMax);
    options_.connect_timeout = std::min(options_.connect_timeout, kOptionTimeMax);
}

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
    if (options_.host_object != nullptr) code::leave_code_in_place();  // as Node::share()
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
    ROVE_TRY(control_, control::Control::create({.options = options_,
                                                 .routes = routes_,
                                                 .peers = peers_,
                                                 .fabric = locked_fabric_,
                                                 .functions = functions_,
                                                 .name = name_,
                                                 .every_second = [this] { warn_of_deadlocks(); }}));
    ROVE_TRY(address_, control_->listen(options_.listen));
    code::CodeOptions code;
    code.node = options_.listen.empty() ? "this client" : "the node at " + address_;
    code.host_symbols = host_symbols();
    code.forms = options_.forms;
    code.code_bytes_max = options_.code_bytes_max;
    code.packages_max = options_.packages_max;
    code.on_ready = [this](const Digest&) { lead_.wakes().wake_unlocked(); };
    cache_ = std::make_unique<code::CodeCache>(std::move(code));
    if (!options_.listen.empty()) {
        cache_->warm_up();
        detail::read_own_code();
    }
    ROVE_CHECK(functions_.preload(options_.packages));
    if (!options_.listen.empty()) control_->accept();
    // The lead is taken before others are met: they may call at once.
    // Beside the threads for functions that run long there are one that serves the mailboxes, one that watches it, and one that
    // stands by and runs no function; with one thread each function runs to its end.
    if (options_.own_thread) {
        Hold hold(*this);
        ROVE_CHECK(own_threads_.start(options_.threads < 2 ? 1 : options_.threads + 2));
    }
    if (!options_.join.empty()) return control_->join(options_.join);
    if (!options_.listen.empty()) routes_.set_identity(0, 1);
    control_->identity_known();
    return {};
}

Result<std::shared_ptr<PeerState>> NodeCore::connect(std::string_view address) {
    if (std::shared_ptr<PeerState> peer = peers_.linked_at(address)) return peer;
    return control_->connect(std::string(address), nullptr);
}

void NodeCore::outlive_node(std::shared_ptr<NodeCore> self) {
    const Hold hold(*this);
    own_calls_.outlive_node(std::move(self));
}

unsigned NodeCore::poll(std::chrono::milliseconds wait) {
    Hold hold(*this);
    return runner_.poll(hold.lock(), wait);
}

void NodeCore::drive(const std::function<bool()>& done, Deadline deadline) {
    Hold hold(*this);
    (void)runner_.wait_until(hold.lock(), deadline, done);
}

void NodeCore::hand_over_here() {
    const Hold hold(*this);
    runner_.hand_over_here();
}

void NodeCore::wake() noexcept {
    lead_.wakes().interrupt();
}

}  // namespace rove
