// Sending a function: arguments are checked and written, wrappers are taken off, and the call is begun. Shared by Peer::async, by the
// peers that a function sees through Here, and by PeerGroup.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "rove/call.hpp"
#include "rove/detail/checks.hpp"
#include "rove/detail/offload.hpp"
#include "rove/detail/wrappers.hpp"
#include "rove/here.hpp"

namespace rove::detail {

// A buffer as an argument (defined in rove/buffer.hpp).
template <typename T>
ViewHead view_of(const Buffer<T>& buffer);

template <typename V, typename A>
void write_argument(travel::Output& out, const A& argument) {
    if constexpr (IsBuffer<A>::value) {
        travel::write(out, view_of(argument));
    } else if constexpr (kIsView<V>) {
        const V view = argument;
        using T = typename V::value_type;
        travel::write(out, ViewHead{.count = view.size()});
        out.align(alignof(T));
        out.write_lasting(view.data(), view.size() * sizeof(T));
    } else if constexpr (std::is_same_v<V, A>) {
        travel::write_lasting(out, argument);
    } else {
        travel::write(out, static_cast<V>(argument));
    }
}

template <typename V, typename A>
void put_fixed(std::byte*& at, const A& argument) {
    if constexpr (std::is_same_v<V, A>) {
        std::memcpy(at, &argument, sizeof(V));
    } else {
        const V value = static_cast<V>(argument);
        std::memcpy(at, &value, sizeof(V));
    }
    at += sizeof(V);
}

// Arguments of a fixed size up to this are written onto the stack, others onto the heap.
inline constexpr std::size_t kStackBytesMax = 1024;

template <typename... Vs>
struct Values {
    static constexpr bool kFixed = (is_fixed<Vs>() && ...);
    static constexpr std::size_t kBytes = [] {
        if constexpr (kFixed)
            return (std::size_t{0} + ... + sizeof(Vs));
        else
            return std::size_t{0};
    }();
};

template <typename F, typename... Vs, typename... Args, typename Send>
auto with_payload(List<Vs...> /*values*/, const Send& send, const F& function, const Args&... args) {
    constexpr bool kEmpty = std::is_empty_v<F>;
    constexpr std::size_t kBytes = Values<Vs...>::kBytes + (kEmpty ? 0 : sizeof(F));
    if constexpr (Values<Vs...>::kFixed && (kEmpty || travel::Bitwise<F>) && kBytes <= kStackBytesMax) {
        std::array<std::byte, kBytes == 0 ? 1 : kBytes> bytes;
        std::byte* at = bytes.data();
        if constexpr (!kEmpty) put_fixed<F>(at, function);
        (put_fixed<Vs>(at, args), ...);
        const rove_piece whole{bytes.data(), kBytes};
        return send(std::span(&whole, 1));
    } else {
        std::vector<std::byte> bytes;
        travel::Output out(bytes);
        if constexpr (!kEmpty) travel::write(out, function);
        (write_argument<Vs>(out, args), ...);
        if (!out.fits())
            throw_error(ErrorCode::invalid, "arguments of " + std::to_string(out.size()) +
                                                " bytes cannot be sent (a call has " +
                                                std::to_string(ROVE_MESSAGE_BYTES_MAX) +
                                                " at most); put them into a buffer there (rove::Buffer)");
        const travel::Output::Whole whole = out.whole();
        return send(whole.all());
    }
}

template <typename Ps>
struct ValuesOf;
template <typename... Ps>
struct ValuesOf<List<Ps...>> {
    using type = List<std::remove_cvref_t<Ps>...>;
    static constexpr bool kFine = (Parameter<Ps>::kFine && ...);
    template <typename F, typename Policy, typename R>
    using Code = Offload<F, Policy, R, Ps...>;
};
template <typename P, typename... Ps>
    requires kIsHere<P>
struct ValuesOf<List<P, Ps...>> {
    using type = List<std::remove_cvref_t<Ps>...>;
    static constexpr bool kFine = (Parameter<Ps>::kFine && ...);
    template <typename F, typename Policy, typename R>
    using Code = Offload<F, Policy, R, P, Ps...>;
};

template <typename... Ps>
constexpr void explain_parameters(List<Ps...>) {
    (Parameter<Ps>::explain(), ...);
}
template <typename P, typename... Ps>
    requires kIsHere<P>
constexpr void explain_parameters(List<P, Ps...>) {
    (Parameter<Ps>::explain(), ...);
}
// Whether parameters and result can travel; if not, the compiler prints the reason.
template <typename Signature>
constexpr bool is_fine() {
    if constexpr (std::is_void_v<Signature>) {
        return false;
    } else if constexpr (!ValuesOf<typename Signature::Parameters>::kFine) {
        explain_parameters(typename Signature::Parameters{});
        return false;
    } else if constexpr (!ResultType<typename Signature::Result>::kFine) {
        ResultType<typename Signature::Result>::explain();
        return false;
    } else {
        return true;
    }
}
template <typename F, typename R, typename... Ps>
constexpr bool keeps_changes(List<Ps...> /*parameters*/) {
    if constexpr (!Changes<F, R, Ps...>::kFine) Changes<F, R, Ps...>::explain();
    return Changes<F, R, Ps...>::kFine;
}
template <typename F, typename... Args, typename... Vs>
constexpr bool are_fine(List<Vs...> /*values*/) {
    static_assert(sizeof...(Vs) == sizeof...(Args),
                  "rove: the function takes another number of arguments; pass all of them, because default arguments "
                  "are not used");
    if constexpr (sizeof...(Vs) != sizeof...(Args)) {
        return false;
    } else if constexpr (!Closure<F>::kFine) {
        Closure<F>::explain();
        return false;
    } else if constexpr (!(Argument<Vs, Args>::kFine && ...)) {
        (Argument<Vs, Args>::explain(), ...);
        return false;
    } else {
        return true;
    }
}

template <FixedText kName, typename O, typename F, typename R, typename Values>
const Callable& callable() {
    if constexpr (sizeof(kName.text) > 1)
        return NamedEnrolment<kName, O, F, R, Values>::callable;
    else
        return Enrolment<O, F, R, Values>::callable;
}

// The wrappers of rove/function.hpp: which one a type is, and what is in it.
enum class Wrapper { none, policy, named, bound, exactly };
template <typename F>
struct Wrapping {
    static constexpr Wrapper kKind = Wrapper::none;
};
template <typename P, typename F>
struct Wrapping<RunBy<P, F>> {
    static constexpr Wrapper kKind = Wrapper::policy;
    using Policy = P;
};
template <FixedText kText, typename F>
struct Wrapping<Named<kText, F>> {
    static constexpr Wrapper kKind = Wrapper::named;
    static constexpr auto kName = kText;
};
template <typename F, typename... Values>
struct Wrapping<Bound<F, Values...>> {
    static constexpr Wrapper kKind = Wrapper::bound;
};

template <typename F>
struct Wrapping<Exactly<F>> {
    static constexpr Wrapper kKind = Wrapper::exactly;
};

template <typename Policy, FixedText kName, typename Signature, typename To, typename F, typename... Args>
auto checked_offload(const To& to, const F& function, const Args&... args) {
    if constexpr (!is_fine<Signature>()) {
        return Wrong{};
    } else {
        using R = typename Signature::Result;
        using Shape = ValuesOf<typename Signature::Parameters>;
        using Vs = typename Shape::type;
        if constexpr (!keeps_changes<F, R>(typename Signature::Parameters{}) || !are_fine<F, Args...>(Vs{})) {
            return Wrong{};
        } else {
            using O = typename Shape::template Code<F, Policy, R>;
            return with_payload(
                Vs{},
                [&](std::span<const rove_piece> payload) {
                    return to.template begin<O, std::remove_cvref_t<R>>([] { return &callable<kName, O, F, R, Vs>(); },
                                                                        payload);
                },
                function, args...);
        }
    }
}

// Takes the wrappers off, then checks and sends. `to.begin<O, R>(callable, payload)` begins the call and returns what async returns.
template <typename Policy, FixedText kName, typename To, typename F, typename... Args>
auto offload(const To& to, const F& function, const Args&... args) {
    using W = Wrapping<F>;
    if constexpr (W::kKind == Wrapper::policy) {
        return offload<typename W::Policy, kName>(to, function.function, args...);
    } else if constexpr (W::kKind == Wrapper::named) {
        return offload<Policy, W::kName>(to, function.function, args...);
    } else if constexpr (W::kKind == Wrapper::bound) {
        return std::apply(
            [&](const auto&... values) { return offload<Policy, kName>(to, function.function, values..., args...); },
            function.values);
    } else if constexpr (W::kKind == Wrapper::exactly) {
        return offload<Policy, kName>(to.exactly(), function.function, args...);
    } else {
        static_assert(!std::is_pointer_v<F> && !std::is_function_v<F> && !std::is_member_pointer_v<F>,
                      "rove: the address of a function means nothing on another node; write rove::fn<f>");
        if constexpr (std::is_pointer_v<F> || std::is_function_v<F> || std::is_member_pointer_v<F>) {
            return Wrong{};
        } else {
            using Signature = typename decltype(signature_of<F, Args...>())::type;
            return checked_offload<Policy, kName, Signature>(to, function, args...);
        }
    }
}

// A call from within a function, which names its callee by the address of its code, because the node knows that. limit_ns covers the sending,
// too; negative: none.
struct FromHere {
    rove_here* here;
    std::uint32_t node;
    bool reply;
    std::int64_t limit_ns;
    // A function that has travelled calls the code that travelled with it, so this changes nothing.
    template <typename To = FromHere>
    [[nodiscard]] To exactly() const {
        static_assert(!std::is_same_v<To, FromHere>,
                      "rove: rove::exactly is for a call that a program makes by a rove::Peer");
        return *this;
    }
    template <typename O, typename R, typename Find>
    auto begin(const Find& find, std::span<const rove_piece> payload) const {
        // Names `find`, so that the callee is enrolled if this is compiled into a program; the code that travels contains nothing of it.
        static_assert(std::is_pointer_v<decltype(find())>);
        rove_pending pending{};
        check(rove_here_call_within(here, node, &O::run, payload.data(), payload.size(), limit_ns,
                                    reply ? &pending : nullptr));
        return Access::call<R>(pending);
    }
};

template <typename Policy, FixedText kName, typename F>
void enrol() {
    using W = Wrapping<F>;
    if constexpr (W::kKind == Wrapper::policy) {
        enrol<typename W::Policy, kName, decltype(F::function)>();
    } else if constexpr (W::kKind == Wrapper::named) {
        enrol<Policy, W::kName, decltype(F::function)>();
    } else if constexpr (W::kKind == Wrapper::exactly) {
        enrol<Policy, kName, decltype(F::function)>();
    } else {
        using Signature = typename decltype(signature_of<F>())::type;
        if constexpr (is_fine<Signature>()) {
            using R = typename Signature::Result;
            using Shape = ValuesOf<typename Signature::Parameters>;
            (void)callable<kName, typename Shape::template Code<F, Policy, R>, F, R, typename Shape::type>();
        }
    }
}

}  // namespace rove::detail

