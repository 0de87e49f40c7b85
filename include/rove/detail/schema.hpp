// The schema of a type: a number made of sizes, alignments and the members that a `serialize` names. Two programs whose schemas of
// a function differ mean different things by its name; the function's first call detects that before anything runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "rove/detail/travel.hpp"

namespace rove::detail {

// FNV-1a, 32 bits (http://www.isthe.com/chongo/tech/comp/fnv/).
inline constexpr std::uint32_t kHashBegin = 2166136261U;
inline constexpr std::uint32_t kHashFactor = 16777619U;
constexpr std::uint32_t mix(std::uint32_t schema, std::uint64_t value) {
    for (int i = 0; i < 8; ++i) schema = (schema ^ static_cast<std::uint8_t>(value >> (8 * i))) * kHashFactor;
    return schema;
}

// The first number of a schema, so that types of different kinds differ. The numbers travel on the wire: they never change.
enum SchemaKind : std::uint32_t {
    kOpaque = 1,     // no more than size and alignment is known
    kMap = 2,        // a map: its keys and values
    kContainer = 3,  // its elements
    kPointer = 4,    // a smart pointer
    kTemplate = 5,   // its arguments
    kNumber = 6,
    kWire = 8,  // travels as another type
    kEnum = 9,
    kBitwise = 10,    // its bytes travel
    kRecursion = 11,  // a type within itself
    kHidden = 12,     // a member of which the size and alignment alone are known
};

template <typename T>
std::uint32_t schema_of();

// An archive that collects the types of the members that a type's `serialize` names.
struct SchemaArchive {
    std::uint32_t schema = kHashBegin;
    template <typename... Ts>
    SchemaArchive& operator()(Ts&&... members) {
        ((schema = mix(schema, schema_of<std::remove_cvref_t<Ts>>())), ...);
        (static_cast<void>(members), ...);
        return *this;
    }
    template <typename T>
    SchemaArchive& operator&(T&& member) {
        return (*this)(std::forward<T>(member));
    }
};
template <typename T>
concept HasSerialize = std::is_default_constructible_v<T> &&
                       requires(T value, SchemaArchive archive) { cereal::access::member_serialize(archive, value); };

template <typename... Ts>
std::uint32_t schemas(std::uint64_t kind) {
    std::uint32_t schema = mix(kHashBegin, kind);
    ((schema = mix(schema, schema_of<std::remove_cvref_t<Ts>>())), ...);
    return schema;
}
template <typename T>
struct SchemaOfMembers {
    static std::uint32_t get() {
        if constexpr (std::is_object_v<T>)
            return mix(mix(kOpaque, sizeof(T)), alignof(T));
        else  // a function's type, as std::function names it
            return mix(kOpaque, 0);
    }
};
template <template <typename...> typename C, typename... Ts>
struct SchemaOfMembers<C<Ts...>> {
    static std::uint32_t get() {  // covers a container's elements, not its layout, which does not travel
        if constexpr (requires { typename C<Ts...>::mapped_type; })
            return schemas<typename C<Ts...>::key_type, typename C<Ts...>::mapped_type>(kMap);
        else if constexpr (requires { typename C<Ts...>::value_type; })
            return schemas<typename C<Ts...>::value_type>(kContainer);
        else if constexpr (requires { typename C<Ts...>::element_type; })
            return schemas<typename C<Ts...>::element_type>(kPointer);
        else
            return schemas<Ts...>(kTemplate);
    }
};

// Whether the schema covers more of a member than its size. A class with constructors or private members shows nothing else, and
// whether __int128 is a number depends on -std.
template <typename T>
inline constexpr bool kIsSeenThrough =
    travel::Bitwise<T> &&
    (std::is_class_v<T> ? std::is_aggregate_v<T> : !std::is_integral_v<T> || sizeof(T) <= sizeof(long long));

// Passed as the initial value of a member when an aggregate is initialised: it records the member's type, or at least its size.
struct MemberProbe {
    std::uint32_t* schema;
    template <typename T>
        requires(std::is_trivially_copyable_v<T> && (kIsSeenThrough<T> || !std::is_aggregate_v<T>))
    operator T() const {  // NOLINT: converts to the member's type
        if constexpr (kIsSeenThrough<T>)
            *schema = mix(*schema, schema_of<T>());
        else
            *schema = mix(mix(mix(*schema, kHidden), sizeof(T)), alignof(T));
        return __builtin_bit_cast(T, travel::RawBytes<sizeof(T)>{});
    }
};
template <std::size_t>
using ProbeAt = MemberProbe;

// How many members of an aggregate are covered, from the first one on; arrays count by their elements.
inline constexpr std::size_t kMembersMax = 32;
template <typename T, std::size_t... kNumbers>
constexpr bool has_members(std::index_sequence<kNumbers...>) {
    return requires(const ProbeAt<kNumbers>&... probes) { T{probes...}; };
}
template <typename T, std::size_t kCount = 0>
constexpr std::size_t member_count() {
    if constexpr (kCount == kMembersMax || !has_members<T>(std::make_index_sequence<kCount + 1>{}))
        return kCount;
    else
        return member_count<T, kCount + 1>();
}
// For aggregates with a member that has no default constructor, and so cannot be left out: the largest number that fits.
template <typename T, std::size_t kCount = kMembersMax>
constexpr std::size_t member_count_from_above() {
    if constexpr (kCount == 0 || has_members<T>(std::make_index_sequence<kCount>{}))
        return kCount;
    else
        return member_count_from_above<T, kCount - 1>();
}
template <typename T>
constexpr std::size_t members_seen() {
    if constexpr (requires { T{}; })
        return member_count<T>();
    else
        return member_count_from_above<T>();
}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-braces"              // an array's elements are initialised one by one
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"  // members after the first kMembersMax
template <typename T, std::size_t... kNumbers>
std::uint32_t schema_of_members(std::uint32_t schema, std::index_sequence<kNumbers...>) {
    [[maybe_unused]] const T made{ProbeAt<kNumbers>{&schema}...};
    return schema;
}
#pragma GCC diagnostic pop

template <typename T>
std::uint32_t schema_of() {
    if constexpr (std::is_void_v<T>) {
        return 0;
    } else if constexpr (std::is_enum_v<T>) {
        return mix(schema_of<std::underlying_type_t<T>>(), kEnum);
    } else if constexpr (kHalfPrecision<T> != 0) {
        return mix(mix(kNumber, sizeof(T)), kHalfPrecision<T>);
    } else if constexpr (std::is_arithmetic_v<T>) {
        constexpr std::uint32_t kFloating = 2, kSigned = 1;
        return mix(mix(kNumber, sizeof(T)),
                   (std::is_floating_point_v<T> ? kFloating : 0U) + (std::is_signed_v<T> ? kSigned : 0U));
    } else if constexpr (travel::TravelsAsAnother<T>) {
        return mix(schema_of<typename migratable<T>::wire>(), kWire);
    } else if constexpr (requires {
                             { migratable<T>::schema } -> std::convertible_to<std::uint32_t>;
                         }) {
        return migratable<T>::schema;
    } else if constexpr (travel::Bitwise<T>) {
        const std::uint32_t outside = mix(mix(kBitwise, sizeof(T)), alignof(T));
        if constexpr (!std::is_class_v<T> || !std::is_aggregate_v<T>)
            return outside;
        else if constexpr (constexpr std::size_t kCount = members_seen<T>(); kCount == 0)
            return outside;
        else
            return schema_of_members<T>(outside, std::make_index_sequence<kCount>{});
    } else if constexpr (HasSerialize<T>) {
        static bool within = false;  // a type may hold itself
        if (std::exchange(within, true)) return kRecursion;
        T value = T();  // not T{}, as in travel::read
        SchemaArchive archive;
        cereal::access::member_serialize(archive, value);
        within = false;
        return archive.schema;
    } else {
        return SchemaOfMembers<T>::get();
    }
}

}  // namespace rove::detail
