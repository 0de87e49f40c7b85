// Buffer<T>: typed memory on another node.
//
//   auto a = peer.allocate<double>(n).get();      // zeros
//   peer.put(host, a).get();                      // host: anything that a std::span<const double> can be made of
//   double c = peer.sync(rove::fn<inner_product>, a, b, n);     // there a and b are std::span<double>
//
// A Buffer is shared by its copies and by what `+` and subspan make of it; the memory is freed with the last of them, or when
// this process ends. It belongs to the link over which it was allocated: where that was lost, every use of the buffer is
// `disconnected`, also after the node was met again. Where the node is on the same machine, put and get copy straight to and from its
// memory. They may be called from any thread; that two transfers do not overlap is for the caller to see to, as is that nobody uses
// what he overwrites. Destructors never wait and never throw, also after the Node.
#pragma once

#include <cstdint>
#include <memory>
#include <ranges>
#include <span>

#include "rove/call.hpp"
#include "rove/node.hpp"
#include "rove/offload.hpp"

namespace rove {

namespace detail {

// An allocation that was asked for.
struct Allocation {
    rove_pending pending;
    std::uint64_t meeting;  // with the peer, in which it was asked for
};

// An allocation on another node, and how to reach it. Limits are as of rove::Within: for everything until the Call's end, and negative
// ones are for ever. (librove, buffer.cpp)
class Memory {
public:
    // Begins an allocation, and makes sense of its result.
    static Allocation allocate(const Peer& peer, std::uint64_t bytes, std::int64_t limit_ns);
    static std::shared_ptr<Memory> adopt(const Peer& peer, std::uint64_t meeting, std::uint64_t bytes,
                                         const void* result, std::size_t size);
    ~Memory();
    Memory(const Memory&) = delete;

    [[nodiscard]] Call<> put(std::uint64_t offset, std::span<const std::byte> from, std::int64_t limit_ns = -1) const;
    [[nodiscard]] Call<> get(std::uint64_t offset, std::span<std::byte> into, std::int64_t limit_ns = -1) const;
    static Call<> copy(const Memory& from, std::uint64_t from_offset, const Memory& to, std::uint64_t to_offset,
                       std::uint64_t bytes, std::int64_t limit_ns = -1);
    [[nodiscard]] const Peer& peer() const { return peer_; }
    // For a use of it now. disconnected: it went with its link; cancelled: the Node is gone.
    [[nodiscard]] std::uint64_t key() const;
    [[nodiscard]] bool is_mapped() const { return mapped_ != nullptr; }

private:
    Memory(Peer peer, std::uint64_t meeting, std::uint64_t key, std::uint64_t bytes)
        : peer_(std::move(peer)), meeting_(meeting), key_(key), bytes_(bytes) {}
    void check_in_use() const;
    [[nodiscard]] std::byte* mapped_part(std::uint64_t offset, std::size_t bytes) const;
    Peer peer_;
    std::uint64_t meeting_;
    std::uint64_t key_;
    std::uint64_t bytes_;
    std::byte* mapped_ = nullptr;  // the same memory, here
};

}  // namespace detail

template <typename T>
class Buffer {
    static_assert(travel::Bitwise<T>, "rove: a buffer holds what can be copied bytewise");

public:
    Buffer() = default;  // of nothing
    [[nodiscard]] std::uint32_t node() const { return memory().peer().node(); }
    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    // The rest of it from there on, and a part of it; they keep all of it alive. invalid: beyond its end.
    [[nodiscard]] Buffer operator+(std::size_t index) const {
        return subspan(index, index <= count_ ? count_ - index : 0);
    }
    [[nodiscard]] Buffer subspan(std::size_t index, std::size_t count) const {
        if (index > count_ || count > count_ - index)
            throw_error(ErrorCode::invalid, std::to_string(count) + " elements from number " + std::to_string(index) +
                                                " on are not in a buffer of " + std::to_string(count_));
        return Buffer(memory_, first_ + index, count);
    }

