#include "engine/left_frames.hpp"

#include "engine/dispatcher.hpp"

namespace rove {

unsigned LeftFrames::take() {
    unsigned done = 0;
    for (; done < kBatchMax; ++done) {
        const std::optional<LeftForEngine> left = others_.take();
        if (!left) break;
        handle(*left);
    }
    return done;
}

void LeftFrames::handle(const LeftForEngine& left) {
    const wire::Frame frame = wire::frame_in(left.frame);
    switch (left.what) {
        case LeftForEngine::What::to_caller: return sender_.route(frame);
        case LeftForEngine::What::to_own_call: return replies_.receive_left(frame);
        case LeftForEngine::What::answered: return sender_.forget_sent_on_here(frame.header);
        case LeftForEngine::What::to_lower: return sender_.route(frame, others_.index() + 1);
        case LeftForEngine::What::caller_left:
            exchange_.peer_left(left.by.engine, frame.header.node);
            return link_ends_.caller_left(frame.header.node);
        case LeftForEngine::What::need:
        case LeftForEngine::What::need_not_passed:
        case LeftForEngine::What::code:
        case LeftForEngine::What::lack: return exchange_.on_left(left);
    }
}

}  // namespace rove
