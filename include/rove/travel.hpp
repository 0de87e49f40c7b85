// What can travel as an argument or a result, and how it is written.
//
//   bitwise       trivially copyable, without pointers or references in it: its bytes
//   views         std::span<const T>, std::string_view as arguments: not copied on the receiving side
//   cereal        std::string, vector, optional, variant, tuple, map, unique_ptr, …, and types with a cereal `serialize`
//   migratable    rove::migratable<T>, where it is specialised, has the last word:
//
//       template <> struct rove::migratable<Matrix> {          // travels as another type
//           using wire = std::vector<double>;
//           static wire pack(const Matrix&);
//           static Matrix unpack(wire&&);
//       };
//       template <> struct rove::migratable<Handle> { static constexpr bool safe = false; };  // never travels
//       template <> struct rove::migratable<Union> { static constexpr bool safe = true; };    // its bytes do
//
// Sizes that are read are bounded by the bytes that are left. Both sides are little-endian; types of another size or alignment
// on the other side make another function (rove/function.hpp).
#pragma once

#include <array>
#include <cereal/cereal.hpp>
#include <cereal/types/array.hpp>
#include <cereal/types/deque.hpp>
#include <cereal/types/list.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/memory.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/set.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/tuple.hpp>
#include <cereal/types/unordered_map.hpp>
#include <cereal/types/unordered_set.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "rove/error.hpp"

