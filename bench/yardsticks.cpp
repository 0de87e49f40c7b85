#include "bench/yardsticks.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace rove::bench {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kRing = 1024 * 1024;
constexpr std::size_t kHeader = 32;  // as much as a frame of Rove's has
constexpr std::uint64_t kBank = kRing / 8;

struct alignas(kLine) Word {
    std::atomic<std::uint64_t> value{0};
};

struct alignas(4096) Ring {
    std::byte bytes[kRing];
    Word credit;  // bytes read
};

std::atomic_ref<std::uint64_t> word_at(Ring& ring, std::uint64_t position) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(ring.bytes + position % kRing));
}

// Reads `frames` of them; gives what they add up to.
std::uint64_t read_all(Ring& ring, RingWork work, std::size_t stride, std::size_t payload, std::uint64_t frames) {
    std::uint64_t position = 0, given = 0, total = 0;
    for (std::uint64_t number = 1; number <= frames; ++number) {
        if (position % kRing + stride > kRing) position += kRing - position % kRing;
        while (word_at(ring, position).load(std::memory_order_acquire) != number) arch::pause();
        const auto* words = reinterpret_cast<const std::uint64_t*>(ring.bytes + position % kRing + kHeader);
        const std::size_t count = work == RingWork::sum ? payload / 8 : 1;
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < count; ++i) sum += words[i];
        total += sum;
        position += stride;
        if (position - given >= kBank) {
            given = position;
            ring.credit.value.store(given, std::memory_order_release);
        }
    }
    return total;
}

// One writer that knows what it writes: the payload is copied, then the number stored.
void write_all(Ring& ring, const std::vector<std::byte>& payload, std::size_t stride, std::uint64_t frames) {
    std::uint64_t position = 0, credit = 0;
    for (std::uint64_t number = 1; number <= frames; ++number) {
        if (position % kRing + stride > kRing) position += kRing - position % kRing;
        while (position + stride - credit > kRing) credit = ring.credit.value.load(std::memory_order_acquire);
        std::memcpy(ring.bytes + position % kRing + kHeader, payload.data(), payload.size());
        word_at(ring, position).store(number, std::memory_order_release);
        position += stride;
    }
}

}  // namespace

double cache_line_ns(const Cores& cores) {
    constexpr std::uint64_t kRounds = 60'000;
    Word there, back;
    std::thread other([&] {
        pin_to(cores.node);
        for (std::uint64_t i = 1; i <= kRounds; ++i) {
            while (there.value.load(std::memory_order_acquire) != i) arch::pause();
            back.value.store(i, std::memory_order_release);
        }
    });
    std::vector<double> rounds;
    std::thread one([&] {
        pin_to(cores.client);
        std::uint64_t last = ticks();
        for (std::uint64_t i = 1; i <= kRounds; ++i) {
            there.value.store(i, std::memory_order_release);
            while (back.value.load(std::memory_order_acquire) != i) arch::pause();
            const std::uint64_t now = ticks();
            if (i > kRounds / 6) rounds.push_back(static_cast<double>(now - last) * ns_per_tick());
            last = now;
        }
    });
    one.join();
    other.join();
    return median(rounds) / 2;
}

double kernel_wake_ns(const Cores& cores, unsigned wakes) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) != 0) return 0;
    Word woken;
    std::thread sleeper([&] {
        pin_to(cores.node);
        char byte = 0;
        for (std::uint64_t i = 1; i <= wakes && recv(ends[1], &byte, 1, 0) == 1; ++i)
            woken.value.store(i, std::memory_order_release);
    });
    std::vector<double> times;
    std::thread waker([&] {
        pin_to(cores.client);
        for (std::uint64_t i = 1; i <= wakes; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            const std::uint64_t begin = ticks();
            if (send(ends[0], "", 1, 0) != 1) return;
            while (woken.value.load(std::memory_order_acquire) != i) arch::pause();
            times.push_back(static_cast<double>(ticks() - begin) * ns_per_tick());
        }
    });
    waker.join();
    close(ends[0]);
    sleeper.join();
    close(ends[1]);
    return median(times);
}

double raw_ring_per_second(const Cores& cores, RingWork work, std::size_t payload_bytes, std::uint64_t frames) {
    const auto ring = std::make_unique<Ring>();
    std::memset(static_cast<void*>(ring.get()), 0, sizeof(Ring));
    const std::size_t stride = (kHeader + payload_bytes + kLine - 1) / kLine * kLine;
    std::vector<std::byte> payload(std::max<std::size_t>(payload_bytes, 8));
    payload[0] = std::byte{1};
    std::uint64_t total = 0;
    std::thread reader([&] {
        pin_to(cores.node);
        total = read_all(*ring, work, stride, payload_bytes, frames);
    });
    std::uint64_t begin = 0;
    std::thread writer([&] {
        pin_to(cores.client);
        begin = ticks();
        write_all(*ring, payload, stride, frames);
    });
    writer.join();
    reader.join();
    const double seconds = static_cast<double>(ticks() - begin) * ns_per_tick() * 1e-9;
    if (total != frames) throw std::logic_error("the raw ring lost frames");
    return static_cast<double>(frames) / seconds;
}

}  // namespace rove::bench
