// Dispatcher: what a node does with each frame that arrives. Replies and code are passed to the parts that await them; calls run their
// function, in the leader's thread, or wait at the head of their mailbox for code or for a thread.
//
// Threads: the leader, under the engine's lock, which is released while functions run. The caller asks lost() afterwards.
//
// Invariants: a frame is given back exactly once to the link that it was taken from. The calls of one peer start in their order. Only frames
// that FrameChecks lets pass are handled; a peer that sends any other is cut off.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/answers.hpp"
#include "engine/function_finder.hpp"
#include "engine/link_ends.hpp"
#include "engine/local_frames.hpp"
#include "lead/runner.hpp"
#include "peer/code_exchange.hpp"
#include "peer/frame_checks.hpp"
#include "peer/payload_parts.hpp"
#include "peer/peer_list.hpp"

namespace rove {

class Gatherings;

// Frames taken from one peer before the next one is looked at: a busy peer does not starve the others.
inline constexpr unsigned kBatchMax = 64;

class Dispatcher {
public:
    // The parts of the node that this one uses. They outlive it.
    struct Beside {
        Engine& engine;  // for functions, which may ask where they run
        const NodeOptions& options;
        const std::unique_ptr<code::CodeCache>& cache;  // made when the node starts
        Lead& lead;
        Runner& runner;
        OwnThreads& own_threads;
        const PeerList& peers;
        LocalFrames& local;
        Sender& sender;
        CodeExchange& exchange;
        const FrameChecks& checks;
        FunctionFinder& functions;
        ReplyReceiver& replies;
        Answers& answers;
        PayloadParts& payload_parts;
        Gatherings& gatherings;
        LinkEnds& link_ends;
        std::function<void(rove_here*)> keep_thread;  // that a function wants to end; it never returns
        std::function<std::string()> name;            // of this node, for messages
    };
    explicit Dispatcher(Beside beside)
        : engine_(beside.engine),
          options_(beside.options),
          cache_(beside.cache),
          lead_(beside.lead),
          runner_(beside.runner),
          own_threads_(beside.own_threads),
          peers_(beside.peers),
          local_(beside.local),
          sender_(beside.sender),
          exchange_(beside.exchange),
          checks_(beside.checks),
          functions_(beside.functions),
          replies_(beside.replies),
          answers_(beside.answers),
          payload_parts_(beside.payload_parts),
          gatherings_(beside.gatherings),
          link_ends_(beside.link_ends),
          keep_thread_(std::move(beside.keep_thread)),
          name_(std::move(beside.name)) {}

    // Handles frames that have arrived from the peer, for as long as it is the peer's turn. Returns their number.
    unsigned serve(PeerState& peer, Lead::Turn& turn) REQUIRES(lock_of<EngineLock>);
    // Handles calls that this node has sent to itself.
    unsigned serve_local(Lead::Turn& turn) REQUIRES(lock_of<EngineLock>);
    // Runs the function of a run that has begun, without the lock.
    void run_here(Run& run, rove_here& here, Bytes payload) noexcept EXCLUDES(lock_of<EngineLock>);

private:
    // The result of handling a frame that arrived among calls.
    enum class Taken : std::uint8_t {
        parked,  // nothing: it stays at the head of its mailbox, and is looked at again
        done,    // whoever took it from the mailbox gives it back, now
        gone,    // it has been given back
        held,    // its function continues in this thread, which gives it back when that returns; another thread leads
    };

    // ---- whose turn it is
    unsigned serve_calls(PeerState& peer, Lead::Turn& turn) REQUIRES(lock_of<EngineLock>);
    void run_parked(Lead::Turn& turn) REQUIRES(lock_of<EngineLock>);
    void leave_to_others(Lead::Turn& turn) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool leave_to_follower(const code::Function& function, Lead::Turn& turn)
        REQUIRES(lock_of<EngineLock>);
    // ---- each kind of frame
    struct AmongCalls;
    [[nodiscard]] Taken run_next(PeerState& peer, wire::Frame& frame, Lead::Turn& turn) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Taken on_part(PeerState& from, const wire::Frame& frame, Lead::Turn& turn)
        REQUIRES(lock_of<EngineLock>);
    struct AmongPrompt;
    void on_prompt_frame(PeerState& from, const wire::Frame& frame) REQUIRES(lock_of<EngineLock>);
    void on_load(const PeerState& from, const wire::Frame& frame) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Taken on_call(PeerState* from, const wire::Frame& frame, Lead::Turn& turn)
        REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Taken begin_call(PeerState* from, const wire::Frame& frame, Lead::Turn& turn)
        REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Taken on_rare_call(PeerState* from, const wire::Frame& frame, Lead::Turn& turn)
        REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Result<code::Function*> function_of(PeerState* from, const wire::Frame& frame)
        REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] Taken run_entered(code::Function& function, code::Entered held, PeerState* from,
                                    const wire::Frame& frame, Lead::Turn& turn) REQUIRES(lock_of<EngineLock>);
    // ---- a call
    [[nodiscard]] std::optional<Parked>& parked_of(PeerState* from) REQUIRES(lock_of<EngineLock>) {
        return from != nullptr ? from->calls.parked : local_.parked();
    }
    // function: null: it is not known here.
    Parked& park(PeerState* from, const wire::Frame& frame, const code::Function* function)
        REQUIRES(lock_of<EngineLock>);
    Taken park_for_code(PeerState* from, const wire::Frame& frame, const code::Function* function)
        REQUIRES(lock_of<EngineLock>);
    Taken refuse(PeerState* from, const wire::Frame& frame, const Error& why) REQUIRES(lock_of<EngineLock>);
    std::optional<Taken> run_leading(code::Function& function, PeerState* from, const wire::Frame& frame,
                                     Lead::Turn& turn) REQUIRES(lock_of<EngineLock>);
    Taken run(Run& run, const wire::Frame& frame, Lead::Turn& turn) REQUIRES(lock_of<EngineLock>);
    // Plain posts at the head of a mailbox, as long as they are alike. `handled`: counts those that have been given back but the last, up
    // to `most`; `given_back`: whether that has been as well.
    Taken run_posts(PeerState& peer, wire::Frame& frame, Lead::Turn& turn, unsigned& handled, unsigned most,
                    bool& given_back) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] code::Function* quick(PeerState& peer, const wire::Frame& post) REQUIRES(lock_of<EngineLock>);
    [[nodiscard]] bool run_one(Run& run, const wire::CallContext& call, Bytes payload, bool in_mailbox)
        EXCLUDES(lock_of<EngineLock>);
    void end_without_answer(rove_here& here) noexcept EXCLUDES(lock_of<EngineLock>);

    Engine& engine_;
    const NodeOptions& options_;
    const std::unique_ptr<code::CodeCache>& cache_;
    Lead& lead_;
    Runner& runner_;
    OwnThreads& own_threads_;
    const PeerList& peers_;
    LocalFrames& local_;
    Sender& sender_;
    CodeExchange& exchange_;
    const FrameChecks& checks_;
    FunctionFinder& functions_;
    ReplyReceiver& replies_;
    Answers& answers_;
    PayloadParts& payload_parts_;
    Gatherings& gatherings_;
    LinkEnds& link_ends_;
    const std::function<void(rove_here*)> keep_thread_;
    const std::function<std::string()> name_;
    const MakingProcess process_;
};

}  // namespace rove
