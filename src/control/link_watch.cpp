#include "control/link_watch.hpp"

#include <algorithm>

namespace rove::control {

// Called with a peer only if memory ran out before the link was watched: nothing else would report to the node that the peer has ended.
LinkWatch::Unwatched::~Unwatched() {
    if (watch_ == nullptr) return;
    watch_->engines_.lose(who_.peer, who_.meeting, no_memory());
    try {
        if (who_.member != kNoNode) watch_->membership_.went(who_.member, who_.meeting, false);
    } catch (const std::bad_alloc&) {  // its process sees the connection end, and meets this one again
    }
}

// The connection's remaining task: to notice that the peer ends, and to receive what members report of others.
asio::awaitable<void> LinkWatch::watch(std::shared_ptr<Channel> channel, Unwatched link) {
    using wire::control::Goodbye;
    using wire::control::Members;
    Watched who = link.take();
    const std::size_t bytes_max =
        who.member != kNoNode ? std::max(Members::kBytesMax, Goodbye::kBytesMax) : Goodbye::kBytesMax;
    Error why(ErrorCode::disconnected, "");
    bool left = false;
    try {
        for (;;) {
            const Result<ByteBuffer> body = co_await channel->receive(bytes_max);
            if (!body) {
                why = body.error().code() == ErrorCode::disconnected
                          ? Error(ErrorCode::disconnected,
                                  fmt::format("its process ended, or was cut off: {}", body.error().message()))
                          : body.error();
                break;
            }
            if (const Status said = channel->heed_goodbye(*body); !said) {
                why = said.error();
                left = channel->farewell() && channel->farewell()->goodbye.reason == Goodbye::Reason::left;
                break;
            }
            const Result<Members> members = who.member != kNoNode
                                                ? wire::control::decode<Members>(*body)
                                                : fail(ErrorCode::invalid, "it sent a control message that is not due");
            if (!members) {
                why = members.error();
                break;
            }
            if (const Status heard = membership_.heard_of(members->members); !heard) {
                why = heard.error();
                break;
            }
        }
    } catch (const std::exception&) {
        why = no_memory();
    }
    Goodbye goodbye{.reason = Goodbye::Reason::cut, .code = why.code(), .text = {}};
    try {
        goodbye.text = why.message();
    } catch (const std::bad_alloc&) {  // without a text
    }
    // Needs no memory, because nothing else would report this to the node.
    engines_.lose(who.peer, who.meeting, std::move(why));
    channel->close(goodbye);
    who.client = {};
    if (who.member != kNoNode) membership_.went(who.member, who.meeting, left);
}

}  // namespace rove::control
