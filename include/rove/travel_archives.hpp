// The bytes of arguments and results, and cereal's way to write and read them: part of rove/travel.hpp, which includes it.
#pragma once

#include <array>
#include <cereal/cereal.hpp>
#include <cereal/types/memory.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "rove/edge.h"
#include "rove/error.hpp"
#include "rove/rove.h"

namespace rove::travel {

[[noreturn]] inline void cut_short() {
    throw_error(ErrorCode::invalid,
                "the bytes of an argument or a result end too early, or say that there are more than there are");
}

[[noreturn]] inline void too_long() {
    throw_error(
        ErrorCode::invalid,
        "more bytes came than the arguments or the result are made of; does each type's load() read all that its "
        "save() writes?");
}

// How deep values may hold values: objects, containers and pointers count, the numbers in them do not. Reading and writing one level
// takes some 1 KiB of stack unoptimised, and 5 KiB with the address sanitizer: 512 levels are 2.5 MiB of a thread's 8.
inline constexpr unsigned kDepthMax = 512;

class Depth {
public:
    void enter() {
        if (++depth_ > kDepthMax)
            throw_error(ErrorCode::invalid, "an argument or a result holds values in values more than " +
                                                std::to_string(kDepthMax) +
                                                " deep, which is the limit: send the nodes as a vector instead");
    }
    void leave() { --depth_; }

private:
    unsigned depth_ = 0;
};

// The shared objects whose content is being written or read. A std::shared_ptr to one of them would make it hold itself, and so never
// be freed; a std::weak_ptr may name it.
class OpenObjects {
public:
    // Around each pointer; begin() says that its object's content follows.
    void enter() { open_.push_back({0, std::exchange(next_is_weak_, false)}); }
    void leave() { open_.pop_back(); }
    void enter_weak() { next_is_weak_ = true; }
    void begin(std::uint32_t number) { open_.back().number = number; }
    void check(std::uint32_t number) const {
        if (open_.back().weak) return;
        for (const Open& each : open_)
            if (each.number == number)
                throw_error(
                    ErrorCode::invalid,
                    "a std::shared_ptr in an argument or a result leads back to the object that holds it, which "
                    "would never be freed; make the way back a std::weak_ptr");
    }

private:
    struct Open {
        std::uint32_t number;
        bool weak;
    };
    std::vector<Open> open_;  // kDepthMax at most
    bool next_is_weak_ = false;
};

// What is as large as this, and stays as it is until it has been sent, is left in its place. A frame carries less: what fits one is
// one run of bytes.
inline constexpr std::size_t kInPlaceBytesMin = 256UL * 1024;
inline constexpr std::size_t kInPlaceMax = 8;  // of them; the others are copied

// Appends to a growing buffer, as long as it is within what a message may have; what is beyond that is only counted. Large bytes
// that last are not copied, but named at their place among the others.
class Output {
public:
    explicit Output(std::vector<std::byte>& to) : to_(to) {}
    // All that was written, in its order: valid until more is.
    struct Whole {
        std::array<rove_piece, 2 * kInPlaceMax + 1> pieces;
        std::size_t count = 0;
        [[nodiscard]] std::span<const rove_piece> all() const { return {pieces.data(), count}; }
    };
    [[nodiscard]] Whole whole() const {
        Whole whole;
        std::size_t at = 0;
        for (std::size_t i = 0; i < in_place_count_; ++i) {
            if (in_place_[i].at > at) whole.pieces[whole.count++] = {to_.data() + at, in_place_[i].at - at};
            whole.pieces[whole.count++] = in_place_[i].piece;
            at = in_place_[i].at;
        }
        if (at < to_.size() || whole.count == 0) whole.pieces[whole.count++] = {to_.data() + at, to_.size() - at};
        return whole;
    }
    // As write(), for bytes that stay as they are until the whole has been sent.
    void write_lasting(const void* data, std::size_t bytes) {
        if (bytes < kInPlaceBytesMin || in_place_count_ == kInPlaceMax) return write(data, bytes);
        if (grow(bytes)) in_place_[in_place_count_++] = {to_.size(), {data, bytes}};
    }
    void write(const void* data, std::size_t bytes) {
        const auto* first = static_cast<const std::byte*>(data);
        if (grow(bytes)) append(first, bytes);
    }
    void align(std::size_t alignment) {
        const std::size_t lacks = (alignment - size_ % alignment) % alignment;
        if (grow(lacks)) to_.resize(to_.size() + lacks);
    }
    // Of all that was written, kept or not.
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] bool fits() const { return size_ <= ROVE_MESSAGE_BYTES_MAX; }

private:
    // Not inlined: where g++ 12 knows how many bytes a value has it believes that they are written beyond the vector's first ones, and
    // warns of it.
    [[gnu::noinline]] void append(const std::byte* first, std::size_t bytes) {
        to_.insert(to_.end(), first, first + bytes);
    }
    bool grow(std::size_t bytes) {
        size_ += bytes;
        return fits();
    }
    struct InPlace {
        std::size_t at;  // before which byte of the buffer
        rove_piece piece;
    };
    std::vector<std::byte>& to_;
    std::size_t size_ = to_.size();
    std::array<InPlace, kInPlaceMax> in_place_{};
    std::size_t in_place_count_ = 0;
};

// cereal's way to write to it.
class OutputArchive : public cereal::OutputArchive<OutputArchive, cereal::AllowEmptyClassElision> {
public:
    explicit OutputArchive(Output& out)
        : cereal::OutputArchive<OutputArchive, cereal::AllowEmptyClassElision>(this), out_(out) {}
    void write(const void* data, std::size_t bytes) { out_.write(data, bytes); }
    [[nodiscard]] Depth& depth() { return depth_; }

