#include "fabric/ucx/fabric.hpp"

#include <sys/epoll.h>

#include <cerrno>
#include <system_error>

#include "fabric/ucx/ucx_fabric.hpp"

namespace rove::fabric {
namespace {

UcxHeader header_of(const void* header, std::size_t bytes) {
    UcxHeader copy;
    if (bytes == sizeof copy) std::memcpy(&copy, header, sizeof copy);
    return copy;  // no link has token 0
}

ucs_status_t on_frame(void* argument, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                      const ucp_am_recv_param_t* param) {
    const UcxHeader at = header_of(header, header_bytes);
    UcxLink* link = static_cast<UcxFabric*>(argument)->find(at.token);
    // A message of an unknown sender, or for a link that has been closed, is dropped, and so is a rendezvous, which no Rove node begins.
    if (link == nullptr || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
    link->frames_arrived(at, {static_cast<const std::byte*>(data), bytes});
    return UCS_OK;
}

ucs_status_t on_credit(void* argument, const void* header, std::size_t header_bytes, void*, std::size_t,
                       const ucp_am_recv_param_t*) {
    const UcxHeader at = header_of(header, header_bytes);
    if (UcxLink* link = static_cast<UcxFabric*>(argument)->find(at.token)) link->credit_arrived(at);
    return UCS_OK;
}

// Only the arrival of the message matters.
ucs_status_t on_doorbell(void*, const void*, std::size_t, void*, std::size_t, const ucp_am_recv_param_t*) {
    return UCS_OK;
}

}  // namespace

Result<std::unique_ptr<UcxFabric>> UcxFabric::open(bool shm, bool tcp) {
    auto fabric = std::make_unique<UcxFabric>();
    Status why = fail(ErrorCode::unsupported, "UCX_TLS leaves no transport that Rove uses (posix, tcp)");
    for (const Transport transport : {Transport::shm, Transport::tcp}) {
        if (!(transport == Transport::shm ? shm : tcp) || !allowed_by_environment(transport)) continue;
        Result<std::shared_ptr<UcxContext>> context = UcxContext::open(transport);
        if (context)
            fabric->contexts_[static_cast<std::size_t>(transport)] = std::move(*context);
        else
            why = tl::unexpected<Error>(context.error());
    }
    if (!fabric->contexts_[0] && !fabric->contexts_[1]) return tl::unexpected<Error>(why.error());
    fabric->events_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
    if (fabric->events_.number() < 0) return fail(ErrorCode::overloaded, "no descriptor is left for UCX's events");
    ROVE_TRY(std::shared_ptr<UcxWorkers> workers, fabric->open_workers());
    fabric->workers_.push_back(std::move(workers));
    return fabric;
}

Result<std::shared_ptr<UcxWorkers>> UcxFabric::open_workers() {
    auto workers = std::make_shared<UcxWorkers>();
    for (std::size_t i = 0; i < contexts_.size(); ++i) {
        if (!contexts_[i]) continue;
        ROVE_TRY(workers->each[i], UcxWorker::open(contexts_[i]));
        UcxWorker& worker = *workers->each[i];
        for (const auto& [id, callback] :
             {std::pair{kFramesId, &on_frame}, {kCreditId, &on_credit}, {kDoorbellId, &on_doorbell}})
            ROVE_CHECK(worker.on_message(id, callback, this));
        epoll_event event{.events = EPOLLIN, .data = {}};
        if (epoll_ctl(events_.number(), EPOLL_CTL_ADD, worker.descriptor(), &event) != 0)
            return fail(ErrorCode::overloaded, "UCX's events cannot be waited for: {}",
                        std::generic_category().message(errno));
    }
    return workers;
}

void UcxFabric::drop_unused_workers() {
    for (std::size_t i = 0; i + 1 < workers_.size();)
        if (workers_[i].use_count() == 1)
            workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
        else
            ++i;
}

void UcxWorkers::leave(std::unique_ptr<UcxSendMemory> memory) {
    std::erase_if(left, [](const auto& each) { return !each->is_in_use(); });
    if (memory->is_in_use()) left.push_back(std::move(memory));
}

Result<std::unique_ptr<Link>> UcxFabric::open_link() {
    if (workers_.back()->links_opened >= UcxWorkers::kLinksMax) {
        ROVE_TRY(std::shared_ptr<UcxWorkers> workers, open_workers());
        workers_.push_back(std::move(workers));
        drop_unused_workers();
    }
    ++workers_.back()->links_opened;
    ROVE_TRY(std::unique_ptr<UcxLink> link, UcxLink::open(*this, workers_.back()));
    return std::unique_ptr<Link>(std::move(link));
}

UcxLink* UcxFabric::find(std::uint64_t token) const {
    const auto found = links_.find(token);
    return found != links_.end() ? found->second : nullptr;
}

void UcxFabric::flush() {
    if (!contexts_[static_cast<std::size_t>(Transport::tcp)]) return;
    for (const auto& [token, link] : links_) link->flush();
}

unsigned UcxFabric::progress() {
    unsigned events = 0;
    flush();
    for (const auto& workers : workers_)
        for (const auto& worker : workers->each)
            if (worker) events += worker->progress();
    if (events > 0) flush();  // a message that UCX has sent now may have kept a credit back
    return events;
}

std::vector<int> UcxFabric::descriptors() const {
    return {events_.number()};
}

bool UcxFabric::announce_sleep() {
    for (const auto& [token, link] : links_) link->announce_sleep(true);
    SleepFence::pay();
    for (const auto& workers : workers_)
        for (const auto& worker : workers->each)
            if (worker && !worker->arm()) return false;
    // Arming may have consumed the doorbell of a sender that saw the flag of an earlier sleep, or of this one, and cleared it; then no
    // sender would ring for the next frame. If a flag is cleared after this check, its doorbell finds the worker armed.
    for (const auto& [token, link] : links_)
        if (link->was_rung()) return false;
    return true;
}

void UcxFabric::end_sleep() {
    for (const auto& [token, link] : links_) link->announce_sleep(false);
}

namespace {

Result<std::unique_ptr<Fabric>> open_fabric(const UcxOptions& options) {
    ROVE_TRY(std::unique_ptr<UcxFabric> fabric, UcxFabric::open(options.shm, options.tcp));
    return std::unique_ptr<Fabric>(std::move(fabric));
}

std::string_view version() {
    return ucp_get_version_string();
}

}  // namespace

}  // namespace rove::fabric

extern "C" __attribute__((visibility("default"))) const rove::fabric::UcxLibrary* rove_ucx_library() {
    static constexpr rove::fabric::UcxLibrary kLibrary{.open = &rove::fabric::open_fabric,
                                                       .version = &rove::fabric::version};
    return &kLibrary;
}
