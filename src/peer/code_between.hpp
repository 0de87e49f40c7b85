// CodeBetween: the code that two peers have named to each other, and sent.
//
// Threads: under the engine's lock.
//
// Invariant: all of it is about the process that was met: forget() leaves nothing, because the next one may know none of it.
#pragma once

#include <optional>
#include <unordered_map>
#include <utility>

#include "package/digest.hpp"
#include "peer/bindings.hpp"
#include "peer/code_answers.hpp"
#include "peer/code_arrival.hpp"
#include "peer/dropped_bytes.hpp"
#include "rove/error.hpp"

namespace rove {

// A function is sent inline with this many calls, unless it is to be sent inline always. Then it is called by its handle: by then the code in
// the frames has cost about as much as sending it ahead once.
inline constexpr unsigned kInlineSends = 8;

class CodeBetween {
public:
    Bindings bindings;      // the peer's handles for functions that this node sends
    Aliases aliases;        // what old handles of this node meant, as the peer has reported
    SentPackages sent;      // packages it has had from this node, or is known to have
    CodeArrival arrival;    // what it sends in pieces
    CodeArrival passed_on;  // … for others, who answered a question that it passed on
    CodeAnswers answers;    // what it asked for, and has not been sent whole

    // Whether the next call of the function has its code inline (Sending::inlined). Each time counts as one.
    [[nodiscard]] bool count_inline(const FunctionId& function) { return sent_inline_[function]++ < kInlineSends; }

    // The last package of the peer that was refused for lack of room, and why: whoever asks to load it is given that reason.
    void refuse(const Digest& package, const Error& why) { refused_ = {package, why}; }
    // Null: it was not refused, or another one was since.
    [[nodiscard]] const Error* refusal_of(const Digest& package) const {
        return refused_ && refused_->first == package ? &refused_->second : nullptr;
    }
    // There is room for it now.
    void accept(const Digest& package) {
        if (refused_ && refused_->first == package) refused_.reset();
    }

    // Needs no memory.
    void forget(DroppedBytes& dropped) {
        bindings.clear();
        aliases.clear();
        sent.clear();
        arrival.clear(dropped);
        passed_on.clear(dropped);
        answers.clear();
        sent_inline_.clear();
        refused_.reset();
    }

private:
    std::unordered_map<FunctionId, unsigned> sent_inline_;
    std::optional<std::pair<Digest, Error>> refused_;
};

}  // namespace rove
