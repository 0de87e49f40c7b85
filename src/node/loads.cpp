// Packages and interfaces that a peer has sent, and asks this node to load.
#include "node/core.hpp"
#include "node/log.hpp"

namespace rove {

// A worker of the cache loads it and answers: nobody else's calls wait meanwhile. Everybody's packages are loaded by that one thread, so
// its answer waits in the outbox, within the outbox's bounds, and the thread waits for no peer to take it.
void NodeCore::on_load(const PeerState& from, const wire::Frame& frame) {
    const Digest digest = Digest::from(frame.extra.first<sizeof(Digest)>());
    const std::shared_ptr<PackageStore> package = cache_->package(digest);
    const wire::FrameHeader to = frame.header;
    if (!package) {
        const bool refused = from.refused_package && from.refused_package->first == digest;
        return end_with_error(to, refused ? from.refused_package->second
                                          : Error(ErrorCode::invalid,
                                                  fmt::format("{} has not received package {}", name(), digest.hex())));
    }
    const Status queued = cache_->load_later(package, [this, to, package](const Result<LoadReport>& loaded) {
        if (!loaded) {
            reply_error(to, loaded.error());
            return;
        }
        const std::string& interface = package->manifest().name;
        std::string lines;  // docs/frames.md, "A load is answered"
        for (const std::string& replaced : loaded->replaced) {
            log().info("{}: interface {} takes over {}; what arrived before keeps the old one", name(), interface,
                       replaced);
            lines += replaced + '\n';
        }
        lines += '\n';
        for (const std::string& kept : loaded->kept) {
            log().info("{}: interface {} does not take over '{}', which is the node's own; preload it for that", name(),
                       interface, kept);
            lines += kept + '\n';
        }
        const Bytes answer = rove::as_bytes(lines).first(std::min(lines.size(), wire::kPayloadBytesMax));
        const Hold hold(*this);
        (void)end_with_reply(to, RanAs::image, answer, nullptr);
    });
    if (!queued) end_with_error(to, queued.error());
}

}  // namespace rove
