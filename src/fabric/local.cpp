#include "fabric/local.hpp"

#include "fabric/direct/lanes.hpp"
#include "fabric/direct/peers_bells.hpp"
#include "fabric/stream/lanes.hpp"

namespace rove::fabric {
namespace {

class LocalFabric final : public Fabric {
public:
    LocalFabric(std::unique_ptr<DirectLanes> direct, std::unique_ptr<StreamLanes> streams)
        : direct_(std::move(direct)), streams_(std::move(streams)) {
        if (direct_) board_ = &direct_->board();
    }

    [[nodiscard]] std::string_view name() const override { return "local"; }
    [[nodiscard]] Result<std::unique_ptr<Link>> open_link() override {
        if (direct_) return direct_->open_link();
        return fail(
            ErrorCode::unsupported,
            "no transport reaches the peer through memory: that is switched off on this end; are both ends started "
            "with the same --fabric?");
    }
    [[nodiscard]] bool has_streams() const override { return streams_ != nullptr; }
    [[nodiscard]] Result<std::unique_ptr<Link>> open_stream(int socket, const StreamKeys& keys) override {
        if (streams_) return streams_->open_stream(socket, keys);
        close(socket);
        return fail(ErrorCode::unsupported, "streams are switched off on this end; does it have --fabric shm?");
    }
    unsigned progress() override { return needs_progress() ? streams_->progress() : 0; }
    [[nodiscard]] bool needs_progress() const override { return streams_ && !streams_->is_empty(); }
    [[nodiscard]] std::vector<int> descriptors() const override {
        std::vector<int> descriptors;
        if (direct_) descriptors.push_back(direct_->bell().descriptor());
        if (streams_) descriptors.push_back(streams_->descriptor());
        return descriptors;
    }
    [[nodiscard]] bool announce_sleep() override {
        if (streams_) streams_->flush();  // descriptors() become readable when data arrives or a socket has room again
        if (direct_) direct_->announce_sleep();
        return true;
    }
    [[nodiscard]] bool has_cold_on_board() const override { return direct_ && direct_->has_cold(); }
    void end_sleep() override {
        if (direct_) direct_->end_sleep();
    }

    void tidy() noexcept override {
        if (direct_) PeersBells::of_process().close_quiet(Clock::now());
    }

protected:
    void settle_announcements() noexcept override {
        if (direct_) direct_->settle_announcements();
    }

private:
    std::unique_ptr<DirectLanes> direct_;   // null: switched off
    std::unique_ptr<StreamLanes> streams_;  // null: switched off
};

}  // namespace

Result<std::unique_ptr<Fabric>> open_local_fabric(const LocalOptions& options) {
    std::unique_ptr<DirectLanes> direct;
    std::unique_ptr<StreamLanes> streams;
    if (options.direct) {
        Result<std::unique_ptr<DirectLanes>> opened = DirectLanes::open();
        if (opened)
            direct = std::move(*opened);
        else if (!options.stream || opened.error().code() != ErrorCode::unsupported)
            return tl::unexpected<Error>(opened.error());
    }
    if (options.stream) {
        ROVE_TRY(streams, StreamLanes::open());
    }
    return std::make_unique<LocalFabric>(std::move(direct), std::move(streams));
}

}  // namespace rove::fabric
