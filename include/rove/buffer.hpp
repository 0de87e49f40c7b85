// Buffer<T>: typed memory on another node.
//
//   auto a = peer.allocate<double>(n).get();      // zeros
//   peer.put(host, a).get();                      // host: anything from which a std::span<const double> can be made
//   double c = peer.sync(rove::fn<inner_product>, a, b, n);     // there a and b are std::span<double>
//
// Ownership: the copies of a Buffer, and the parts that `+` and subspan make of it, share one allocation. It is freed after the last of
// them is destroyed, or when this process ends. It belongs to the link over which it was allocated: if that link is lost, every use of the
// buffer is `disconnected`, also after the two nodes have connected again. Destructors never wait and never throw, and may run after the
// Node's.
// Threads: any. The caller must prevent transfers that overlap, and transfers from memory that is being changed.
// Cost: if the node is on the same machine, put and get are one copy, straight to or from its memory; otherwise calls of 16 MiB.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "rove/call.hpp"
#include "rove/detail/memory.hpp"
#include "rove/detail/send.hpp"
#include "rove/node.hpp"

namespace rove {

// `size()` values of type T on the node `node()`.
template <typename T>
class Buffer {
    static_assert(
        detail::travel::Bitwise<T>,
        "rove: a buffer holds what can be copied bytewise: numbers, enumerations and trivially copyable classes "
        "without pointers; another type is if its rove::migratable says that it is safe");

public:
    Buffer() = default;  // refers to nothing; every use is invalid
    [[nodiscard]] std::uint32_t node() const { return memory().peer().node(); }
    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    // The elements from `index` on, all or `count` of them. They keep the whole allocation alive. invalid: beyond the end.
    [[nodiscard]] Buffer operator+(std::size_t index) const {
        return subspan(index, index <= count_ ? count_ - index : 0);
    }
    [[nodiscard]] Buffer subspan(std::size_t index, std::size_t count) const {
        if (index > count_ || count > count_ - index)
            detail::throw_error(ErrorCode::invalid, std::to_string(count) + " elements from number " +
                                                        std::to_string(index) + " on are not in a buffer of " +
                                                        std::to_string(count_));
        return Buffer(memory_, first_ + index, count);
    }

private:
    friend struct detail::Access;
    Buffer(std::shared_ptr<detail::Memory> memory, std::size_t first, std::size_t count)
        : memory_(std::move(memory)), first_(first), count_(count) {}
    [[nodiscard]] detail::Memory& memory() const {
        if (!memory_) detail::throw_error(ErrorCode::invalid, "this buffer was never allocated");
        return *memory_;
    }
    [[nodiscard]] std::uint64_t offset_bytes() const { return first_ * sizeof(T); }

    std::shared_ptr<detail::Memory> memory_;
    std::size_t first_ = 0;
    std::size_t count_ = 0;
};

// Copies all of `from` to the beginning of `to`, from any node to any other: directly where the two nodes know each other, otherwise
// through this process. invalid: `to` is smaller. The Call ends when the copy is complete.
template <typename T>
Call<> copy(Within limit, const Buffer<T>& from, const Buffer<T>& to);
template <typename T>
Call<> copy(const Buffer<T>& from, const Buffer<T>& to);

// An allocation in flight, with the functions of any other Call.
template <typename T>
class [[nodiscard]] Call<Buffer<T>> {
public:
    using Value = Buffer<T>;
    [[nodiscard]] bool done() const { return rove_pending_done(&pending_.raw()) != 0; }
    template <typename Rep, typename Period>
    bool wait_for(std::chrono::duration<Rep, Period> time) const {
        return rove_pending_wait(&pending_.raw(), detail::ns_of(time)) == ROVE_OK;
    }
    Buffer<T> get();
    void cancel() { rove_pending_cancel(&pending_.raw()); }
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

private:
    friend struct detail::Access;
    Call(const detail::Allocation& begun, Peer peer, std::size_t count)
        : pending_(begun.pending), meeting_(begun.meeting), peer_(std::move(peer)), count_(count) {}
    [[nodiscard]] const rove_pending* raw() const { return &pending_.raw(); }

