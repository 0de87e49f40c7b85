// The bytes of arguments and results, and the archives by which cereal writes and reads them.
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

#include "rove/detail/throw.hpp"
#include "rove/edge.h"
#include "rove/rove.h"
#include "rove/travel.hpp"

namespace rove::detail::travel {

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

class Depth {
public:
    void enter() {
        if (++depth_ > kValueDepthMax)
            throw_error(ErrorCode::invalid, "an argument or a result holds values in values more than " +
                                                std::to_string(kValueDepthMax) +
                                                " deep, which is the limit: send the nodes as a vector instead");
    }
    void leave() { --depth_; }

private:
    unsigned depth_ = 0;
};

// The shared objects whose content is being written or read. A std::shared_ptr to one of them would make the object hold itself, so that it is
// never freed; a std::weak_ptr to it is allowed.
class OpenObjects {
public:
    // Called around each pointer; begin() says that its object's content follows.
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
    std::vector<Open> open_;  // kValueDepthMax at most
    bool next_is_weak_ = false;
};

// Bytes that do not change until they have been sent are referenced instead of copied from this size on. A frame carries less, so a payload
// that fits into one frame is one run of bytes.
inline constexpr std::size_t kInPlaceBytesMin = 256UL * 1024;
inline constexpr std::size_t kInPlaceMax = 8;  // references in one payload; further ones are copied

// Appends to a growing buffer up to ROVE_MESSAGE_BYTES_MAX; bytes beyond that are only counted. Large bytes that do not change are not
// copied, but referenced at their position among the others.
class Output {
public:
    explicit Output(std::vector<std::byte>& to) : to_(to) {}
    // Everything that was written, in its order; valid until the next write.
    struct Whole {
        std::array<rove_piece, 2 * kInPlaceMax + 1>
            pieces;  // the references, and the copied bytes between and around them
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
    // write() for bytes that do not change until all has been sent.
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
    // The size of everything that was written, including bytes that were only counted.
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] bool fits() const { return size_ <= ROVE_MESSAGE_BYTES_MAX; }

private:
    // Not inlined: if g++ 12 knows the size of a value, it wrongly warns that the bytes are written beyond the vector's first ones.
    [[gnu::noinline]] void append(const std::byte* first, std::size_t bytes) {
        to_.insert(to_.end(), first, first + bytes);
    }
    bool grow(std::size_t bytes) {
        size_ += bytes;
        return fits();
    }
    struct InPlace {
        std::size_t at;  // precedes this byte of the buffer
        rove_piece piece;
    };
    std::vector<std::byte>& to_;
    std::size_t size_ = to_.size();
    std::array<InPlace, kInPlaceMax> in_place_{};
    std::size_t in_place_count_ = 0;
};

// The archive by which cereal writes to an Output.
class OutputArchive : public cereal::OutputArchive<OutputArchive, cereal::AllowEmptyClassElision> {
public:
    explicit OutputArchive(Output& out)
        : cereal::OutputArchive<OutputArchive, cereal::AllowEmptyClassElision>(this), out_(out) {}
    void write(const void* data, std::size_t bytes) { out_.write(data, bytes); }
    [[nodiscard]] Depth& depth() { return depth_; }

    [[nodiscard]] OpenObjects& open() { return open_; }

    // Replaces cereal's own: the object's number, with the top bit set if its content is to follow. Objects of
    // two types at one address (an object and its first member) have two numbers, so that a number implies the type.
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
    // The objects are kept alive, so that no other object can get the same address.
    std::map<std::pair<const void*, std::type_index>, std::pair<std::uint32_t, std::shared_ptr<const void>>> shared_;
};

// The number that CEREAL_CLASS_VERSION has given to T. cereal keeps it in a variable of each source file, which does not travel; an
// inline one does, and is made before any thread of the program, or the code's first caller on a node, can read it.
template <typename T>
inline const std::uint32_t kVersionOf = cereal::detail::Version<T>::registerVersion();
template <typename T>
std::uint32_t version_of() {
    if constexpr (requires { cereal::detail::Version<T>::registerVersion(); })
        return kVersionOf<T>;
    else
        return cereal::detail::Version<T>::version;
}

// Reads from bytes that outlive it; they begin on a multiple of 16.
class Input {
public:
    Input(const void* data, std::size_t bytes) : begin_(static_cast<const std::byte*>(data)), bytes_(bytes) {}
    // Precondition: that many bytes are left.
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
    // Called after everything has been read. invalid: bytes are left, so the two sides disagree on the types.
    void finish() const {
        if (left() > 0) too_long();
    }

private:
    const std::byte* begin_;
    std::size_t bytes_;
    std::size_t at_ = 0;
};

// `count` values that were written as bytes. If they are aligned the container is constructed from them directly, not zeroed first.
template <typename Container>
Container read_values(Input& in, std::size_t count) {
    using T = typename Container::value_type;
    if (count > in.left() / sizeof(T)) cut_short();
    if (count == 0) return Container();  // an empty container has no memory to copy to
    const std::byte* const bytes = in.take(count * sizeof(T));
    if (reinterpret_cast<std::uintptr_t>(bytes) % alignof(T) == 0) {
        const T* const first = std::launder(reinterpret_cast<const T*>(bytes));
        return Container(first, first + count);
    }
    if constexpr (std::is_default_constructible_v<T>) {
        Container values(count, T());
        std::memcpy(static_cast<void*>(values.data()), bytes, count * sizeof(T));
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

// The archive by which cereal reads from an Input.
class InputArchive : public cereal::InputArchive<InputArchive, cereal::AllowEmptyClassElision> {
public:
    explicit InputArchive(Input& in)
        : cereal::InputArchive<InputArchive, cereal::AllowEmptyClassElision>(this), in_(in) {}
    void read(void* into, std::size_t bytes) { in_.read(into, bytes); }
    [[nodiscard]] Input& input() { return in_; }
    [[nodiscard]] std::size_t left() const { return in_.left(); }
    [[nodiscard]] Depth& depth() { return depth_; }

    // These two replace cereal's own. The writer numbers objects in the order in which they are written; a number is valid only
    // for pointers to the type for which it was assigned.
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

// The largest number of elements that take no bytes; the bytes that are left do not bound it.
inline constexpr std::size_t kWeightlessElementsMax = 4096;

// The number of elements that a container begins with.
inline std::size_t read_count(InputArchive& in) {
    std::uint64_t count = 0;
    in.read(&count, sizeof count);
    if (count > in.left() && count > kWeightlessElementsMax) cut_short();
    return static_cast<std::size_t>(count);
}

}  // namespace rove::detail::travel

namespace cereal {

// Replaces cereal's own, which reads the variable, and looks the number up in a table that several threads would change at once.
template <>
template <typename T>
std::uint32_t
OutputArchive<rove::detail::travel::OutputArchive, cereal::AllowEmptyClassElision>::registerClassVersion() {
    const std::uint32_t version = rove::detail::travel::version_of<T>();
    if (itsVersionedTypes.insert(std::type_index(typeid(T)).hash_code()).second) process(version);
    return version;
}

}  // namespace cereal
