// Offload<F, Policy, R, Ps…>: the code that runs where a call arrives. It reads the arguments out of the call's bytes, calls the function,
// and replies with the result. One Offload exists for each function, with what it takes and returns, and with how it is run.
//
// Before main() a program enrols its Offloads with librove (Enrolment). A function's id is made of the mangled name of its Offload, on
// which compilers agree, and of what the function takes and returns. If only one file knows the name, the file is a part of the id; for
// lambdas, whose names mean nothing in another program, the program's build is.
//
// src/base/mangled.cpp knows the mangled name of Offload<…>::run, src/extraction/program.cpp and src/package/bundle.cpp its demangled name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "rove/detail/checks.hpp"
#include "rove/detail/schema.hpp"
#include "rove/detail/signature.hpp"
#include "rove/detail/travel.hpp"
#include "rove/detail/travel_parts.hpp"
#include "rove/detail/wrappers.hpp"
#include "rove/edge.h"
#include "rove/here.hpp"
#include "rove/no_nesting.hpp"
#include "rove/work.hpp"

namespace rove::detail {

// ---- what a program reports to librove about its functions (src/program/callables.cpp)

struct TypeFacts {
    const std::type_info* type;
    std::size_t bytes, alignment;
    std::uint32_t schema;
};
struct FunctionFacts {
    const std::type_info* tag;  // the Offload's type
    const std::type_info* function;
    const char* name;    // given by rove::named, or null
    const char* source;  // the source file
    rove_code code;
    const TypeFacts* types;  // types of the result, then of the arguments
    std::size_t type_count;
};
struct Callable;  // librove's own record of a function
// Called before main(). Ends the process if two functions have one id.
const Callable& add_callable(const FunctionFacts& facts);

// ---- reading arguments, and replying

// Every payload is aligned to this, so a view of it cannot be aligned more strictly.
inline constexpr std::size_t kPayloadAlignment = 16;

template <typename T>
std::span<T> read_view(rove_here* here, travel::Input& in) {
    static_assert(alignof(T) <= kPayloadAlignment,
                  "rove: what a std::span shows there may be aligned to 16 bytes at most");
    const auto head = travel::read<ViewHead>(in);
    if (head.buffer != 0) {
        void* at = nullptr;
        if (head.count > SIZE_MAX / sizeof(T) || head.offset % alignof(T) != 0) travel::cut_short();
        if (rove_buffer_at(here, head.buffer, head.offset, head.count * sizeof(T), &at) != ROVE_OK) {
            const rove_failure* why = rove_last_failure();
            throw_error(static_cast<ErrorCode>(why->error), why->message);
        }
        return {static_cast<T*>(at), static_cast<std::size_t>(head.count)};
    }
    if constexpr (std::is_const_v<T>) {
        in.align(alignof(T));
        if (head.count > in.left() / sizeof(T)) travel::cut_short();
        return {reinterpret_cast<T*>(in.take(head.count * sizeof(T))), static_cast<std::size_t>(head.count)};
    } else {
        throw_error(ErrorCode::invalid, "a function that changes a span needs a buffer of the node that it runs on");
    }
}

template <typename V>
V read_argument(rove_here* here, travel::Input& in) {
    if constexpr (IsSpan<V>::value) {
        return read_view<typename IsSpan<V>::Value>(here, in);
    } else if constexpr (std::is_same_v<V, std::string_view>) {
        const std::span<const char> text = read_view<const char>(here, in);
        return {text.data(), text.size()};
    } else {
        return travel::read<V>(in);
    }
}

template <typename F>
struct Storage {  // a function object's memory; it need not be default-constructible
    alignas(F) std::byte raw[sizeof(F)];
    [[nodiscard]] F& function() { return *std::launder(reinterpret_cast<F*>(raw)); }
};

// Whether a first parameter asks for the Here.
template <typename P>
inline constexpr bool kIsHere = std::is_same_v<P, Here&> || std::is_same_v<P, const Here&>;

template <typename... Ps>
struct Parameters {
    static constexpr bool kHere = false;
    using Values = List<std::remove_cvref_t<Ps>...>;
    using Passed = List<Ps...>;
};
template <typename P, typename... Ps>
    requires kIsHere<P>
struct Parameters<P, Ps...> {
    static constexpr bool kHere = true;
    using Values = List<std::remove_cvref_t<Ps>...>;
    using Passed = List<Ps...>;
};

template <typename R>
void reply_with(rove_here* here, const R& result) {
    int error = ROVE_OK;
    std::size_t size = sizeof result;
    if constexpr (travel::Bitwise<R>) {
        error = rove_reply(here, &result, size);
    } else {
        std::vector<std::byte> bytes;
        travel::Output out(bytes);
        travel::write_lasting(out, result);
        size = out.size();
        const travel::Output::Whole whole = out.whole();
        error = out.fits() ? rove_reply_pieces(here, whole.pieces.data(), whole.count) : static_cast<int>(ROVE_INVALID);
    }
    if (error != ROVE_OK) (void)rove_fail_unsent(here, error, size);
}

// The code that runs where a call arrives. Its mangled name is the same in all programs.
template <typename F, typename Policy, typename R, typename... Ps>
struct Offload {
    // Runs the call. No exception leaves it.
    [[gnu::used]] static void run(rove_here* here, const void* payload, std::size_t size) {
        if constexpr (std::is_same_v<Policy, Unnested>) {
            const NoNesting scope;
            guarded(here, [&] { body<true>(here, payload, size); });
        } else if constexpr (!std::is_same_v<Policy, InPlace> && !std::is_same_v<Policy, OnWorker>) {
            guarded(here, [&] { Work::give_to_policy<Policy>(here, payload, size, &body<false>); });
        } else {
            if constexpr (std::is_same_v<Policy, OnWorker>) rove_hand_over(here);
            guarded(here, [&] { body<true>(here, payload, size); });
        }
    }

private:
    using Taken = Parameters<Ps...>;

