// DirectLink: a Link between two processes of one user on one machine. Each end owns a Region in a sealed memory file, which
// the other end maps; docs/frames.md describes the offer. Once both ends have mapped the files, a link keeps no descriptor of its own.
//
// Threads: as Fabric (fabric.hpp).
//
// Invariants: a region is mapped for as long as its link, and its file can neither shrink nor grow, so no access to it ends this
// process. An access may wait in the kernel while the peer punches holes into the file (SECURITY.md).
#pragma once

#include <atomic>
#include <memory>

#include "fabric/direct/peers_bells.hpp"
#include "fabric/fabric.hpp"
#include "fabric/mapped_region.hpp"

namespace rove::fabric {

class DirectLanes;

class DirectLink final : public Link {
public:
    [[nodiscard]] static Result<std::unique_ptr<DirectLink>> open(DirectLanes& lanes);
    ~DirectLink() override;

    [[nodiscard]] const ByteBuffer& offer() const override { return offer_; }
    [[nodiscard]] Status connect(Bytes peer_offer) override;
    void settled() override { file_.close(); }
    [[nodiscard]] Lane lane() const override { return remote_ ? Lane::direct : Lane::none; }

    void announce_sleep(bool asleep);
    [[nodiscard]] bool can_be_cold() const override { return true; }
    [[nodiscard]] bool announces_cold() const override {
        return std::atomic_ref(region_->wanted).load(std::memory_order_relaxed) == Wanted::bit;
    }

protected:
    void transmit(Traffic, std::uint64_t, std::size_t) override {}  // the frame is in the peer's memory already
    void transmit_credit(Traffic traffic) override;
    Pages free_pages() override;
    [[nodiscard]] bool pages_are_free() const override;
    [[nodiscard]] bool keep_pages() noexcept override;
    void wake_peer() override;
    void announce_cold(bool cold) noexcept override;
    void announce_again() noexcept override;

private:
    friend class DirectLanes;
    explicit DirectLink(DirectLanes& lanes) : lanes_(lanes) {}
    [[nodiscard]] Status make_region();

    DirectLanes& lanes_;       // outlive the link
    std::uint64_t token_ = 0;  // this end's token: the key of its rings, which also marks its region
    ByteBuffer offer_;
    Descriptor file_;                 // the file of region_, until the peer has mapped it
    MappedRegion region_;             // this end's region, which the peer writes
    std::shared_ptr<Region> remote_;  // the peer's region, which may be used after the link: free_pages()
    struct Freeing;
    std::shared_ptr<Freeing> freeing_;  // since free_pages() was called last
    PeersBells::Use peers_bell_;
    std::optional<std::uint32_t> place_;  // the peer's, on this end's board
    MappedBoard peers_board_;
    PlaceOnBoard on_peers_board_;
    std::size_t warm_at_ = 0;  // its place in DirectLanes::warm_
};

}  // namespace rove::fabric
