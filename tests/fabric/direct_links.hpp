// Two direct links of this process, and what a hostile peer could do with their offers.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>

#include "fabric/mapped_region.hpp"
#include "fabric/proc_file.hpp"
#include "fabrics.hpp"

namespace rove::fabric {

// The offer of docs/frames.md, field by field.
struct Offer {
    std::uint8_t version = 0;
    std::string boot_id;
    std::uint32_t pid = 0;
    std::uint64_t token = 0;
    ProcFile mailbox, bell, board;
    std::uint32_t place = 0;

    static Offer of(const ByteBuffer& bytes) {
        Reader in(bytes);
        Offer offer;
        offer.version = in.number<std::uint8_t>();
        offer.boot_id = as_text(in.take(36));
        offer.pid = in.number<std::uint32_t>();
        offer.token = in.number<std::uint64_t>();
        offer.mailbox = ProcFile::read_from(in);
        offer.bell = ProcFile::read_from(in);
        offer.board = ProcFile::read_from(in);
        offer.place = in.number<std::uint32_t>();
        EXPECT_TRUE(in.done());
        return offer;
    }
    [[nodiscard]] ByteBuffer bytes() const {
        Writer out;
        out.number(version);
        out.bytes(as_bytes(boot_id));
        out.number(pid);
        out.number(token);
        mailbox.write_to(out);
        bell.write_to(out);
        board.write_to(out);
        out.number(place);
        return out.take();
    }
};

class Direct : public testing::Test {
protected:
    std::unique_ptr<Fabric> fabric_a = std::move(*open_local_fabric({.stream = false}));
    std::unique_ptr<Fabric> fabric_b = std::move(*open_local_fabric({.stream = false}));
    std::unique_ptr<Link> a = std::move(*fabric_a->open_link());
    std::unique_ptr<Link> b = std::move(*fabric_b->open_link());

    void expect_refused(const Offer& offer, const std::string& what) {
        const Status status = b->connect(offer.bytes());
        ASSERT_FALSE(status) << what;
        EXPECT_EQ(ErrorCode::unsupported, status.error().code()) << what << ": " << status.error().message();
        EXPECT_EQ(Lane::none, b->lane()) << what;
        EXPECT_EQ(nullptr, b->reserve(Traffic::calls, wire::kHeaderBytes)) << what;
    }
    // An offer that names this process's file instead of the mailbox.
    Offer with_mailbox(int file) {
        Offer offer = Offer::of(a->offer());
        offer.mailbox = *ProcFile::of(file);
        return offer;
    }
};

inline std::size_t count_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// The peer is in this process: its region is the one mapping of that file here that `b` did not make.
class OfPeer {
public:
    explicit OfPeer(const ByteBuffer& offer) {
        const Offer read = Offer::of(offer);
        const auto file = read.mailbox.open(read.pid, S_IFREG);
        if (file) region_ = map_memory<Region>(MAP_SHARED, file->number());
    }
    Region* operator->() { return region_.get(); }

private:
    MappedRegion region_;
};

inline int bells_in(int descriptor) {
    std::array<char, 8192> bells{};
    return static_cast<int>(read(descriptor, bells.data(), bells.size()));
}

// The receiver's board, as one of its peers has it mapped.
inline MappedBoard board_of(const ByteBuffer& offer) {
    const Offer read = Offer::of(offer);
    const auto file = read.board.open(read.pid, S_IFREG);
    return file ? map_memory<BoardMemory>(MAP_SHARED, file->number()) : MappedBoard();
}

}  // namespace rove::fabric
