// Types of the standard library that mean something in one process only, and those that cereal cannot write although they hold values.
// They have no rove::migratable, because a program may have one of its own for them.
#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <iterator>
#include <source_location>
#include <stop_token>
#include <system_error>
#include <thread>
#include <type_traits>
#include <typeindex>

#include "rove/travel.hpp"

namespace rove::detail::travel {

// Iterators are positions in a container of this process.
template <typename T>
struct IsOfOneProcess : std::bool_constant<std::is_class_v<T> && std::input_or_output_iterator<T>> {};
template <typename T>
struct IsOfOneProcess<std::reference_wrapper<T>> : std::true_type {};
template <>
struct IsOfOneProcess<std::exception_ptr> : std::true_type {};
template <>
struct IsOfOneProcess<std::jthread> : std::true_type {};
template <>
struct IsOfOneProcess<std::source_location> : std::true_type {};  // its names are the program's literals
template <>
struct IsOfOneProcess<std::stop_source> : std::true_type {};
template <>
struct IsOfOneProcess<std::stop_token> : std::true_type {};
template <>
struct IsOfOneProcess<std::thread> : std::true_type {};
template <>
struct IsOfOneProcess<std::type_index> : std::true_type {};

// Types that hold only numbers, which mean something in one process only: their bytes could be copied.
template <typename T>
struct NamesOfOneProcess : std::is_same<T, std::thread::id> {};

template <typename T>
struct IsUnknownToCereal : std::false_type {};
template <>
struct IsUnknownToCereal<std::error_code> : std::true_type {};
template <>
struct IsUnknownToCereal<std::error_condition> : std::true_type {};
template <>
struct IsUnknownToCereal<std::filesystem::path> : std::true_type {};

}  // namespace rove::detail::travel