    template <typename... Vs>
    static constexpr bool all_fixed(List<Vs...>) {
        return (is_fixed<Vs>() && ...) && (std::is_empty_v<F> || travel::Bitwise<F>);
    }
    template <typename... Vs>
    static constexpr bool has_views(List<Vs...>) {
        return (kIsView<Vs> || ...);
    }
    template <typename... Vs>
    static constexpr std::size_t fixed_bytes(List<Vs...>) {
        return (std::size_t{0} + ... + sizeof(Vs)) + (std::is_empty_v<F> ? 0 : sizeof(F));
    }

    // Whether the arguments can be read while they arrive.
    template <typename... Vs>
    static constexpr bool gathers(List<Vs...>) {
        return (travel::is_read_in_parts<Vs>() && ...) && (travel::can_gather<Vs>() || ...) &&
               (std::is_empty_v<F> || travel::Bitwise<F>);
    }

    // kDirect: the call is run as it arrived; otherwise later, by a policy, from a copy of its payload.
    template <bool kDirect>
    static void body(rove_here* here, const void* payload, std::size_t size) {
        using Values = typename Taken::Values;
        if constexpr (kDirect && gathers(Values{})) {
            if (size == 0 && rove_payload_coming(here) > 0) return gather(here, Values{});
        }
        // With arguments of a fixed size only the function itself can throw: if it does not, no unwind tables need to travel.
        if constexpr (all_fixed(Values{})) {
            if (size != fixed_bytes(Values{})) {
                (void)rove_fail_as(here, ROVE_INVALID,
                                   "the arguments have another size than the function's parameters");
                return;
            }
        }
        // A function that may wait for calls of its own must not hold its place in the mailbox while it waits.
        if constexpr (Taken::kHere && has_views(Values{})) payload = rove_payload_keep(here, payload, size);
        travel::Input in(payload, size);
        if constexpr (std::is_empty_v<F>) {
            Storage<F> storage{};
            call<kDirect>(here, in, storage.function(), Values{});
        } else if constexpr (travel::Bitwise<F>) {
            Storage<F> storage;
            if constexpr (all_fixed(Values{}))
                std::memcpy(storage.raw, in.take_unchecked(sizeof(F)), sizeof(F));
            else
                in.read(storage.raw, sizeof(F));
            call<kDirect>(here, in, storage.function(), Values{});
        } else {
            F function = travel::read<F>(in);
            call<kDirect>(here, in, function, Values{});
        }
    }

