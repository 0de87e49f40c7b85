// The types of the values that the standard library's types hold, for the messages of checks.hpp. Types of the program's own hold nothing here:
// their members are not known before cereal writes them.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "rove/detail/travel.hpp"

namespace rove::detail::travel {

template <typename... Ts>
struct Held {};
template <template <typename...> typename C, typename... Ts>
Held<Ts...> held_by_template(const C<Ts...>*);
template <typename T>
constexpr bool is_standard() {
    if constexpr (std::is_class_v<T> && requires(const T& value) { standard_base(value); })
        return std::is_same_v<decltype(standard_base(std::declval<const T&>())), T>;
    else
        return false;
}
template <typename T>
constexpr auto held_by() {
    if constexpr (!is_standard<T>())
        return Held<>{};
    else if constexpr (requires { typename T::mapped_type; })
        return Held<typename T::key_type, typename T::mapped_type>{};
    else if constexpr (requires { typename T::value_type; })
        return Held<typename T::value_type>{};
    else if constexpr (requires { typename T::element_type; })
        return Held<typename T::element_type>{};
    else  // a pair, a tuple or a variant
        return decltype(held_by_template(static_cast<const T*>(nullptr))){};
}
template <typename T>
inline constexpr bool kIsPointer = requires { typename T::element_type; } && is_standard<T>();

// Whether Is holds for T, or for something that T holds.
template <template <typename> typename Is, typename T, typename... Above>
constexpr bool holds() {
    if constexpr (Is<T>::value)
        return true;
    else if constexpr ((std::is_same_v<T, Above> || ...) || TravelsAsAnother<T> || SaysWhether<T>)
        return false;
    else
        return []<typename... Ts>(Held<Ts...> /*held*/) { return (holds<Is, Ts, T, Above...>() || ...); }(held_by<T>());
}

// Views and pointers: the values that they refer to are not in them.
template <typename T>
struct Shows : std::bool_constant<std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_reference_v<T>> {};
template <typename C, typename Traits>
struct Shows<std::basic_string_view<C, Traits>> : std::true_type {};
template <typename T, std::size_t kCount>
struct Shows<std::span<T, kCount>> : std::true_type {};

template <typename T>
using Stays = std::bool_constant<stays<std::remove_cv_t<T>>()>;
template <typename T>
constexpr bool lacks_header() {
    if constexpr (IsUnknownToCereal<T>::value)
        return !can_travel<T>();
    else
        return false;
}
template <typename T>
using LacksHeader = std::bool_constant<lacks_header<std::remove_cv_t<T>>()>;
// A class or union whose bytes could be copied, if the compiler could see that there is no pointer in it.
template <typename T>
constexpr bool points_within() {
    if constexpr ((std::is_class_v<T> || std::is_union_v<T>) && std::is_trivially_copyable_v<T> && !SaysWhether<T>)
        return !can_travel<T>();
    else
        return false;
}
template <typename T>
using PointsWithin = std::bool_constant<points_within<std::remove_cv_t<T>>()>;

// Whether T holds a constant, into which nothing can be read. The object of a pointer is made new, so it may be constant.
template <typename T, typename... Above>
constexpr bool holds_constant() {
    if constexpr (std::is_const_v<T>)
        return true;
    else if constexpr ((std::is_same_v<T, Above> || ...) || kIsPointer<T> || !is_read_in_place<T>())
        return false;
    else
        return []<typename... Ts>(Held<Ts...> /*held*/) {
            return (holds_constant<Ts, T, Above...>() || ...);
        }(held_by<T>());
}

// Whether T holds a value that must be default-constructed to be read, and cannot be. For a pointer's object cereal can use a private one.
template <typename T, typename E>
constexpr bool is_unmade() {
    return !std::is_default_constructible_v<E> && !DeletesByState<E>::value && (!kIsPointer<T> || Bitwise<E>);
}
template <typename T, typename... Above>
constexpr bool holds_unmade() {
    if constexpr ((std::is_same_v<T, Above> || ...) || !is_read_in_place<T>())
        return false;
    else if constexpr (kIsPlain<T> && sizeof...(Above) == 0)  // Rove reads it
        return false;
    else
        return []<typename... Ts>(Held<Ts...> /*held*/) {
            return ((is_unmade<T, Ts>() || holds_unmade<Ts, T, Above...>()) || ...);
        }(held_by<T>());
}

}  // namespace rove::detail::travel
