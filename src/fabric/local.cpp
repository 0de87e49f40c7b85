#include "fabric/local.hpp"

#include "fabric/direct/lanes.hpp"

namespace rove::fabric {
namespace {

class LocalFabric final : public Fabric {
public:
    explicit LocalFabric(std::unique_ptr<DirectLanes> direct) : direct_(std::move(direct)) {}

    [[nodiscard]] std::string_view name() const override { return "local"; }
    [[nodiscard]] Result<std::unique_ptr<Link>> open_link() override {
        if (direct_) return direct_->open_link();
        return fail(ErrorCode::unsupported, "shared memory is switched off on this end; does it have --fabric tcp?");
    }
    unsigned progress() override { return 0; }
    [[nodiscard]] bool needs_progress() const override { return false; }
    [[nodiscard]] std::vector<int> descriptors() const override {
        std::vector<int> descriptors;
        if (direct_) descriptors.push_back(direct_->bell().descriptor());
        return descriptors;
    }
    [[nodiscard]] bool announce_sleep() override {
        if (direct_) direct_->announce_sleep();
        return true;
    }
    void end_sleep() override {
        if (direct_) direct_->end_sleep();
    }

private:
    std::unique_ptr<DirectLanes> direct_;  // null: switched off
};

}  // namespace

Result<std::unique_ptr<Fabric>> open_local_fabric(const LocalOptions& options) {
    std::unique_ptr<DirectLanes> direct;
    if (options.direct) {
        ROVE_TRY(direct, DirectLanes::open());
    }
    return std::make_unique<LocalFabric>(std::move(direct));
}

}  // namespace rove::fabric
