// Internal state of an engine for tests, read under its lock.
#pragma once

#include "engine/engine.hpp"

namespace rove {

struct EngineView {
    // Functions that leaders have begun, ever.
    static std::uint64_t runs_begun(const Lead& lead) REQUIRES(lock_of<EngineLock>) { return lead.baton_.runs_; }
    static unsigned quiet_runs(Engine& engine) {
        const Hold hold(engine.lock());
        return engine.own_threads_.quiet().threads();
    }
    // The bytes of payloads that are arriving in parts.
    static std::size_t staged_bytes(Engine& engine) {
        const Hold hold(engine.lock());
        return engine.payload_parts_.bytes();
    }
    // Replies that are kept for members without a link: bytes of results, and errors.
    static std::size_t replies_kept(Engine& engine) {
        const Hold hold(engine.lock());
        return engine.peers_.absent_.kept_bytes() + engine.peers_.absent_.kept_errors();
    }
    // The peer to which frames for that node are sent; null: none.
    static std::shared_ptr<PeerState> on_the_way_to(Engine& engine, NodeId node) {
        const Hold hold(engine.lock());
        PeerState* const peer = engine.peers_.routes_.to(node);
        return peer != nullptr ? peer->shared_from_this() : nullptr;
    }
    // How many of so many waits would let nothing more run on top of them, and how many threads are made for that.
    static std::pair<unsigned, std::size_t> unnested_waits(Engine& engine, unsigned waits) {
        const Hold hold(engine.lock());
        const std::size_t threads = engine.own_threads_.made();
        unsigned unnested = 0;
        for (unsigned i = 0; i < waits; ++i) unnested += engine.own_threads_.stop_nesting() ? 1 : 0;
        engine.own_threads_.nest_again(unnested);
        return {unnested, engine.own_threads_.made() - threads};
    }
    // Waits as a function does for room that becomes free between two looks.
    static void wait_for_what_comes_at_once(Engine& engine) {
        Hold hold(engine.lock());
        int looks = 0;
        (void)engine.runner_.wait_until(hold.lock(), std::nullopt, [&looks] { return ++looks > 1; });
    }
    // Lets the fabric send and receive; nothing is served. True: something has happened.
    static bool progress(Engine& engine) {
        const Hold hold(engine.lock());
        return engine.fabric_->progress() > 0;
    }
    // Carries to the peers' mailboxes what this engine has published and its fabric carries only as its node works: as chaos does.
    // Streams have sent it already.
    static void carry(Engine& engine) {
        if (engine.fabric().has_streams()) return;
        while (progress(engine)) continue;
    }
    // Peers that the leader looks at.
    static std::size_t warm_peers(Engine& engine) {
        const Hold hold(engine.lock());
        return engine.peers().all().warm().size();
    }
    // How many links are still to be looked at in this second, after the first ones, whether they may give memory back.
    static std::size_t left_to_tend(Engine& engine) {
        const Hold hold(engine.lock());
        return engine.turns_.tend_memory(kPeersMax);
    }
    // Threads that wait until they may send.
    static std::size_t waits_for_room(Engine& engine) {
        const Hold hold(engine.lock());
        return engine.rooms_.count();
    }
    // Whether a function was noticed that runs long on top of another one, and is about to be reported.
    static bool notices_long_runs(Engine& engine) {
        const Hold hold(engine.lock());
        const Run* const leading = engine.runner_.leading();
        if (leading != nullptr && leading->noticed) return true;
        for (const Run& run : engine.runner_.long_runs())
            if (run.noticed) return true;
        return false;
    }
    // Whether a thread of the node's own waits for the lead.
    static bool has_followers(Engine& engine) {
        const Hold hold(engine.lock());
        return engine.lead_.has_followers();
    }
    // Whether a thread leads, and how many others wait; how many of these are quiet.
    static bool has_lead(Engine& engine, int waiting, int quiet) {
        const Hold hold(engine.lock());
        const Baton& baton = engine.lead_.baton_;
        return baton.leading_ && baton.waiting_ == waiting && baton.quiet_ == quiet;
    }
};

}  // namespace rove