namespace rove {

template <typename T>
struct migratable {};
// Compilers cannot look into it.
template <typename T>
struct migratable<std::complex<T>> {
    static constexpr bool safe = true;
};

namespace travel {

template <typename T>
concept TravelsAsAnother = requires { typename migratable<T>::wire; };
template <typename T>
concept SaysWhether = requires {
    { migratable<T>::safe } -> std::convertible_to<bool>;
};

template <std::size_t kBytes>
struct RawBytes {
    unsigned char bytes[kBytes];
};
// Nothing in it points anywhere: with a pointer, reference or `this` inside, bytes cannot be cast to it in a constant expression.
template <typename T>
concept WithoutPointers =
    requires { typename std::bool_constant<(static_cast<void>(__builtin_bit_cast(T, RawBytes<sizeof(T)>{})), true)>; };

template <typename T>
struct Element {  // of arrays, so that large ones cost the compiler nothing
    using type = T;
};
template <typename T, std::size_t kCount>
struct Element<std::array<T, kCount>> : Element<T> {};
template <typename T, std::size_t kCount>
struct Element<T[kCount]> : Element<T> {};

template <typename T>
constexpr bool is_bitwise() {
    using E = typename Element<T>::type;
    if constexpr (TravelsAsAnother<E>)
        return false;
    else if constexpr (SaysWhether<E>)
        return migratable<E>::safe;
    else if constexpr (std::is_arithmetic_v<E> || std::is_enum_v<E>)
        return true;
    else if constexpr (std::is_class_v<E> && std::is_trivially_copyable_v<E>)
        return WithoutPointers<E>;
    else
        return false;
}
template <typename T>
concept Bitwise = is_bitwise<T>();

template <typename T>
struct IsStdArray : std::false_type {};
template <typename T, std::size_t kCount>
struct IsStdArray<std::array<T, kCount>> : std::true_type {};
// What cereal is told to take as bytes.
template <typename T>
concept BitwiseClass = std::is_class_v<T> && Bitwise<T> && !IsStdArray<T>::value;

[[noreturn]] inline void cut_short() {
    throw Error(ErrorCode::invalid,
                "the bytes of an argument or a result end too early, or say that there are more than there are");
}

// Appends to a growing buffer.
class Output {
public:
    explicit Output(std::vector<std::byte>& to) : to_(to) {}
    void write(const void* data, std::size_t bytes) {
        const auto* first = static_cast<const std::byte*>(data);
        to_.insert(to_.end(), first, first + bytes);
    }
    void align(std::size_t alignment) { to_.resize((to_.size() + alignment - 1) / alignment * alignment); }

private:
    std::vector<std::byte>& to_;
};

// cereal's way to write to it.
class OutputArchive : public cereal::OutputArchive<OutputArchive, cereal::AllowEmptyClassElision> {
public:
    explicit OutputArchive(Output& out)
        : cereal::OutputArchive<OutputArchive, cereal::AllowEmptyClassElision>(this), out_(out) {}
    void write(const void* data, std::size_t bytes) { out_.write(data, bytes); }

private:
    Output& out_;
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

private:
    const std::byte* begin_;
    std::size_t bytes_;
    std::size_t at_ = 0;
};

// cereal's way to read from it.
class InputArchive : public cereal::InputArchive<InputArchive, cereal::AllowEmptyClassElision> {
public:
    explicit InputArchive(Input& in)
        : cereal::InputArchive<InputArchive, cereal::AllowEmptyClassElision>(this), in_(in) {}
    void read(void* into, std::size_t bytes) { in_.read(into, bytes); }
    [[nodiscard]] std::size_t left() const { return in_.left(); }

private:
    Input& in_;
};

// Elements that take no bytes cannot be counted by the bytes that are left.
inline constexpr std::size_t kWeightlessElementsMax = 4096;

template <typename T>
    requires std::is_arithmetic_v<T>
void CEREAL_SAVE_FUNCTION_NAME(OutputArchive& out, const T& value) {
    out.write(&value, sizeof value);
}
template <typename T>
    requires std::is_arithmetic_v<T>
void CEREAL_LOAD_FUNCTION_NAME(InputArchive& in, T& value) {
    in.read(&value, sizeof value);
}
template <typename T>
void CEREAL_SERIALIZE_FUNCTION_NAME(OutputArchive& out, cereal::NameValuePair<T>& named) {
    out(named.value);
}
template <typename T>
void CEREAL_SERIALIZE_FUNCTION_NAME(InputArchive& in, cereal::NameValuePair<T>& named) {
    in(named.value);
}
template <typename T>
void CEREAL_SERIALIZE_FUNCTION_NAME(OutputArchive& out, cereal::SizeTag<T>& size) {
    const auto count = static_cast<std::uint64_t>(size.size);
    out.write(&count, sizeof count);
}
template <typename T>
void CEREAL_SERIALIZE_FUNCTION_NAME(InputArchive& in, cereal::SizeTag<T>& size) {
    std::uint64_t count = 0;
    in.read(&count, sizeof count);
    if (count > in.left() && count > kWeightlessElementsMax) cut_short();
    size.size = static_cast<std::remove_reference_t<T>>(count);
}
template <typename T>
void CEREAL_SAVE_FUNCTION_NAME(OutputArchive& out, const cereal::BinaryData<T>& data) {
    out.write(data.data, static_cast<std::size_t>(data.size));
}
template <typename T>
void CEREAL_LOAD_FUNCTION_NAME(InputArchive& in, cereal::BinaryData<T>& data) {
    in.read(data.data, static_cast<std::size_t>(data.size));
}

}  // namespace travel
}  // namespace rove

CEREAL_SETUP_ARCHIVE_TRAITS(rove::travel::InputArchive, rove::travel::OutputArchive)

namespace cereal {

template <typename T>
    requires rove::travel::BitwiseClass<T>
void CEREAL_SAVE_FUNCTION_NAME(rove::travel::OutputArchive& out, const T& value) {
    out.write(&value, sizeof value);
}
template <typename T>
    requires rove::travel::BitwiseClass<T>
void CEREAL_LOAD_FUNCTION_NAME(rove::travel::InputArchive& in, T& value) {
    in.read(&value, sizeof value);
}
template <typename T>
    requires rove::travel::TravelsAsAnother<T>
void CEREAL_SAVE_FUNCTION_NAME(rove::travel::OutputArchive& out, const T& value) {
    out(static_cast<const typename rove::migratable<T>::wire&>(rove::migratable<T>::pack(value)));
}
template <typename T>
    requires rove::travel::TravelsAsAnother<T>
void CEREAL_LOAD_FUNCTION_NAME(rove::travel::InputArchive& in, T& value) {
    typename rove::migratable<T>::wire wire{};
    in(wire);
    value = rove::migratable<T>::unpack(std::move(wire));
}
template <typename Archive, typename T>
    requires(rove::travel::BitwiseClass<T> || rove::travel::TravelsAsAnother<T>) &&
            (std::is_same_v<Archive, rove::travel::OutputArchive> ||
             std::is_same_v<Archive, rove::travel::InputArchive>)
struct specialize<Archive, T, specialization::non_member_load_save> : std::true_type {};

}  // namespace cereal