namespace rove {

template <typename F, typename... Args>
    requires(!std::is_same_v<F, Within>)
auto HerePeer::async(const F& function, const Args&... args) const {
    return detail::offload<detail::InPlace, "">(detail::FromHere{here_, node_, true, detail::kForever}, function,
                                                args...);
}
template <typename F, typename... Args>
auto HerePeer::async(Within limit, const F& function, const Args&... args) const {
    return detail::offload<detail::InPlace, "">(detail::FromHere{here_, node_, true, limit.ns}, function, args...);
}
template <typename F, typename... Args>
    requires(!std::is_same_v<F, Within>)
auto HerePeer::sync(const F& function, const Args&... args) const {
    return async(function, args...).get();
}
template <typename F, typename... Args>
auto HerePeer::sync(Within limit, const F& function, const Args&... args) const {
    return async(limit, function, args...).get();
}
template <typename F, typename... Args>
    requires(!std::is_same_v<F, Within>)
void HerePeer::post(const F& function, const Args&... args) const {
    rove_here* const here = here_;
    (void)detail::offload<detail::InPlace, "">(detail::FromHere{here, node_, false, detail::kForever}, function,
                                               args...);
}
template <typename F, typename... Args>
void HerePeer::post(Within limit, const F& function, const Args&... args) const {
    rove_here* const here = here_;
    (void)detail::offload<detail::InPlace, "">(detail::FromHere{here, node_, false, limit.ns}, function, args...);
}

}  // namespace rove
