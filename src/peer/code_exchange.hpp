// CodeExchange: how code gets to the nodes that run it. It is sent with a first call, asked for by a node that lacks it (need), sent in
// pieces (code) or refused (lack), and passed on by the nodes between. Frames of these kinds, and of the kind bind, are handled here.
//
// Threads: under the engine's lock.
//
// Invariants: a node believes an answer only from the peer that it has asked, and passes on only what somebody has asked for. What arrives
// in pieces is bounded for each peer and for all of them, and so are the questions that a peer may have waiting.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "code/cache.hpp"
#include "lead/engine_lock.hpp"
#include "peer/complaints.hpp"
#include "peer/own_functions.hpp"
#include "peer/peer_list.hpp"
#include "peer/peer_state.hpp"
#include "peer/questions_passed_on.hpp"
#include "peer/routes.hpp"
#include "peer/sender.hpp"

namespace rove {

class CodeExchange {
public:
    // The parts of the node that this one uses. They outlive it.
    struct Beside {
        const NodeOptions& options;
        const std::unique_ptr<code::CodeCache>& cache;  // made when the node starts
        const PeerList& peers;
        const Routes& routes;
        const OtherEngines& others;
        Sender& sender;
        Complaints& complaints;
        OwnFunctions& own_functions;
        std::optional<Parked>& local_parked;  // a call of the node to itself that waits for code
        std::function<std::string()> name;    // of this node, for messages
    };
    explicit CodeExchange(Beside beside)
        : options_(beside.options),
          cache_(beside.cache),
          peers_(beside.peers),
          routes_(beside.routes),
          others_(beside.others),
          sender_(beside.sender),
          complaints_(beside.complaints),
          own_functions_(beside.own_functions),
          local_parked_(beside.local_parked),
          name_(std::move(beside.name)) {}

    // The package of a function, wherever this process has it from: its own program, or what it was sent. Null: it has none.
    [[nodiscard]] std::shared_ptr<PackageStore> package_with(const FunctionId& function) const
        REQUIRES(lock_of<EngineLock>);
    // unsupported: the peer cannot run the package, or this node sends no form that it can run.
    [[nodiscard]] Status check_forms(const PeerState& peer, const PackageStore& package) const
        REQUIRES(lock_of<EngineLock>);
    // Sends one form of a package. False: this process has it not for the peer's target, may not send it, or the peer is a client, which
    // takes no code.
    [[nodiscard]] Result<bool> send(PeerState& to, PackageStore& package, Forms form, bool with_manifest,
                                    fabric::Traffic among = fabric::Traffic::prompt) REQUIRES(lock_of<EngineLock>);
    // Asks for the code that a parked call waits for: the peer that sent the call, or, of a frame of this node's own, the call's origin.
    void ask(PeerState* from, Parked& parked, NodeId origin) REQUIRES(lock_of<EngineLock>);
    // Sends on what a peer has asked for, as much as it takes now.
    void answer_more(PeerState& to) REQUIRES(lock_of<EngineLock>);
    // A peer is gone: what was asked of it for others is answered as what nobody has.
    void peer_left(const PeerState& gone) REQUIRES(lock_of<EngineLock>);

    // Frames that have arrived from a peer, and whose shape was checked.
    void on_code(PeerState& from, const wire::Frame& frame) REQUIRES(lock_of<EngineLock>);
    void on_need(PeerState& from, const wire::Frame& frame) REQUIRES(lock_of<EngineLock>);
    void on_lack(PeerState& from, const wire::Frame& frame) REQUIRES(lock_of<EngineLock>);
    // What another engine has left about a question for code: LeftForEngine::What::need and those after it.
    void on_left(const LeftForEngine& left) REQUIRES(lock_of<EngineLock>);
    // A peer of another engine is gone.
    void peer_left(unsigned engine, NodeId name) REQUIRES(lock_of<EngineLock>) {
        passed_on_.asker_left({engine, name});
    }
    static void on_bind(PeerState& from, const wire::Frame& frame) REQUIRES(lock_of<EngineLock>);

private:
    [[nodiscard]] std::shared_ptr<const ByteBuffer> slice_for(const PackageStore& package, std::string_view triple,
                                                              Forms form, std::uint32_t& item) const
        REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Result<std::size_t> send_piece(PeerState& to, fabric::Traffic among, NodeId asker,
                                                 wire::CodeChunk chunk, Bytes item, std::size_t offset)
        REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool answer(PeerState& from, const wire::NeedCode& need, const PackageStore& package)
        REQUIRES(lock_of<EngineLock>);
    using Asker = QuestionsPassedOn::Asker;
    void lack(PeerState& from, const wire::NeedCode& need) noexcept REQUIRES(lock_of<EngineLock>);
    void lack(const Asker& to, const wire::NeedCode& need) noexcept REQUIRES(lock_of<EngineLock>);
    void answer_here(PeerState& from, wire::NeedCode need, bool ask_origin) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool pass_on_towards(const PeerState& from, NodeId node, const wire::NeedCode& need)
        REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool speaks_for(const PeerState& from, NodeId asker) const REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool pass_on_need(const Asker& from, PeerState& to, NodeId node, const wire::NeedCode& need)
        REQUIRES(lock_of<EngineLock>);
    void pass_on(PeerState& from, const wire::Frame& frame, const wire::CodeChunk& chunk) REQUIRES(lock_of<EngineLock>);
    void refuse(PeerState& from, const wire::Frame& frame, std::string_view what) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Status item_arrived(PeerState& from, const wire::CodeChunk& chunk, CodeItem arrived)
        REQUIRES(lock_of<EngineLock>);
    void drop_idle() REQUIRES(lock_of<EngineLock>);
    void give_up_parked(PeerState& from, const Digest& package, const Error& why) REQUIRES(lock_of<EngineLock>);
    template <typename Tell>
    void tell_parked(const Tell& tell) REQUIRES(lock_of<EngineLock>);
    void ask_again_later(const PeerState& sender) REQUIRES(lock_of<EngineLock>);
    void is_arriving(PeerState& from, const Digest& package) REQUIRES(lock_of<EngineLock>);
    void has_come(const Digest& package) REQUIRES(lock_of<EngineLock>);

    const NodeOptions& options_;
    const std::unique_ptr<code::CodeCache>& cache_;
    const PeerList& peers_;
    const Routes& routes_;
    const OtherEngines& others_;
    Sender& sender_;
    Complaints& complaints_;
    OwnFunctions& own_functions_;
    std::optional<Parked>& local_parked_ GUARDED_BY(lock_of<EngineLock>);
    const std::function<std::string()> name_;
    QuestionsPassedOn passed_on_ GUARDED_BY(lock_of<EngineLock>);
    std::size_t arriving_bytes_ GUARDED_BY(lock_of<EngineLock>) =
        0;  // in pieces, from all peers: kAssemblyBytesOfAllMax
    TimePoint idle_dropped_at_ GUARDED_BY(lock_of<EngineLock>){};
};

}  // namespace rove
