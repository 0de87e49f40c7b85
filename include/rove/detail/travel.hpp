// Which types can travel, and how a value of one is written and read. rove/travel.hpp describes it for users.
#pragma once

#include <algorithm>
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
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "rove/detail/numbers.hpp"
#include "rove/detail/travel_archives.hpp"
#include "rove/detail/travel_containers.hpp"
#include "rove/detail/travel_inherited.hpp"
#include "rove/detail/travel_stays.hpp"
#include "rove/travel.hpp"

namespace rove::detail::travel {

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
// No pointers inside: bytes cannot be cast to a type with a pointer, reference or `this` in it in a constant expression.
template <typename T>
concept WithoutPointers =
    requires { typename std::bool_constant<(static_cast<void>(__builtin_bit_cast(T, RawBytes<sizeof(T)>{})), true)>; };

template <typename T>
struct Element {  // an array's element, so that checking a large array costs the compiler no more than a small one
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
    else if constexpr (NamesOfOneProcess<E>::value)
        return false;
    else if constexpr (Number<E> || std::is_enum_v<E>)
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
// Classes that cereal writes as bytes.
template <typename T>
concept BitwiseClass = std::is_class_v<T> && Bitwise<T> && !IsStdArray<T>::value;

// Whether a value counts as a level of nesting. The types that cereal wraps around values do not.
template <typename T>
inline constexpr bool kIsLevel = !Number<T>;
template <typename T>
inline constexpr bool kIsLevel<cereal::NameValuePair<T>> = false;
template <typename T>
inline constexpr bool kIsLevel<cereal::SizeTag<T>> = false;
template <typename T>
inline constexpr bool kIsLevel<cereal::BinaryData<T>> = false;
template <typename T>
inline constexpr bool kIsLevel<cereal::memory_detail::PtrWrapper<T>> = false;

// Called before and after a value is read or written: counts how deep values nest, and notes weak pointers.
template <typename T>
struct Around {
    template <typename Archive>
    static void enter(Archive& archive) {
        if constexpr (kIsLevel<T>) archive.depth().enter();
    }
    template <typename Archive>
    static void leave(Archive& archive) {
        if constexpr (kIsLevel<T>) archive.depth().leave();
    }
};
template <typename T>
struct Around<std::weak_ptr<T>> {
    template <typename Archive>
    static void enter(Archive& archive) {
        archive.open().enter_weak();
    }
    template <typename Archive>
    static void leave(Archive& /*archive*/) {}
};
template <typename T>
struct Around<cereal::memory_detail::PtrWrapper<std::shared_ptr<T>&>> {
    static void enter(InputArchive& in) {
        in.want(type_info_of<T>());
        in.open().enter();
    }
    static void leave(InputArchive& in) { in.open().leave(); }
};
template <typename T>
struct Around<cereal::memory_detail::PtrWrapper<const std::shared_ptr<T>&>> {
    static void enter(OutputArchive& out) { out.open().enter(); }
    static void leave(OutputArchive& out) { out.open().leave(); }
};

template <typename T>
struct PointsToPolymorphic : std::false_type {};
template <typename T, typename D>
struct PointsToPolymorphic<std::unique_ptr<T, D>> : std::is_polymorphic<T> {};
template <typename T>
struct PointsToPolymorphic<std::shared_ptr<T>> : std::is_polymorphic<T> {};
template <typename T>
struct PointsToPolymorphic<std::weak_ptr<T>> : std::is_polymorphic<T> {};

// Whether a container's comparator or hash function has state, which is lost: cereal default-constructs it on the other node.
template <typename T>
constexpr bool is_ordered_by_state() {
    if constexpr (requires { typename T::key_compare; })
        return !std::is_empty_v<typename T::key_compare>;
    else if constexpr (requires {
                           typename T::hasher;
                           typename T::key_equal;
                       })
        return !std::is_empty_v<typename T::hasher> || !std::is_empty_v<typename T::key_equal>;
    else if constexpr (requires {
                           typename T::container_type;
                           typename T::value_compare;
                       })
        return !std::is_empty_v<typename T::value_compare>;
    else
        return false;
}
template <typename T>
using IsOrderedByState = std::bool_constant<is_ordered_by_state<T>()>;

// Whether T is a std::unique_ptr whose deleter has state, which is lost in the same way.
template <typename T>
struct DeletesByState : std::false_type {};
template <typename T, typename D>
struct DeletesByState<std::unique_ptr<T, D>> : std::bool_constant<!std::is_empty_v<D>> {};

// The checks of a value within another. checks.hpp has those of arguments and results themselves.
template <typename T>
struct Whole {
    static constexpr bool kIs = true;
    static_assert(
        !loses_its_own<T>(),
        "rove: a value within an argument or a result is of a type that is serialised as its base is, and its "
        "own members would be lost; give that type a serialize() of its own");
    static_assert(!PointsToPolymorphic<T>::value,
                  "rove: a value within an argument or a result is a pointer to a polymorphic type, and the other node "
                  "is not told which derived type it points to; send a std::variant of them");
    static_assert(!is_ordered_by_state<T>(),
                  "rove: a container within an argument or a result has a comparator or a hash function with members "
                  "(or a pointer), which would be lost; give it a type without members");
    static_assert(!DeletesByState<T>::value,
                  "rove: a std::unique_ptr within an argument or a result has a deleter with members (or a pointer), "
                  "which would be lost; give it a type without members");
};

// cereal calls these around every value.
template <typename T>
void prologue(OutputArchive& out, const T& /*value*/) {
    static_assert(Whole<T>::kIs);
    Around<T>::enter(out);
}
template <typename T>
void epilogue(OutputArchive& out, const T& /*value*/) {
    Around<T>::leave(out);
}
template <typename T>
void prologue(InputArchive& in, const T& /*value*/) {
    static_assert(Whole<T>::kIs);
    Around<T>::enter(in);
}
template <typename T>
void epilogue(InputArchive& in, const T& /*value*/) {
    Around<T>::leave(in);
}

// The T with these bytes, which are aligned as a T. A bool becomes false or true, whatever its byte.
template <typename T>
T from_raw(std::byte* raw) {
    if constexpr (std::is_same_v<T, bool>)
        return *raw != std::byte{0};
    else
        return *std::launder(reinterpret_cast<T*>(raw));
}

template <Number T>
void CEREAL_SAVE_FUNCTION_NAME(OutputArchive& out, const T& value) {
    out.write(&value, sizeof value);
}
template <Number T>
void CEREAL_LOAD_FUNCTION_NAME(InputArchive& in, T& value) {
    alignas(T) std::byte raw[sizeof(T)];
    in.read(raw, sizeof raw);
    value = from_raw<T>(raw);
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
    size.size = static_cast<std::remove_reference_t<T>>(read_count(in));
}
template <typename T>
void CEREAL_SAVE_FUNCTION_NAME(OutputArchive& out, const cereal::BinaryData<T>& data) {
    out.write(data.data, static_cast<std::size_t>(data.size));
}
template <typename T>
void CEREAL_LOAD_FUNCTION_NAME(InputArchive& in, cereal::BinaryData<T>& data) {
    in.read(data.data, static_cast<std::size_t>(data.size));
}

}  // namespace rove::detail::travel

CEREAL_SETUP_ARCHIVE_TRAITS(rove::detail::travel::InputArchive, rove::detail::travel::OutputArchive)

namespace cereal {

template <typename T>
    requires rove::detail::travel::BitwiseClass<T>
void CEREAL_SAVE_FUNCTION_NAME(rove::detail::travel::OutputArchive& out, const T& value) {
    out.write(&value, sizeof value);
}
template <typename T>
    requires rove::detail::travel::BitwiseClass<T>
void CEREAL_LOAD_FUNCTION_NAME(rove::detail::travel::InputArchive& in, T& value) {
    if constexpr (std::is_empty_v<T>) {  // as a base, or in a tuple, its byte may be another member's
        std::byte nothing[sizeof(T)];
        in.read(nothing, sizeof nothing);
    } else {
        in.read(&value, sizeof value);
    }
}
template <typename T>
    requires rove::detail::travel::TravelsAsAnother<T>
void CEREAL_SAVE_FUNCTION_NAME(rove::detail::travel::OutputArchive& out, const T& value) {
    out(static_cast<const typename rove::migratable<T>::wire&>(rove::migratable<T>::pack(value)));
}
template <typename T>
    requires rove::detail::travel::TravelsAsAnother<T>
void CEREAL_LOAD_FUNCTION_NAME(rove::detail::travel::InputArchive& in, T& value) {
    auto wire = typename rove::migratable<T>::wire();
    in(wire);
    value = rove::migratable<T>::unpack(std::move(wire));
}
template <typename Archive, typename T>
    requires(rove::detail::travel::BitwiseClass<T> || rove::detail::travel::TravelsAsAnother<T>) &&
            (std::is_same_v<Archive, rove::detail::travel::OutputArchive> ||
             std::is_same_v<Archive, rove::detail::travel::InputArchive>)
struct specialize<Archive, T, specialization::non_member_load_save> : std::true_type {};
template <typename Archive, typename T, specialization kWay>
    requires(!rove::detail::travel::BitwiseClass<T> && !rove::detail::travel::TravelsAsAnother<T>) &&
            (std::is_same_v<Archive, rove::detail::travel::OutputArchive> ||
             std::is_same_v<Archive, rove::detail::travel::InputArchive>) &&
            (rove::detail::travel::prefers_its_own<T, kWay>())
struct specialize<Archive, T, kWay> : std::true_type {};

}  // namespace cereal

namespace rove::detail::travel {

// Whether the parts of a type can travel. For types that serialise themselves cereal decides.
template <typename T>
struct Parts {
    static constexpr bool travel = true;
};
template <typename T>
constexpr bool can_travel() {
    if constexpr (std::is_reference_v<T> || std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_void_v<T> ||
                  std::is_unbounded_array_v<T>)
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
// Whether T never travels, because it means something in one process only.
template <typename T>
constexpr bool stays() {
    if constexpr (SaysWhether<T>)
        return !migratable<T>::safe;
    else if constexpr (can_travel<T>())
        return false;
    else
        return IsOfOneProcess<T>::value || NamesOfOneProcess<T>::value;
}
// Whether cereal reads a T into an existing object.
template <typename T>
constexpr bool is_read_in_place() {
    return can_travel<T>() && !Bitwise<T> && !TravelsAsAnother<T>;
}
// Whether Is holds for T, or for the elements of a container T. Above: the types that hold this one, which may hold themselves.
template <template <typename> typename Is, typename T, typename... Above>
constexpr bool is_within() {
    if constexpr (!is_read_in_place<T>() || (std::is_same_v<T, Above> || ...))
        return false;
    else if constexpr (Is<T>::value)
        return true;
    else if constexpr (requires { typename T::mapped_type; })
        return is_within<Is, typename T::key_type, T, Above...>() ||
               is_within<Is, typename T::mapped_type, T, Above...>();
    else if constexpr (requires { typename T::value_type; })
        return is_within<Is, typename T::value_type, T, Above...>();
    else
        return false;
}
// Whether cereal would read T into a default-constructed object, but T has no default constructor.
template <typename T>
using LacksBeginning = std::bool_constant<!std::is_default_constructible_v<T> && !DeletesByState<T>::value>;
template <typename T>
using LosesItsOwn = std::bool_constant<loses_its_own<T>()>;

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
    static constexpr bool travel = can_travel<std::remove_const_t<T>>();
};
template <typename T>
struct Parts<std::shared_ptr<T>> {
    static constexpr bool travel = can_travel<std::remove_const_t<T>>();
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
struct IsPlainVector<std::vector<T, A>>
    : std::bool_constant<Bitwise<T> && !std::is_same_v<T, bool> && !TravelsAsAnother<std::vector<T, A>>> {};

template <typename T>
struct IsPlainString : std::false_type {};
template <typename C, typename Traits, typename A>
struct IsPlainString<std::basic_string<C, Traits, A>>
    : std::bool_constant<Bitwise<C> && !TravelsAsAnother<std::basic_string<C, Traits, A>>> {};
// Whether T travels as a count, and the bytes of that many values.
template <typename T>
inline constexpr bool kIsPlain = IsPlainVector<T>::value || IsPlainString<T>::value;

template <typename T>
void write(Output& out, const T& value) {
    if constexpr (Bitwise<T>) {
        out.write(&value, sizeof value);
    } else if constexpr (kIsPlain<T>) {
        const std::uint64_t count = value.size();
        out.write(&count, sizeof count);
        out.write(value.data(), value.size() * sizeof(typename T::value_type));
    } else if constexpr (TravelsAsAnother<T>) {
        const typename migratable<T>::wire wire = migratable<T>::pack(value);
        write(out, wire);
    } else {
        OutputArchive archive(out);
        archive(value);
        archive.serializeDeferments();
    }
}

// Writes an argument or a result itself, which does not change until it has been sent: large bytes are referenced, not copied.
template <typename T>
void write_lasting(Output& out, const T& value) {
    if constexpr (kIsPlain<T>) {
        const std::uint64_t count = value.size();
        out.write(&count, sizeof count);
        out.write_lasting(value.data(), value.size() * sizeof(typename T::value_type));
    } else {
        write(out, value);
    }
}

// Turns an error of cereal (a variant's index out of range, for example) into a rove::Error.
template <typename T>
void read_by_cereal(InputArchive& archive, T& value) {
#ifdef __cpp_exceptions
    try {
        archive(value);
        archive.serializeDeferments();
    } catch (const cereal::Exception& wrong) {
        throw_error(ErrorCode::invalid, std::string("the bytes of an argument or a result are wrong: ") + wrong.what());
    }
#else
    archive(value);
    archive.serializeDeferments();
#endif
}

template <typename T>
T read(Input& in) {
    if constexpr (Bitwise<T>) {
        // T need not be default-constructible.
        alignas(T) std::byte raw[sizeof(T)];
        in.read(raw, sizeof raw);
        return from_raw<T>(raw);
    } else if constexpr (kIsPlain<T>) {
        std::uint64_t count = 0;
        in.read(&count, sizeof count);
        return read_values<T>(in, count);
    } else if constexpr (TravelsAsAnother<T>) {
        return migratable<T>::unpack(read<typename migratable<T>::wire>(in));
    } else {
        T value = T();  // not T{}, which would make the bases of an aggregate here, where they may be protected
        InputArchive archive(in);
        read_by_cereal(archive, value);
        return value;
    }
}

// A container that is filled while its bytes arrive, part by part. The place of each part is zeroed just before the part is copied there:
// this costs little, because the copy then finds the place in the cache.
template <typename C>
class Gathering {
public:
    // The callback of rove_pending_gather.
    static int take(void* self, const void* part, std::size_t size, std::size_t total_size) noexcept {
#ifdef __cpp_exceptions
        try {
            return static_cast<Gathering*>(self)->add(static_cast<const std::byte*>(part), size, total_size) ? 1 : 0;
        } catch (...) {  // no memory
            return -1;
        }
#else
        return static_cast<Gathering*>(self)->add(static_cast<const std::byte*>(part), size, total_size) ? 1 : 0;
#endif
    }
    // To be called after all parts have arrived.
    C value() {
        if (head_ != sizeof count_ || filled_ != into_.size() * sizeof(T) || into_.size() != count_) cut_short();
        return std::move(into_);
    }

private:
    using T = typename C::value_type;
    bool add(const std::byte* part, std::size_t size, std::size_t total) {
        if (head_ < sizeof count_) {
            const std::size_t more = std::min(size, sizeof count_ - head_);
            std::memcpy(reinterpret_cast<std::byte*>(&count_) + head_, part, more);
            head_ += more;
            part += more;
            size -= more;
            if (head_ < sizeof count_) return true;
            if (total < sizeof count_ || count_ != (total - sizeof count_) / sizeof(T) ||
                (total - sizeof count_) % sizeof(T) != 0)
                return false;
            into_.reserve(static_cast<std::size_t>(count_));
        }
        if (size > count_ * sizeof(T) - filled_) return false;
        into_.resize((filled_ + size + sizeof(T) - 1) / sizeof(T));
        if (size > 0) std::memcpy(reinterpret_cast<std::byte*>(into_.data()) + filled_, part, size);
        filled_ += size;
        return true;
    }
    C into_;
    std::uint64_t count_ = 0;
    std::size_t head_ = 0;    // bytes of the count that have arrived
    std::size_t filled_ = 0;  // bytes of the values that have arrived
};
template <typename T>
constexpr bool can_gather() {
    if constexpr (kIsPlain<T>)
        return std::is_default_constructible_v<typename T::value_type>;
    else
        return false;
}

}  // namespace rove::detail::travel
