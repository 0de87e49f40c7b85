// How an engine is put together, and what threads of the program ask of it.
#include "engine/engine.hpp"

#include <sodium.h>

#include "engine/mappings.hpp"

namespace rove {

// Each part is given references to those that it uses, some of which are made after it: none is used before all are made.
Engine::Engine(Beside beside)
    : node_(beside.node),
      options_(beside.options),
      name_(std::move(beside.name)),
      between_(beside.shared.between),
      index_(beside.index),
      lead_(turns_),
      own_threads_(lead_, name_),
      runner_({.engine = *this,
               .options = options_,
               .lead = lead_,
               .duties = turns_,
               .own_threads = own_threads_,
               .cache = beside.cache}),
      local_(lead_, name_),
      others_(between_, index_),
      routes_(beside.shared.ids, others_),
      peers_({.engine = *this,
              .lead = lead_,
              .routes = routes_,
              .absent = beside.shared.absent,
              .places = beside.shared.places,
              .sender = sender_,
              .link_ends = link_ends_,
              .name = name_}),
      sender_({.peers = peers_.all(),
               .routes = routes_,
               .others = others_,
               .absent = beside.shared.absent,
               .complaints = beside.shared.complaints,
               .name = name_,
               .wake = [this]() REQUIRES(lock_of<EngineLock>) { lead_.wake(); }}),
      exchange_({.options = options_,
                 .cache = beside.cache,
                 .peers = peers_.all(),
                 .routes = routes_,
                 .others = others_,
                 .sender = sender_,
                 .complaints = beside.shared.complaints,
                 .own_functions = beside.shared.own_functions,
                 .local_parked = local_.parked_place(),
                 .name = name_}),
      rooms_(lead_, runner_, name_),
      own_calls_({.options = options_,
                  .lead = lead_,
                  .duties = turns_,
                  .runner = runner_,
                  .fabric = fabric_,
                  .peers = peers_.all(),
                  .spare_memory = spare_memory_,
                  .name = name_,
                  .call_back = [this](const Run& run, const CallSlot::Notify& notify) { call_back(run, notify); },
                  .free_memory =
                      [this](PeerState& peer, Bytes place) {
                          engine_lock_is_held();
                          caller_.free_memory(peer, place);
                      }},
                 {others_.first_generation(randombytes_random()), others_.generation_step()}),
      replies_(own_calls_, sender_, routes_, others_),
      answers_({.lead = lead_,
                .runner = runner_,
                .rooms = rooms_,
                .sender = sender_,
                .routes = routes_,
                .replies = replies_,
                .complaints = beside.shared.complaints,
                .name = name_}),
      checks_(options_, routes_),
      payload_parts_(peers_.all(), spare_memory_, name_),
      link_ends_({.lead = lead_,
                  .runner = runner_,
                  .housekeeping = housekeeping_,
                  .routes = routes_,
                  .others = others_,
                  .absent = beside.shared.absent,
                  .checks = checks_,
                  .answers = answers_,
                  .own_calls = own_calls_,
                  .replies = replies_,
                  .exchange = exchange_,
                  .payload_parts = payload_parts_,
                  .services = beside.shared.services,
                  .complaints = beside.shared.complaints,
                  .name = name_}),
      left_(others_, sender_, replies_, link_ends_, exchange_),
      finder_({.options = options_,
               .cache = beside.cache,
               .own_functions = beside.shared.own_functions,
               .sender = sender_,
               .name = name_}),
      gatherings_({.engine = *this,
                   .options = options_,
                   .cache = beside.cache,
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
                           engine_lock_is_held();
                           return turns_.others_wait(read, now);
                       }}),
      dispatcher_({.engine = *this,
                   .options = options_,
                   .cache = beside.cache,
                   .lead = lead_,
                   .runner = runner_,
                   .own_threads = own_threads_,
                   .peers = peers_.all(),
                   .local = local_,
                   .sender = sender_,
                   .exchange = exchange_,
                   .checks = checks_,
                   .functions = finder_,
                   .replies = replies_,
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
              .left = left_,
              .own_calls = own_calls_,
              .rooms = rooms_,
              .payload_parts = payload_parts_,
              .absent = beside.shared.absent,
              .housekeeping = housekeeping_,
              .services = beside.shared.services,
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
               .own_functions = beside.shared.own_functions,
               .own_calls = own_calls_,
               .local = local_,
               .cache = beside.cache,
               .spare_memory = spare_memory_,
               .free_memory = beside.free_memory,
               .meet = std::move(beside.meet),
               .name = name_}),
      locked_fabric_(lead_, fabric_) {}

Status Engine::open(std::unique_ptr<fabric::Fabric> fabric) {
    fabric::Fabric& opened = *fabric;
    fabric_ = std::move(fabric);
    between_.wake_by(index_, [this] { lead_.wakes().wake_unlocked(); });
    return lead_.open(opened, options_.waiting, options_.threads);
}

Status Engine::start_threads(unsigned count) {
    const Hold hold(lock());
    return own_threads_.start(count);
}

unsigned Engine::poll(std::chrono::milliseconds wait) {
    Hold hold(lock());
    return runner_.poll(hold.lock(), wait);
}

void Engine::drive(const std::function<bool()>& done, Deadline deadline) {
    Hold hold(lock());
    (void)runner_.wait_until(hold.lock(), deadline, done);
}

// By the control thread, because nobody may lead: all threads may be in functions, and an idle node's leader sleeps without a limit.
void Engine::each_second() {
    for (std::size_t left = kPeersMax; left > 0;) {
        const Hold hold(lock());
        left = turns_.look_at_cold_of_idle(left);
    }
    {
        const Hold hold(lock());
        runner_.code().let_go();
        turns_.look_for_missed();
        warn_of_deadlocks();
    }
    for (std::size_t left = kPeersMax; left > 0;) {
        const Hold hold(lock());
        left = turns_.tend_memory(left);
    }
    const TimePoint now = Clock::now();
    if (spare_memory_->is_due(now)) spare_memory_->trim(now);  // unmapping takes long: without the lock
    locked_fabric_.tidy();
}

void Engine::hand_over_here() {
    const Hold hold(lock());
    runner_.hand_over_here();
}

}  // namespace rove