    [[nodiscard]] OpenObjects& open() { return open_; }

    // cereal asks this in place of its own: the object's number, with the top bit set where its content is to follow. Objects of
    // two types at one address (an object and its first member) have two numbers, so that a number says the type.
    template <typename T>
    std::uint32_t registerSharedPointer(const std::shared_ptr<T>& object) {
        if (!object) return 0;
        const auto [found, is_new] =
            shared_.try_emplace({object.get(), typeid(T)}, static_cast<std::uint32_t>(shared_.size() + 1), object);
        const std::uint32_t number = found->second.first;
        if (!is_new) open_.check(number);
        if (is_new) open_.begin(number);
        return is_new ? number | cereal::detail::msb_32bit : number;
    }

private:
    Output& out_;
    Depth depth_;
    OpenObjects open_;
    // The objects are kept, so that no other one takes an address over.
    std::map<std::pair<const void*, std::type_index>, std::pair<std::uint32_t, std::shared_ptr<const void>>> shared_;
};

// Reads from bytes that stay where they are; begins on a multiple of 16.
class Input {
public:
    Input(const void* data, std::size_t bytes) : begin_(static_cast<const std::byte*>(data)), bytes_(bytes) {}
    // Precondition: there are so many.
    [[nodiscard]] const std::byte* take_unchecked(std::size_t bytes) {
        return begin_ + std::exchange(at_, at_ + bytes);
    }
    [[nodiscard]] const std::byte* take(std::size_t bytes) {
        if (bytes > bytes_ - at_) cut_short();
        return begin_ + std::exchange(at_, at_ + bytes);
    }
    void read(void* into, std::size_t bytes) {
        const std::byte* from = take(bytes);
        if (bytes > 0) std::memcpy(into, from, bytes);
    }
    void align(std::size_t alignment) { (void)take((at_ + alignment - 1) / alignment * alignment - at_); }
    [[nodiscard]] std::size_t left() const { return bytes_ - at_; }
    // All has been read: what is left would be taken for something else, or be lost.
    void finish() const {
        if (left() > 0) too_long();
    }

private:
    const std::byte* begin_;
    std::size_t bytes_;
    std::size_t at_ = 0;
};

// `count` values that lie there as bytes. Where they are aligned the container is made of them, and not of zeros first.
template <typename Container>
Container read_values(Input& in, std::size_t count) {
    using T = typename Container::value_type;
    if (count > in.left() / sizeof(T)) cut_short();
    if (count == 0) return Container();  // which has no place that bytes could be copied to
    const std::byte* const bytes = in.take(count * sizeof(T));
    if (reinterpret_cast<std::uintptr_t>(bytes) % alignof(T) == 0) {
        const T* const first = std::launder(reinterpret_cast<const T*>(bytes));
        return Container(first, first + count);
    }
    if constexpr (std::is_default_constructible_v<T>) {
        Container values(count, T());
        std::memcpy(values.data(), bytes, count * sizeof(T));
        return values;
    } else {
        Container values;
        values.reserve(count);
        for (std::size_t i = 0; i < count; ++i) {
            alignas(T) std::array<std::byte, sizeof(T)> value;
            std::memcpy(value.data(), bytes + i * sizeof(T), sizeof(T));
            values.push_back(*std::launder(reinterpret_cast<const T*>(value.data())));
        }
        return values;
    }
}

// cereal's way to read from it.
class InputArchive : public cereal::InputArchive<InputArchive, cereal::AllowEmptyClassElision> {
public:
    explicit InputArchive(Input& in)
        : cereal::InputArchive<InputArchive, cereal::AllowEmptyClassElision>(this), in_(in) {}
    void read(void* into, std::size_t bytes) { in_.read(into, bytes); }
    [[nodiscard]] Input& input() { return in_; }
    [[nodiscard]] std::size_t left() const { return in_.left(); }
    [[nodiscard]] Depth& depth() { return depth_; }

    // cereal asks these two in place of its own. The writer numbers objects in the order in which they are written; a number is good
    // for pointers to the type that it was given for, and no other.
    template <typename T>
    void registerSharedPointer(std::uint32_t number, const std::shared_ptr<T>& object) {
        if ((number & ~cereal::detail::msb_32bit) != shared_.size() + 1) wrong_shared();
        shared_.push_back({object, &typeid(T)});
        open_.begin(number & ~cereal::detail::msb_32bit);
    }
    std::shared_ptr<void> getSharedPointer(std::uint32_t number) {
        if (number == 0) return nullptr;
        if (number > shared_.size() || wanted_ == nullptr || *shared_[number - 1].type != *wanted_) wrong_shared();
        open_.check(number);
        return shared_[number - 1].object;
    }
    [[nodiscard]] OpenObjects& open() { return open_; }
    // The type of the shared_ptr that is read next.
    void want(const std::type_info& type) { wanted_ = &type; }

private:
    [[noreturn]] static void wrong_shared() {
        throw_error(
            ErrorCode::invalid,
            "a std::shared_ptr in an argument or a result names an object that does not come before it, or one of "
            "another type");
    }
    struct Shared {
        std::shared_ptr<void> object;
        const std::type_info* type;
    };
    Input& in_;
    Depth depth_;
    OpenObjects open_;
    std::vector<Shared> shared_;
    const std::type_info* wanted_ = nullptr;
};

// Elements that take no bytes cannot be counted by the bytes that are left.
inline constexpr std::size_t kWeightlessElementsMax = 4096;

// The number of elements that a container begins with.
inline std::size_t read_count(InputArchive& in) {
    std::uint64_t count = 0;
    in.read(&count, sizeof count);
    if (count > in.left() && count > kWeightlessElementsMax) cut_short();
    return static_cast<std::size_t>(count);
}

}  // namespace rove::travel
