// The types that rove/function.hpp makes: a function, and how it is wrapped.
#pragma once

#include <cstddef>
#include <functional>
#include <tuple>
#include <utility>

namespace rove::detail {

template <auto kFunction>
struct Fn {
    template <typename... Args>
    decltype(auto) operator()(Args&&... args) const {
        return std::invoke(kFunction, std::forward<Args>(args)...);
    }
};

template <typename F, typename... Values>
struct Bound {
    F function;
    std::tuple<Values...> values;
};

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

template <typename F>
struct Exactly {
    F function;
};

// How a function is run where it arrives.
struct InPlace {};   // run by the thread that found its frame; the default
struct OnWorker {};  // run by that thread, and another one serves the node from then on
struct Unnested {};  // run by that thread, which runs no other function on top of it while it waits
template <typename Policy, typename F>
struct RunBy {
    F function;
};

}  // namespace rove::detail
