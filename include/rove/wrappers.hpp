// What a function may be wrapped in where it is sent: rove/function.hpp lists it.
#pragma once

#include <cstddef>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "rove/edge.h"

namespace rove {

template <auto kFunction>
struct Fn {
    template <typename... Args>
    decltype(auto) operator()(Args&&... args) const {
        return std::invoke(kFunction, std::forward<Args>(args)...);
    }
};
template <auto kFunction>
inline constexpr Fn<kFunction> fn{};

template <typename F, typename... Values>
struct Bound {
    F function;
    std::tuple<Values...> values;
};
template <typename F, typename... Values>
[[nodiscard]] auto bind(F function, Values&&... values) {
    return Bound<F, std::decay_t<Values>...>{std::move(function), {std::forward<Values>(values)...}};
}

template <std::size_t kBytes>
struct FixedText {
    char text[kBytes];
    constexpr FixedText(const char (&from)[kBytes]) {  // NOLINT: to be written as a literal
        for (std::size_t i = 0; i < kBytes; ++i) text[i] = from[i];
    }
};
template <FixedText kName, typename F>
struct Named {
    F function;
};
template <FixedText kName, typename F>
[[nodiscard]] constexpr Named<kName, F> named(F function) {
    return {std::move(function)};
}

// How a function is run where it arrives.
struct InPlace {};   // by the thread that found its frame; the default
struct OnWorker {};  // by that thread, too, but another one serves the node from then on
struct Unnested {};  // by that thread, which runs no other function on top of it while it waits
template <typename Policy, typename F>
struct RunBy {
    F function;
};
template <typename Policy, typename F>
[[nodiscard]] constexpr RunBy<Policy, F> run_by(F function) {
    return {std::move(function)};
}
template <typename F>
[[nodiscard]] constexpr RunBy<OnWorker, F> on_worker(F function) {
    return {std::move(function)};
}

// As it is in the program that calls: where the node's program has a function of that name and those types, too, that one would be run.
template <typename F>
struct Exactly {
    F function;
};
template <typename F>
[[nodiscard]] constexpr Exactly<F> exactly(F function) {
    return {std::move(function)};
}

// For a function that holds a lock while it waits for calls: a thread that waits serves its node, and may run a function on top that
// wants the same lock. As no_nesting(f) it takes replies only. The node needs a second thread for the calls that come meanwhile.
template <typename F>
[[nodiscard]] constexpr RunBy<Unnested, F> no_nesting(F function) {
    return {std::move(function)};
}
// The same for a stretch of code, at home or in a function.
class NoNesting {
public:
    NoNesting() noexcept { rove_no_nesting(1); }
    ~NoNesting() { rove_no_nesting(-1); }
    NoNesting(const NoNesting&) = delete;
    NoNesting& operator=(const NoNesting&) = delete;
};

}  // namespace rove
