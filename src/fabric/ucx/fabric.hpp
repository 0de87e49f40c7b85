// UcxFabric: the workers of the two transports, and the links that use them.
//
// Threads: as Fabric (../fabric.hpp). UCX calls the handlers of messages in the thread that is in progress() or arm().
//
// Invariants: `links_` are the links that are open, each with another token, so a message for a link that has ended finds none. Workers,
// and the memory from which they still read, exist for as long as any of their links; the last workers for as long as the fabric.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/descriptor.hpp"
#include "fabric/fabric.hpp"
#include "fabric/sleep_fence.hpp"
#include "fabric/ucx/link.hpp"
#include "fabric/ucx/worker.hpp"

namespace rove::fabric {

// UCX active-message ids.
inline constexpr unsigned kFramesId = 1;
inline constexpr unsigned kCreditId = 2;
inline constexpr unsigned kDoorbellId = 3;

// A worker of each transport, with the memory that their links use. Endpoints end only with their worker (worker.cpp), so links that are
// opened later get other workers, and a worker ends with the last link that uses it.
struct UcxWorkers {
    // The number of links that are opened on these workers before new workers are made. Making workers takes milliseconds; an endpoint to a
    // peer that has ended costs some mappings or a socket.
    static constexpr unsigned kLinksMax = 16;

    std::vector<std::unique_ptr<UcxSendMemory>> left;  // destroyed after the workers, which read from it
    std::array<std::unique_ptr<UcxWorker>, 2> each;    // null: the transport is unavailable, or was not requested
    unsigned links_opened = 0;

    [[nodiscard]] UcxWorker* worker(Transport transport) const {
        return each[static_cast<std::size_t>(transport)].get();
    }
    // Called by a link that ends: keeps the memory for as long as messages are read from it.
    void leave(std::unique_ptr<UcxSendMemory> memory);
};

class UcxFabric final : public Fabric {
public:
    [[nodiscard]] static Result<std::unique_ptr<UcxFabric>> open(bool shm, bool tcp);

    [[nodiscard]] std::string_view name() const override { return "ucx"; }
    [[nodiscard]] Result<std::unique_ptr<Link>> open_link() override;
    unsigned progress() override;
    [[nodiscard]] bool needs_progress() const override { return message_links_ > 0; }
    void count_message_link(int change) { message_links_ += change; }
    [[nodiscard]] std::vector<int> descriptors() const override;
    [[nodiscard]] bool announce_sleep() override;
    void end_sleep() override;

    // Without membarrier both sides execute the fence.
    [[nodiscard]] const std::atomic<bool>& sleeper_pays() const { return SleepFence::sleeper_pays(); }
    [[nodiscard]] UcxLink* find(std::uint64_t token) const;
    void add(UcxLink& link) { links_[link.token()] = &link; }
    void remove(UcxLink& link) { links_.erase(link.token()); }
    // Called by a link that ends: its workers may end, too.
    void drop_unused_workers();

private:
    [[nodiscard]] Result<std::shared_ptr<UcxWorkers>> open_workers();
    void flush();

    std::array<std::shared_ptr<UcxContext>, 2> contexts_;
    Descriptor events_;                                 // an epoll descriptor that watches those of all workers
    std::vector<std::shared_ptr<UcxWorkers>> workers_;  // the last ones are used by the next link
    std::unordered_map<std::uint64_t, UcxLink*> links_;
    int message_links_ = 0;
    SleepFence fence_;
};

}  // namespace rove::fabric
