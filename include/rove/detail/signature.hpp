// The signature of a function: from its type, and, for generic functions, from the arguments of the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "rove/detail/wrappers.hpp"
#include "rove/here.hpp"

namespace rove {

template <typename T>
class Buffer;

namespace detail {

template <typename T>
struct IsBuffer : std::false_type {};
template <typename T>
struct IsBuffer<Buffer<T>> : std::true_type {
    using Value = T;
};
template <typename T>
struct IsSpan : std::false_type {};
template <typename T>
struct IsSpan<std::span<T, std::dynamic_extent>> : std::true_type {
    using Value = T;
};
template <typename T>
inline constexpr bool kIsWritableSpan = false;
template <typename T>
inline constexpr bool kIsWritableSpan<std::span<T>> = !std::is_const_v<T>;
template <typename T>
inline constexpr bool kIsView = IsSpan<T>::value || std::is_same_v<T, std::string_view>;

// The beginning of a view on the wire: where its elements are.
struct ViewHead {
    std::uint64_t buffer = 0;  // the key of a buffer; 0: the elements follow
    std::uint64_t offset = 0;  // bytes into the buffer
    std::uint64_t count = 0;   // number of elements
};

template <typename... Ts>
struct List {};

template <typename F>
struct CallOf;  // the result and the parameters of a function type
template <typename R, typename... Ps>
struct CallOf<R(Ps...)> {
    using Result = R;
    using Parameters = List<Ps...>;
};
#define ROVE_CALL_OF_MEMBER(qualifiers)                            \
    template <typename C, typename R, typename... Ps>              \
    struct CallOf<R (C::*)(Ps...) qualifiers> : CallOf<R(Ps...)> { \
        using Object = C;                                          \
    };
ROVE_CALL_OF_MEMBER()
ROVE_CALL_OF_MEMBER(const)
ROVE_CALL_OF_MEMBER(noexcept)
ROVE_CALL_OF_MEMBER(const noexcept)
ROVE_CALL_OF_MEMBER(&)
ROVE_CALL_OF_MEMBER(const&)
ROVE_CALL_OF_MEMBER(& noexcept)
ROVE_CALL_OF_MEMBER(const& noexcept)
#undef ROVE_CALL_OF_MEMBER
template <typename R, typename... Ps>
struct CallOf<R (*)(Ps...)> : CallOf<R(Ps...)> {};
template <typename R, typename... Ps>
struct CallOf<R (*)(Ps...) noexcept> : CallOf<R(Ps...)> {};

// The type that a generic parameter has for an argument of type A.
template <typename A>
struct Taken {
    using type = A;
};
template <>
struct Taken<const char*> {
    using type = std::string;
};
template <>
struct Taken<char*> {
    using type = std::string;
};
template <typename T>
struct Taken<Buffer<T>> {
    using type = std::span<T>;
};
template <typename T>
struct Taken<std::span<T>> {
    using type = std::span<const T>;
};

template <typename F>
struct IsFn : std::false_type {};
template <auto kFunction>
struct IsFn<Fn<kFunction>> : std::true_type {
    static constexpr bool kObject = std::is_class_v<decltype(kFunction)>;
    static constexpr bool kData = std::is_member_object_pointer_v<decltype(kFunction)>;
    static constexpr bool kMember = std::is_member_function_pointer_v<decltype(kFunction)>;
    using Call = CallOf<decltype(kFunction)>;
    // Whether a member function, called with these parameters, leaves its object unchanged.
    template <typename Object, typename... Ps>
    static constexpr bool takes_constant() {
        return std::is_invocable_v<decltype(kFunction), const std::remove_cvref_t<Object>&, Ps...>;
    }
};
template <typename Member>
struct WithObject {  // the object is the first argument
    template <typename... Ps>
    static List<typename Member::Object, Ps...> list(List<Ps...>);
    using Result = typename Member::Result;
    using Parameters = decltype(list(typename Member::Parameters{}));
};
template <typename F, typename... As>
struct Generic {
    using Result = std::invoke_result_t<F&, As...>;
    using Parameters = List<As...>;
};
template <typename Call>
concept IsKnown = requires { typename Call::Parameters; };
template <typename F>
constexpr auto of_fn() {
    if constexpr (IsFn<F>::kMember && IsKnown<typename IsFn<F>::Call>)
        return std::type_identity<WithObject<typename IsFn<F>::Call>>{};
    else
        return std::type_identity<typename IsFn<F>::Call>{};
}
template <typename Call>
constexpr auto if_known(std::type_identity<Call> call) {
    static_assert(IsKnown<Call>,
                  "rove: a function that takes further arguments (...), a volatile member function, or one for objects "
                  "that go (&&) cannot be sent, nor one with another calling convention; call it from a lambda that "
                  "takes what it needs");
    if constexpr (IsKnown<Call>)
        return call;
    else
        return std::type_identity<void>{};
}
// operator() with an explicit object parameter (C++23) is a plain function whose first parameter is the object.
template <typename F, typename Call, typename Parameters>
struct WithoutObject : std::type_identity<Call> {};
template <typename F, typename Call, typename Object, typename... Ps>
    requires(std::is_same_v<std::remove_cvref_t<Object>, F> && std::is_invocable_v<F&, Ps...>)
struct WithoutObject<F, Call, List<Object, Ps...>> : std::type_identity<Generic<F, Ps...>> {};
template <typename F>
constexpr auto of_operator() {
    using Call = CallOf<decltype(&F::operator())>;
    if constexpr (IsKnown<Call>)
        return WithoutObject<F, Call, typename Call::Parameters>{};
    else
        return std::type_identity<Call>{};
}
// The result and the parameters of a function for these arguments. Void if there is none: the compiler has printed the reason.
template <typename F, typename... Args>
constexpr auto signature_of() {
    if constexpr (IsFn<F>::value) {
        static_assert(!IsFn<F>::kObject,
                      "rove: rove::fn is for functions; pass the lambda or functor itself: peer.sync(lambda, values…)");
        static_assert(!IsFn<F>::kData,
                      "rove: rove::fn is for functions, and this is a data member; send a lambda that reads it: "
                      "[](const Class& object) { return object.member; }");
        if constexpr (IsFn<F>::kObject || IsFn<F>::kData)
            return std::type_identity<void>{};
        else
            return if_known(of_fn<F>());
    } else if constexpr (requires { &F::operator(); }) {
        return if_known(std::type_identity<typename decltype(of_operator<F>())::type>{});
    } else if constexpr (std::is_invocable_v<F&, typename Taken<std::decay_t<Args>>::type...>) {
        return std::type_identity<Generic<F, typename Taken<std::decay_t<Args>>::type...>>{};
    } else if constexpr (std::is_invocable_v<F&, Here&, typename Taken<std::decay_t<Args>>::type...>) {
        // Checked last, because `const auto&...` would accept a Here that was not intended.
        return std::type_identity<Generic<F, Here&, typename Taken<std::decay_t<Args>>::type...>>{};
    } else {
        static_assert(std::is_invocable_v<F&, typename Taken<std::decay_t<Args>>::type...>,
                      "rove: this function cannot be called with these arguments");
        return std::type_identity<void>{};
    }
}

}  // namespace detail

}  // namespace rove
