// How containers are read from bytes that may claim anything: part of rove/travel.hpp, which includes it.
#pragma once

#include <algorithm>
#include <cereal/types/deque.hpp>
#include <cereal/types/list.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/unordered_set.hpp>
#include <cereal/types/vector.hpp>

#include "rove/travel_archives.hpp"

namespace rove::travel {

// Elements one after the other: what is not there takes no memory. Room is made ahead for as much memory as there are bytes left.
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

}  // namespace rove::travel

namespace cereal {

// In place of cereal's own, which make all elements before they read the first.
template <typename T, typename A>
    requires(!std::is_arithmetic_v<T>)
void CEREAL_LOAD_FUNCTION_NAME(rove::travel::InputArchive& in, std::vector<T, A>& into) {
    rove::travel::read_elements(in, into);
}
template <typename T, typename A>
    requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
void CEREAL_LOAD_FUNCTION_NAME(rove::travel::InputArchive& in, std::vector<T, A>& into) {
    const std::size_t count = rove::travel::read_count(in);
    into = rove::travel::read_values<std::vector<T, A>>(in.input(), count);
}
template <typename C, typename Traits, typename A>
void CEREAL_LOAD_FUNCTION_NAME(rove::travel::InputArchive& in, std::basic_string<C, Traits, A>& into) {
    const std::size_t count = rove::travel::read_count(in);
    into = rove::travel::read_values<std::basic_string<C, Traits, A>>(in.input(), count);
}
template <typename T, typename A>
void CEREAL_LOAD_FUNCTION_NAME(rove::travel::InputArchive& in, std::deque<T, A>& into) {
    rove::travel::read_elements(in, into);
}
template <typename T, typename A>
void CEREAL_LOAD_FUNCTION_NAME(rove::travel::InputArchive& in, std::list<T, A>& into) {
    rove::travel::read_elements(in, into);
}
template <typename K, typename H, typename E, typename A>
void CEREAL_LOAD_FUNCTION_NAME(rove::travel::InputArchive& in, std::unordered_set<K, H, E, A>& into) {
    rove::travel::read_keys(in, into);
}
template <typename K, typename H, typename E, typename A>
void CEREAL_LOAD_FUNCTION_NAME(rove::travel::InputArchive& in, std::unordered_multiset<K, H, E, A>& into) {
    rove::travel::read_keys(in, into);
}

}  // namespace cereal