    // For rove's own templates.
    Buffer(std::shared_ptr<detail::Memory> memory, std::size_t first, std::size_t count)
        : memory_(std::move(memory)), first_(first), count_(count) {}
    [[nodiscard]] detail::Memory& memory() const {
        if (!memory_) throw_error(ErrorCode::invalid, "this buffer was never allocated");
        return *memory_;
    }
    [[nodiscard]] std::uint64_t offset_bytes() const { return first_ * sizeof(T); }

private:
    std::shared_ptr<detail::Memory> memory_;
    std::size_t first_ = 0;
    std::size_t count_ = 0;
};

// An allocation in flight.
template <typename T>
class [[nodiscard]] Call<Buffer<T>> {
public:
    using Value = Buffer<T>;
    Call(const detail::Allocation& begun, Peer peer, std::size_t count)
        : pending_(begun.pending), meeting_(begun.meeting), peer_(std::move(peer)), count_(count) {}
    [[nodiscard]] bool done() const { return rove_pending_done(&pending_.raw()) != 0; }
    template <typename Rep, typename Period>
    bool wait_for(std::chrono::duration<Rep, Period> time) const {
        return rove_pending_wait(&pending_.raw(), detail::ns_of(time)) == ROVE_OK;
    }
    Buffer<T> get() {
        const detail::Dropping dropping{pending_};
        const void* data = nullptr;
        std::size_t size = 0;
        detail::check(rove_pending_result(&pending_.raw(), &data, &size));
        return Buffer<T>(detail::Memory::adopt(peer_, meeting_, count_ * sizeof(T), data, size), 0, count_);
    }
    void cancel() { rove_pending_cancel(&pending_.raw()); }
    // As of any other Call.
    template <typename Callback>
    void then(Callback callback) && {
        detail::then(std::move(*this), std::move(callback));
    }
    template <typename Callback>
    void then(Callback callback) & {
        std::move(*this).then(std::move(callback));
    }
    [[nodiscard]] detail::Awaiter<Call> operator co_await() & { return detail::Awaiter<Call>(*this); }
    [[nodiscard]] detail::Awaiter<Call> operator co_await() && { return detail::Awaiter<Call>(*this); }
    Buffer<T> await_resume() { return get(); }
    [[nodiscard]] const rove_pending* raw() const { return &pending_.raw(); }

private:
    detail::Pending pending_;
    std::uint64_t meeting_;
    Peer peer_;
    std::size_t count_;
};

namespace detail {

// Another node as the node that a function runs on knows it. invalid: there is no link to it. (librove, buffer.cpp)
Peer peer_of(rove_here* here, std::uint32_t node);

template <typename T>
ViewHead view_of(const Buffer<T>& buffer) {
    return {.buffer = buffer.memory().key(), .offset = buffer.offset_bytes(), .count = buffer.size()};
}
inline void check_sizes(std::size_t from, std::size_t to) {
    if (from > to)
        throw_error(ErrorCode::invalid, std::to_string(from) + " elements do not fit into " + std::to_string(to));
}

}  // namespace detail

// From any node to any other: from node to node where those two know each other, else through this process. invalid: `to` is smaller.
template <typename T>
Call<> copy(Within limit, const Buffer<T>& from, const Buffer<T>& to) {
    detail::check_sizes(from.size(), to.size());
    return detail::Memory::copy(from.memory(), from.offset_bytes(), to.memory(), to.offset_bytes(),
                                from.size() * sizeof(T), limit.ns);
}
template <typename T>
Call<> copy(const Buffer<T>& from, const Buffer<T>& to) {
    return copy(Within{-1}, from, to);
}

template <typename T>
Call<Buffer<T>> Peer::allocate(Within limit, std::size_t count) const {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
        throw_error(ErrorCode::invalid, "a buffer of " + std::to_string(count) + " elements is larger than any memory");
    return Call<Buffer<T>>(detail::Memory::allocate(*this, count * sizeof(T), limit.ns), *this, count);
}
template <typename T>
Call<Buffer<T>> Peer::allocate(std::size_t count) const {
    return allocate<T>(Within{limit_ns_}, count);
}
template <typename Range, typename T>
Call<> Peer::put(Within limit, const Range& from, const Buffer<T>& to) const {
    const std::span<const T> host(from);
    detail::check_sizes(host.size(), to.size());
    return to.memory().put(to.offset_bytes(), std::as_bytes(host), limit.ns);
}
template <typename T>
Call<Buffer<T>> HerePeer::allocate(std::size_t count) const {
    return allocate<T>(Within{-1}, count);
}
template <typename T>
Call<Buffer<T>> HerePeer::allocate(Within limit, std::size_t count) const {
    return detail::peer_of(here_, node_).template allocate<T>(limit, count);
}
template <typename Range, typename T>
Call<> Peer::put(const Range& from, const Buffer<T>& to) const {
    return put(Within{limit_ns_}, from, to);
}
template <typename T, typename Range>
Call<> Peer::get(Within limit, const Buffer<T>& from, Range&& into) const {
    const std::span<T> host(into);
    detail::check_sizes(from.size(), host.size());
    return from.memory().get(from.offset_bytes(), std::as_writable_bytes(host.first(from.size())), limit.ns);
}
template <typename T, typename Range>
Call<> Peer::get(const Buffer<T>& from, Range&& into) const {
    return get(Within{limit_ns_}, from, std::forward<Range>(into));
}

}  // namespace rove