    detail::Pending pending_;
    std::uint64_t meeting_;
    Peer peer_;
    std::size_t count_;
};

// ---- implementation

namespace detail {

template <typename T>
ViewHead view_of(const Buffer<T>& buffer) {
    return {.buffer = Access::memory(buffer).key(), .offset = Access::offset_bytes(buffer), .count = buffer.size()};
}

// The caller's memory that put() reads, or get() writes. `T`: the buffer's element type, const for put().
template <typename T, typename Range>
std::span<T> host_memory(Range& range) {
    constexpr bool kFits = std::is_constructible_v<std::span<T>, Range&>;
    static_assert(
        kFits,
        "rove: put() and get() copy a contiguous range of the buffer's own element type, which get() must be able to "
        "change");
    if constexpr (kFits)
        return std::span<T>(range);
    else
        return {};  // so that there is no other error
}
}  // namespace detail

template <typename T>
Buffer<T> Call<Buffer<T>>::get() {
    const detail::Dropping dropping{pending_};
    const void* data = nullptr;
    std::size_t size = 0;
    detail::check(rove_pending_result(&pending_.raw(), &data, &size));
    return detail::Access::make<Buffer<T>>(detail::Memory::adopt(peer_, meeting_, count_ * sizeof(T), data, size),
                                           std::size_t{0}, count_);
}

template <typename T>
Call<> copy(Within limit, const Buffer<T>& from, const Buffer<T>& to) {
    using detail::Access;
    detail::check_sizes(from.size(), to.size());
    return detail::Memory::copy(Access::memory(from), Access::offset_bytes(from), Access::memory(to),
                                Access::offset_bytes(to), from.size() * sizeof(T), limit.ns);
}
template <typename T>
Call<> copy(const Buffer<T>& from, const Buffer<T>& to) {
    return copy(Within{detail::kForever}, from, to);
}

template <typename T>
Call<Buffer<T>> Peer::allocate(Within limit, std::size_t count) const {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
        detail::throw_error(ErrorCode::invalid,
                            "a buffer of " + std::to_string(count) + " elements is larger than any memory");
    return detail::Access::make<Call<Buffer<T>>>(detail::Memory::allocate(*this, count * sizeof(T), limit.ns), *this,
                                                 count);
}
template <typename T>
Call<Buffer<T>> Peer::allocate(std::size_t count) const {
    return allocate<T>(Within{limits_.time_ns}, count);
}
template <typename Range, typename T>
Call<> Peer::put(Within limit, const Range& from, const Buffer<T>& to) const {
    const auto host = detail::host_memory<const T>(from);
    detail::check_sizes(host.size(), to.size());
    return detail::Access::memory(to).put(detail::Access::offset_bytes(to), std::as_bytes(host), limit.ns);
}
template <typename Range, typename T>
Call<> Peer::put(const Range& from, const Buffer<T>& to) const {
    return put(Within{limits_.time_ns}, from, to);
}
template <typename T, typename Range>
Call<> Peer::get(Within limit, const Buffer<T>& from, Range&& into) const {
    static_assert(
        std::is_lvalue_reference_v<Range> || std::ranges::borrowed_range<Range>,
        "rove: get() would write into a temporary, which is destroyed before the Call has ended; pass a variable");
    const auto host = detail::host_memory<T>(into);
    detail::check_sizes(from.size(), host.size());
    return detail::Access::memory(from).get(detail::Access::offset_bytes(from),
                                            std::as_writable_bytes(host.first(from.size())), limit.ns);
}
template <typename T, typename Range>
Call<> Peer::get(const Buffer<T>& from, Range&& into) const {
    return get(Within{limits_.time_ns}, from, std::forward<Range>(into));
}
template <typename T>
Call<Buffer<T>> HerePeer::allocate(std::size_t count) const {
    return allocate<T>(Within{detail::kForever}, count);
}
template <typename T>
Call<Buffer<T>> HerePeer::allocate(Within limit, std::size_t count) const {
    return detail::peer_of(here_, node_).template allocate<T>(limit, count);
}

}  // namespace rove
