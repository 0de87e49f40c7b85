// How containers are read from bytes that are not trusted.
#pragma once

#include <algorithm>
#include <cereal/types/deque.hpp>
#include <cereal/types/list.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/set.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/unordered_set.hpp>
#include <cereal/types/vector.hpp>

#include "rove/detail/numbers.hpp"
#include "rove/detail/travel_archives.hpp"

namespace rove::detail::travel {

// Reads element by element, so that elements that are announced but missing take no memory. Reserves at most as much memory as bytes are left.
template <typename Container>
void read_elements(InputArchive& in, Container& into) {
    using T = typename Container::value_type;
    const std::size_t count = read_count(in);
    into.clear();
    if constexpr (requires { into.reserve(count); }) into.reserve(std::min(count, in.left() / sizeof(T)));
    for (std::size_t i = 0; i < count; ++i) in(into.emplace_back());
}
template <typename Set>
void read_keys(InputArchive& in, Set& into) {
    using T = typename Set::key_type;
    const std::size_t count = read_count(in);
    into.clear();
    into.reserve(std::min(count, in.left() / sizeof(T)));
    for (std::size_t i = 0; i < count; ++i) {
        T key;
        in(key);
        into.emplace(std::move(key));
    }
}
// These two add each element at the end, where the next one belongs: elements with equal keys keep their order.
template <typename Multiset>
void read_sorted_keys(InputArchive& in, Multiset& into) {
    const std::size_t count = read_count(in);
    into.clear();
    for (std::size_t i = 0; i < count; ++i) {
        typename Multiset::key_type key;
        in(key);
        into.emplace_hint(into.end(), std::move(key));
    }
}
template <typename Multimap>
void read_sorted_pairs(InputArchive& in, Multimap& into) {
    const std::size_t count = read_count(in);
    into.clear();
    for (std::size_t i = 0; i < count; ++i) {
        typename Multimap::key_type key;
        typename Multimap::mapped_type value;
        in(cereal::make_map_item(key, value));
        into.emplace_hint(into.end(), std::move(key), std::move(value));
    }
}

}  // namespace rove::detail::travel

namespace cereal {

// These replace cereal's own, which construct all elements before they read the first.
template <typename T, typename A>
    requires(!rove::detail::Number<T>)
void CEREAL_LOAD_FUNCTION_NAME(rove::detail::travel::InputArchive& in, std::vector<T, A>& into) {
    rove::detail::travel::read_elements(in, into);
}
template <typename T, typename A>
    requires(rove::detail::Number<T> && !std::is_same_v<T, bool>)
void CEREAL_LOAD_FUNCTION_NAME(rove::detail::travel::InputArchive& in, std::vector<T, A>& into) {
    const std::size_t count = rove::detail::travel::read_count(in);
    into = rove::detail::travel::read_values<std::vector<T, A>>(in.input(), count);
}
template <typename C, typename Traits, typename A>
void CEREAL_LOAD_FUNCTION_NAME(rove::detail::travel::InputArchive& in, std::basic_string<C, Traits, A>& into) {
    const std::size_t count = rove::detail::travel::read_count(in);
    into = rove::detail::travel::read_values<std::basic_string<C, Traits, A>>(in.input(), count);
}
template <typename T, typename A>
void CEREAL_LOAD_FUNCTION_NAME(rove::detail::travel::InputArchive& in, std::deque<T, A>& into) {
    rove::detail::travel::read_elements(in, into);
}
template <typename T, typename A>
void CEREAL_LOAD_FUNCTION_NAME(rove::detail::travel::InputArchive& in, std::list<T, A>& into) {
    rove::detail::travel::read_elements(in, into);
}
template <typename K, typename H, typename E, typename A>
void CEREAL_LOAD_FUNCTION_NAME(rove::detail::travel::InputArchive& in, std::unordered_set<K, H, E, A>& into) {
    rove::detail::travel::read_keys(in, into);
}
template <typename K, typename H, typename E, typename A>
void CEREAL_LOAD_FUNCTION_NAME(rove::detail::travel::InputArchive& in, std::unordered_multiset<K, H, E, A>& into) {
    rove::detail::travel::read_keys(in, into);
}
// These replace cereal's own, which insert each element before its equals, and so reverse their order.
template <typename K, typename C, typename A>
void CEREAL_LOAD_FUNCTION_NAME(rove::detail::travel::InputArchive& in, std::multiset<K, C, A>& into) {
    rove::detail::travel::read_sorted_keys(in, into);
}
template <typename K, typename V, typename C, typename A>
void CEREAL_LOAD_FUNCTION_NAME(rove::detail::travel::InputArchive& in, std::multimap<K, V, C, A>& into) {
    rove::detail::travel::read_sorted_pairs(in, into);
}

}  // namespace cereal
