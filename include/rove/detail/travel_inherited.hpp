// Types that would lose their own members: cereal takes the serialisation of a base for theirs. It finds it as the compiler finds any function,
// and a Derived is a Base.
#pragma once

#include <array>
#include <cereal/cereal.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "rove/detail/travel_archives.hpp"

namespace rove::detail::travel {

// Bytes at the end of a class in which a class that is derived from it may have its first members.
template <typename Base, std::size_t kBytes>
struct WithMore : Base {
    char more[kBytes];
};
// kFits of them fit, and kTooMany do not: there are fewer than the class is aligned to.
template <typename Base, std::size_t kFits = 0, std::size_t kTooMany = alignof(Base)>
constexpr std::size_t room_at_end() {
    if constexpr (kTooMany - kFits <= 1)
        return kFits;
    else if constexpr (constexpr std::size_t kMiddle = (kFits + kTooMany) / 2;
                       sizeof(WithMore<Base, kMiddle>) == sizeof(Base))
        return room_at_end<Base, kMiddle, kTooMany>();
    else
        return room_at_end<Base, kFits, kMiddle>();
}
// Whether T has members in addition to those of its base.
template <typename T, typename Base>
constexpr bool adds() {
    if constexpr (sizeof(T) != sizeof(Base) || std::is_final_v<T>)
        return sizeof(T) != sizeof(Base);
    else
        return room_at_end<T>() != room_at_end<Base>();
}
template <typename T, typename Base>
concept Adds = adds<T, Base>();

// ---- serialize() and its like as members: the type of a pointer to one names the class that declares it
template <typename Function, typename Class>
std::type_identity<Class> class_of(Function Class::*);
// Overloads, because g++ 12 reports a private member in a requires-expression as an error where the result is used, and not as false.
template <typename T>
auto class_of_serialize(int) -> decltype(class_of(&T::template CEREAL_SERIALIZE_FUNCTION_NAME<OutputArchive>));
template <typename T>
void class_of_serialize(...);
template <typename T>
auto class_of_save(int) -> decltype(class_of(&T::template CEREAL_SAVE_FUNCTION_NAME<OutputArchive>));
template <typename T>
void class_of_save(...);
template <typename T>
auto class_of_save_minimal(int) -> decltype(class_of(&T::template CEREAL_SAVE_MINIMAL_FUNCTION_NAME<OutputArchive>));
template <typename T>
void class_of_save_minimal(...);
template <typename T>
auto class_of_member() {
    if constexpr (!std::is_void_v<decltype(class_of_serialize<T>(0))>)
        return decltype(class_of_serialize<T>(0)){};
    else if constexpr (!std::is_void_v<decltype(class_of_save<T>(0))>)
        return decltype(class_of_save<T>(0)){};
    else if constexpr (!std::is_void_v<decltype(class_of_save_minimal<T>(0))>)
        return decltype(class_of_save_minimal<T>(0)){};
    else
        return std::type_identity<T>{};  // none, or a private one
}
// A base that has the derived class as a template argument can serialise it.
template <typename T, typename Base>
struct IsTold : std::false_type {};
template <typename T, template <typename...> typename Base, typename... Told>
struct IsTold<T, Base<Told...>> : std::bool_constant<(std::is_same_v<T, Told> || ...)> {};

// ---- as free functions: each of these types converts to the parameters of some. Because they have destructors, cereal does not copy them
// as bytes.
template <typename T>
struct AsItself {
    ~AsItself();
    template <typename U>
        requires std::is_same_v<std::remove_const_t<U>, T>
    operator U&() const;  // NOLINT(google-explicit-constructor): the struct exists for this conversion
};
template <typename T>
struct AsBase {
    ~AsBase();
    template <typename U>
        requires(std::is_base_of_v<U, T> && !std::is_same_v<std::remove_const_t<U>, T> &&
                 Adds<T, std::remove_const_t<U>>)
    operator U&() const;  // NOLINT(google-explicit-constructor)
};
template <typename Value, typename... Version>
concept SerialisedBy = requires(OutputArchive& out, const Value& value, Version... version) {
    CEREAL_SERIALIZE_FUNCTION_NAME(out, value, version...);
} || requires(OutputArchive& out, const Value& value, Version... version) {
    CEREAL_SAVE_FUNCTION_NAME(out, value, version...);
} || requires(const OutputArchive& out, const Value& value, Version... version) {
    CEREAL_SAVE_MINIMAL_FUNCTION_NAME(out, value, version...);
};
template <typename Value>
concept SerialisedByFunction = SerialisedBy<Value> || SerialisedBy<Value, std::uint32_t>;

// ---- the standard classes for which cereal has functions
template <typename... Ts>
std::vector<Ts...> standard_base(const std::vector<Ts...>&);
template <typename... Ts>
std::basic_string<Ts...> standard_base(const std::basic_string<Ts...>&);
template <typename... Ts>
std::deque<Ts...> standard_base(const std::deque<Ts...>&);
template <typename... Ts>
std::list<Ts...> standard_base(const std::list<Ts...>&);
template <typename... Ts>
std::map<Ts...> standard_base(const std::map<Ts...>&);
template <typename... Ts>
std::multimap<Ts...> standard_base(const std::multimap<Ts...>&);
template <typename... Ts>
std::set<Ts...> standard_base(const std::set<Ts...>&);
template <typename... Ts>
std::multiset<Ts...> standard_base(const std::multiset<Ts...>&);
template <typename... Ts>
std::unordered_map<Ts...> standard_base(const std::unordered_map<Ts...>&);
template <typename... Ts>
std::unordered_multimap<Ts...> standard_base(const std::unordered_multimap<Ts...>&);
template <typename... Ts>
std::unordered_set<Ts...> standard_base(const std::unordered_set<Ts...>&);
template <typename... Ts>
std::unordered_multiset<Ts...> standard_base(const std::unordered_multiset<Ts...>&);
template <typename... Ts>
std::optional<Ts...> standard_base(const std::optional<Ts...>&);
template <typename... Ts>
std::pair<Ts...> standard_base(const std::pair<Ts...>&);
template <typename... Ts>
std::tuple<Ts...> standard_base(const std::tuple<Ts...>&);
template <typename... Ts>
std::variant<Ts...> standard_base(const std::variant<Ts...>&);
template <typename... Ts>
std::unique_ptr<Ts...> standard_base(const std::unique_ptr<Ts...>&);
template <typename... Ts>
std::shared_ptr<Ts...> standard_base(const std::shared_ptr<Ts...>&);
template <typename... Ts>
std::weak_ptr<Ts...> standard_base(const std::weak_ptr<Ts...>&);
template <typename T, std::size_t kCount>
std::array<T, kCount> standard_base(const std::array<T, kCount>&);

// Whether the serialisation that cereal takes for T is that of a base, and T has members in addition. Not where T says
// cereal::specialize. A private serialize() that only cereal may call, and a function template of the program's for a base that is an
// instance of a template, are not found.
template <typename T>
constexpr bool loses_its_own() {
    if constexpr (!std::is_class_v<T> || std::is_empty_v<T>) {
        return false;
    } else if constexpr (cereal::traits::is_specialized<T, OutputArchive>::value) {
        return false;
    } else {
        using Member = typename decltype(class_of_member<T>())::type;
        if constexpr (!std::is_same_v<Member, T>)
            return Adds<T, Member> && !IsTold<T, Member>::value;
        else if constexpr (SerialisedByFunction<AsItself<T>>)
            return false;
        else if constexpr (SerialisedByFunction<AsBase<T>>)
            return true;
        else if constexpr (requires(const T& value) { standard_base(value); })
            return !std::is_same_v<decltype(standard_base(std::declval<const T&>())), T> &&
                   Adds<T, decltype(standard_base(std::declval<const T&>()))>;
        else
            return false;
    }
}

// An archive for which types are specialised only by CEREAL_SPECIALIZE_FOR_ALL_ARCHIVES.
struct AnyArchive {};
// How many serialisations cereal finds for T, and refuses if there are several.
template <typename T>
inline constexpr int kSerialisations = cereal::traits::has_member_serialize<T, OutputArchive>::value +
                                       cereal::traits::has_member_versioned_serialize<T, OutputArchive>::value +
                                       cereal::traits::has_non_member_serialize<T, OutputArchive>::value +
                                       cereal::traits::has_non_member_versioned_serialize<T, OutputArchive>::value +
                                       cereal::traits::has_member_save<T, OutputArchive>::value +
                                       cereal::traits::has_member_versioned_save<T, OutputArchive>::value +
                                       cereal::traits::has_non_member_save<T, OutputArchive>::value +
                                       cereal::traits::has_non_member_versioned_save<T, OutputArchive>::value +
                                       cereal::traits::has_member_save_minimal<T, OutputArchive>::value +
                                       cereal::traits::has_member_versioned_save_minimal<T, OutputArchive>::value +
                                       cereal::traits::has_non_member_save_minimal<T, OutputArchive>::value +
                                       cereal::traits::has_non_member_versioned_save_minimal<T, OutputArchive>::value;
// Whether T is serialised by its own members, in this way, although cereal also finds its base's. Not where T says cereal::specialize.
template <typename T, cereal::specialization kWay>
constexpr bool prefers_its_own() {
    if constexpr (!std::is_class_v<T>) {
        return false;
    } else {
        using Own = std::type_identity<T>;
        constexpr bool kSerialize = std::is_same_v<decltype(class_of_serialize<T>(0)), Own>;
        constexpr bool kSave = std::is_same_v<decltype(class_of_save<T>(0)), Own>;
        constexpr bool kMinimal = std::is_same_v<decltype(class_of_save_minimal<T>(0)), Own>;
        if constexpr (kSerialize + kSave + kMinimal != 1 || cereal::traits::is_specialized<T, AnyArchive>::value)
            return false;
        else
            return kWay == (kSerialize ? cereal::specialization::member_serialize
                            : kSave    ? cereal::specialization::member_load_save
                                       : cereal::specialization::member_load_save_minimal) &&
                   kSerialisations<T> > 1 && !SerialisedByFunction<AsItself<T>>;
    }
}

}  // namespace rove::detail::travel