namespace rove::travel {

// Whether all that is in a type can travel. Not complete for types that serialise themselves: those say so to cereal.
template <typename T>
struct Parts {
    static constexpr bool travel = true;
};
template <typename T>
constexpr bool can_travel() {
    if constexpr (std::is_reference_v<T> || std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_void_v<T>)
        return false;
    else if constexpr (Bitwise<T>)
        return true;
    else if constexpr (TravelsAsAnother<T>)
        return can_travel<typename migratable<T>::wire>();
    else if constexpr (SaysWhether<T>)
        return migratable<T>::safe;
    else
        return Parts<T>::travel && cereal::traits::is_output_serializable<T, OutputArchive>::value &&
               cereal::traits::is_input_serializable<T, InputArchive>::value;
}
template <typename T>
concept Travels = can_travel<T>();

template <template <typename...> typename Container, typename T, typename... Rest>
    requires requires(Container<T, Rest...> c) { typename Container<T, Rest...>::value_type; }
struct Parts<Container<T, Rest...>> {
    static constexpr bool travel = can_travel<T>();
};
template <template <typename...> typename Container, typename K, typename V, typename... Rest>
    requires requires { typename Container<K, V, Rest...>::mapped_type; }
struct Parts<Container<K, V, Rest...>> {
    static constexpr bool travel = can_travel<K>() && can_travel<V>();
};
template <typename T, std::size_t kCount>
struct Parts<std::array<T, kCount>> {
    static constexpr bool travel = can_travel<T>();
};
template <typename T, typename D>
struct Parts<std::unique_ptr<T, D>> {
    static constexpr bool travel = can_travel<T>();
};
template <typename T>
struct Parts<std::shared_ptr<T>> {
    static constexpr bool travel = can_travel<T>();
};
template <typename A, typename B>
struct Parts<std::pair<A, B>> {
    static constexpr bool travel = can_travel<A>() && can_travel<B>();
};
template <typename... Ts>
struct Parts<std::tuple<Ts...>> {
    static constexpr bool travel = (can_travel<Ts>() && ...);
};
template <typename... Ts>
struct Parts<std::variant<Ts...>> {
    static constexpr bool travel = (can_travel<Ts>() && ...);
};

template <typename T>
struct IsPlainVector : std::false_type {};
template <typename T, typename A>
struct IsPlainVector<std::vector<T, A>> : std::bool_constant<Bitwise<T> && !std::is_same_v<T, bool>> {};

template <typename T>
void write(Output& out, const T& value) {
    if constexpr (Bitwise<T>) {
        out.write(&value, sizeof value);
    } else if constexpr (IsPlainVector<T>::value) {
        const std::uint64_t count = value.size();
        out.write(&count, sizeof count);
        out.write(value.data(), value.size() * sizeof(typename T::value_type));
    } else if constexpr (TravelsAsAnother<T>) {
        const typename migratable<T>::wire wire = migratable<T>::pack(value);
        write(out, wire);
    } else {
        OutputArchive archive(out);
        archive(value);
    }
}

template <typename T>
T read(Input& in) {
    if constexpr (Bitwise<T>) {
        // Not a T yet, and need not be one that can be made of nothing.
        alignas(T) std::byte raw[sizeof(T)];
        in.read(raw, sizeof raw);
        return *std::launder(reinterpret_cast<T*>(raw));
    } else if constexpr (IsPlainVector<T>::value) {
        std::uint64_t count = 0;
        in.read(&count, sizeof count);
        if (count > in.left() / sizeof(typename T::value_type)) cut_short();
        T value(count);
        in.read(value.data(), count * sizeof(typename T::value_type));
        return value;
    } else if constexpr (TravelsAsAnother<T>) {
        return migratable<T>::unpack(read<typename migratable<T>::wire>(in));
    } else {
        T value{};
        InputArchive archive(in);
        archive(value);
        return value;
    }
}

}  // namespace rove::travel