    template <bool kDirect, typename... Vs>
    static void call(rove_here* here, travel::Input& in, F& function, List<Vs...> all) {
        std::tuple<Vs...> values{read_one<Vs>(here, in)...};  // braces: evaluated in order
        if constexpr (!all_fixed(all)) in.finish();
        // From here on the payload's place in the mailbox is free, however long the function takes.
        if constexpr (kDirect && gathers(all))
            rove_payload_gathers(here);
        else if constexpr (!has_views(all))
            rove_payload_read(here);
        invoke(here, function, values, typename Taken::Passed{});
    }
    // The payload is still arriving, and its call will arrive after it.
    template <typename... Vs>
    static void gather(rove_here* here, List<Vs...>) {
        travel::PartsInput in(here, rove_payload_coming(here));
        Storage<F> storage{};
        if constexpr (!std::is_empty_v<F>) in.read(storage.raw, sizeof(F));
        std::tuple<Vs...> values{in.template read<Vs>()...};
        if (in.is_complete()) invoke(here, storage.function(), values, typename Taken::Passed{});
    }
    template <typename... Vs, typename... Passed>
    static void invoke(rove_here* here, F& function, std::tuple<Vs...>& values, List<Passed...>) {
        const auto apply = [&](auto&&... first) -> decltype(auto) {
            return std::apply(
                [&](Vs&... each) -> decltype(auto) {
                    return std::invoke(function, first..., static_cast<Passed&&>(each)...);
                },
                values);
        };
        if constexpr (Taken::kHere) {
            Here at(here);
            finish(here, [&]() -> decltype(auto) { return apply(at); });
        } else {
            finish(here, [&]() -> decltype(auto) { return apply(); });
        }
    }

    template <typename V>
    static V read_one(rove_here* here, travel::Input& in) {
        if constexpr (is_fixed<V>()) {
            alignas(V) std::byte raw[sizeof(V)];
            if constexpr (all_fixed(typename Taken::Values{}))
                std::memcpy(raw, in.take_unchecked(sizeof raw), sizeof raw);
            else
                in.read(raw, sizeof raw);
            return travel::from_raw<V>(raw);
        } else {
            return read_argument<V>(here, in);
        }
    }

    template <typename Invoke>
    static void finish(rove_here* here, const Invoke& invoke) {
        if constexpr (std::is_void_v<R>) {
            invoke();
            (void)rove_reply(here, nullptr, 0);
        } else {
            reply_with<std::remove_cvref_t<R>>(here, invoke());
        }
    }
};

// Reports an Offload of this program to librove, once, before main(). `rove bundle` finds the source's name in the program's file by the text
// "\1rove source: " before it, because it must use the same name, and under a precompiled header __BASE_FILE__ names the header.
inline constexpr std::size_t kSourceMark = sizeof("\1rove source: ") - 1;
template <typename O, typename F, typename R, typename... Vs>
struct Enrolled {
    static const Callable& make(const char* name, const char* source) {
        const TypeFacts types[] = {facts_of<std::remove_cvref_t<R>>(), facts_of<Vs>()...};
        return add_callable({&typeid(O), &typeid(F), name, source, &O::run, types, 1 + sizeof...(Vs)});
    }
    template <typename T>
    static TypeFacts facts_of() {
        if constexpr (std::is_void_v<T>)
            return {&typeid(void), 0, 0, 0};
        else
            return {&type_info_of<T>(), sizeof(T), alignof(T), schema_of<T>()};
    }
};
template <typename O, typename F, typename R, typename Values>
struct Enrolment;
template <typename O, typename F, typename R, typename... Vs>
struct Enrolment<O, F, R, List<Vs...>> {
    // A function that only one file knows has an Enrolment of its own in each such file, so this is that file's name.
    static inline const Callable& callable =
        Enrolled<O, F, R, Vs...>::make(nullptr, &("\1rove source: " __BASE_FILE__)[kSourceMark]);
};
// The Enrolment of a rove::named function, under its name.
template <FixedText kName, typename O, typename F, typename R, typename Values>
struct NamedEnrolment;
template <FixedText kName, typename O, typename F, typename R, typename... Vs>
struct NamedEnrolment<kName, O, F, R, List<Vs...>> {
    static inline const Callable& callable =
        Enrolled<O, F, R, Vs...>::make(kName.text, &("\1rove source: " __BASE_FILE__)[kSourceMark]);
};

}  // namespace rove::detail
