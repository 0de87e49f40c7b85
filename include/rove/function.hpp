// Functions as things that can be sent: what rove::fn, a lambda, rove::bind and the others become.
//
//   rove::fn<f>               a free, static or member function (whose object is its first argument)
//   a lambda or functor       with captures whose bytes can be copied
//   rove::bind(f, values…)    f with its first arguments; they may be anything that travels
//   rove::named<"id">(f)      f under an id of your own, the same whatever it is called and wherever it stands
//   rove::on_worker(f)        f as one that runs long: another thread serves the node meanwhile
//   rove::no_nesting(f)       f as one that holds locks while it waits: nothing else runs in its thread meanwhile
//   rove::exactly(f)          f as it is in this program, also where the node's program has an f of its own
//   rove::run_by<Policy>(f)   f as Policy::run(rove::Work) has it run
//
// Each becomes an Offload<…>: code that takes the bytes of a call, calls the function and replies. Where the same source is
// compiled into the node's program, that code is there already (*resident*): its id is made of the mangled name of the Offload,
// which compilers agree upon, and of what it takes and gives; of its source file, where its name is known in one file only; and
// for lambdas, whose names mean nothing elsewhere, of the program's build as well. Else it travels (rove_add_executable).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "rove/edge.h"
#include "rove/here.hpp"
#include "rove/schema.hpp"
#include "rove/signature.hpp"
#include "rove/travel.hpp"
#include "rove/travel_parts.hpp"
#include "rove/work.hpp"
#include "rove/wrappers.hpp"

namespace rove {

namespace detail {

// ---- what a program says of its functions (librove, offload.cpp)

struct TypeFacts {
    const std::type_info* type;
    std::size_t bytes, alignment;
    std::uint32_t schema;
};
struct FunctionFacts {
    const std::type_info* tag;  // of the Offload
    const std::type_info* function;
    const char* name;    // by rove::named, or null
    const char* source;  // file
    rove_code code;
    const TypeFacts* types;  // the result's, then the arguments'
    std::size_t type_count;
};
struct Callable;  // librove's own record of a function
// Called before main(). Ends the process where two functions have one id.
const Callable& enroll(const FunctionFacts& facts);

// Takes the place of a Call of what cannot be called, so that the compiler stops after Rove's own message.
struct Wrong {
    using Value = Wrong;
    [[nodiscard]] Wrong get() const { return {}; }
    [[nodiscard]] bool done() const { return true; }
    template <typename Time>
    bool wait_for(Time /*time*/) const {
        return true;
    }
    void cancel() const {}
    template <typename Callback>
    void then(Callback&& /*callback*/) const {}
    [[nodiscard]] bool await_ready() const { return true; }
    template <typename Waiting>
    void await_suspend(Waiting /*waiting*/) const {}
    [[nodiscard]] Wrong await_resume() const { return {}; }
    template <typename T>
    operator T() const;  // NOLINT: into whatever was to be made of the result
};

template <typename P>
constexpr bool is_lost_reference() {
    return std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>;
}

// What is wrong with one parameter's type; with a result's, and with a function's own bytes, below. The messages are part of the API:
// explain() brings the one for each mistake, and what has one is not compiled any further, or the compiler would go on about it.
template <typename P>
struct Parameter {
    using Value = std::remove_cvref_t<P>;
    static constexpr bool kHere = std::is_same_v<Value, Here>;
    static constexpr bool kLost = !kHere && is_lost_reference<P>();
    static constexpr bool kPointer = std::is_pointer_v<Value> || std::is_member_pointer_v<Value>;
    static constexpr bool kArray = !kLost && std::is_array_v<Value>;
    static constexpr bool kBuffer = IsBuffer<Value>::value;
    static constexpr bool kOdd = kHere || kLost || kPointer || kArray || kBuffer;
    static constexpr bool kView = kIsView<Value>;
    static constexpr bool kPointing = [] {  // what a view shows are the bytes of the call
        if constexpr (IsSpan<Value>::value)
            return !travel::Bitwise<std::remove_cv_t<typename Value::value_type>>;
        else
            return false;
    }();
    static constexpr bool kStays = [] {
        if constexpr (kOdd || kView)
            return false;
        else
            return travel::stays<Value>();
    }();
    static constexpr bool kNoBeginning = [] {
        if constexpr (kOdd || kView)
            return false;
        else
            return travel::lacks_beginning<Value>();
    }();
    static constexpr bool kKnown = kOdd || kPointing || kStays || kNoBeginning;
    static constexpr bool kFine = [] {
        if constexpr (kKnown)
            return false;
        else
            return kView || travel::Travels<Value>;
    }();
    static constexpr void explain() {
        static_assert(!kHere,
                      "rove: a function takes rove::Here as its first parameter, by reference: rove::Here& here");
        static_assert(
            !kLost,
            "rove: a parameter that is a reference to something that can be changed: the change would be lost on the "
            "other node; take it by value and return it, or take a std::span of a rove::Buffer");
        static_assert(
            !kPointer,
            "rove: a pointer means nothing on another node; pass the value, a std::span, a rove::Buffer, or, for text "
            "in quotes, std::string_view(\"abc\")");
        static_assert(!kArray, "rove: a C array cannot be a parameter; take a std::array or a std::span<const T>");
        static_assert(!kBuffer, "rove: a function takes a rove::Buffer<T> as std::span<T>, on the node that owns it");
        static_assert(!kStays,
                      "rove: an argument of this type cannot travel: it means something in one process only (its "
                      "rove::migratable says so); pass the values that it holds");
        static_assert(
            !kPointing,
            "rove: a std::span shows the bytes that were sent, and elements of this type point to others (as a "
            "std::string does): take a const std::vector<T>&; or, where their bytes can be copied, say "
            "migratable<T>::safe = true");
        static_assert(
            !kNoBeginning,
            "rove: an argument of this type cannot travel: cereal reads it, or a type in it, into a "
            "default-constructed object; give that type a default constructor, or specialise rove::migratable for it");
        static_assert(kFine || kKnown,
                      "rove: an argument of this type cannot travel; give it a cereal serialize() that is public or "
                      "has cereal::access as a friend, or specialise rove::migratable for it");
    }
};
template <typename R>
struct ResultType {
    using Value = std::remove_cvref_t<R>;
    static constexpr bool kPoints = std::is_pointer_v<Value> || kIsView<Value>;
    static constexpr bool kStays = [] {
        if constexpr (kPoints)
            return false;
        else
            return travel::stays<Value>();
    }();
    static constexpr bool kNoBeginning = [] {
        if constexpr (kPoints || std::is_void_v<Value>)
            return false;
        else
            return travel::lacks_beginning<Value>();
    }();
    static constexpr bool kKnown = kPoints || kStays || kNoBeginning;
    static constexpr bool kFine = [] {
        if constexpr (kKnown)
            return false;
        else
            return std::is_void_v<Value> || travel::Travels<Value>;
    }();
    static constexpr void explain() {
        static_assert(
            !kPoints,
            "rove: a result that points or refers to something on the other node means nothing here; return the value");
        static_assert(!kStays,
                      "rove: a result of this type cannot travel: it means something in one process only (its "
                      "rove::migratable says so); return the values that it holds");
        static_assert(
            !kNoBeginning,
            "rove: a result of this type cannot travel: cereal reads it, or a type in it, into a "
            "default-constructed object; give that type a default constructor, or specialise rove::migratable for it");
        static_assert(kFine || kKnown,
                      "rove: a result of this type cannot travel; give it a cereal serialize() that is public or has "
                      "cereal::access as a friend, or specialise rove::migratable for it");
    }
};

// A function's own bytes: a lambda's captures, a functor's members.
template <typename F>
struct Closure {
    static constexpr bool kEmpty = std::is_empty_v<F>;
    static constexpr bool kSerialised = !std::is_trivially_copyable_v<F> && travel::can_travel<F>();
    static constexpr bool kCopied = kEmpty || kSerialised || std::is_trivially_copyable_v<F>;
    static constexpr bool kFine = kEmpty || kSerialised || (kCopied && travel::Bitwise<F>);
    static constexpr void explain() {
        static_assert(
            kCopied,
            "rove: this lambda captures something whose bytes cannot be copied (a std::string, say); pass it as an "
            "argument instead: rove::bind(lambda, values…)");
        static_assert(
            kFine || !kCopied,
            "rove: this lambda captures a pointer, a reference or `this`, which means nothing on another node; capture "
            "by value what it needs, or pass it: rove::bind(lambda, values…)");
    }
};

// What a function changes of its object, or of what it captured, is lost: both are copies where it runs.
template <typename F, typename R, typename... Ps>
struct Changes {
    static constexpr bool kObject = [] {
        if constexpr (!IsFn<F>::value) {
            return false;
        } else if constexpr (!IsFn<F>::kMember) {
            return false;
        } else {
            using Object = typename IsFn<F>::Call::Object;
            return !std::is_same_v<std::remove_cvref_t<R>, Object> && !IsFn<F>::template takes_constant<Ps...>();
        }
    }();
    static constexpr bool kCaptures =
        !std::is_empty_v<F> && !std::is_same_v<std::remove_cvref_t<R>, F> && !std::is_invocable_v<const F&, Ps...>;
    static constexpr bool kFine = !kObject && !kCaptures;
    static constexpr void explain() {
        static_assert(
            !kObject,
            "rove: this member function is not const: the object that it changes is a copy on the other node, which is "
            "thrown away; return the object, keep it in a rove::Buffer or share it by name there (node.share), or send "
            "a lambda that takes it by value, where the change does not matter");
        static_assert(
            !kCaptures,
            "rove: this lambda or functor changes what it captured (it is mutable, or its operator() not const): that "
            "is a copy on the other node, which is thrown away; return what it changes, or copy it within the "
            "function");
    }
};

// Its size is known without its value.
template <typename V>
constexpr bool is_fixed() {
    return !kIsView<V> && travel::Bitwise<V>;
}

// ---- reading

template <typename T>
std::span<T> read_view(rove_here* here, travel::Input& in) {
    static_assert(alignof(T) <= 16, "rove: what a std::span shows there may be aligned to 16 bytes at most");
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
struct Storage {  // for a function that need not be default-constructible
    alignas(F) std::byte raw[sizeof(F)];
    [[nodiscard]] F& function() { return *std::launder(reinterpret_cast<F*>(raw)); }
};

// The first parameter of a function that wants to know where it runs.
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

}  // namespace detail

// The code that runs where a call arrives. One per function and what it takes and gives: its name is the same in all programs.
template <typename F, typename Policy, typename R, typename... Ps>
struct Offload {
    // Lets no exception out.
    [[gnu::used]] static void run(rove_here* here, const void* payload, std::size_t size) {
        if constexpr (std::is_same_v<Policy, Unnested>) {
            const NoNesting scope;
            detail::guarded(here, [&] { body<true>(here, payload, size); });
        } else if constexpr (!std::is_same_v<Policy, InPlace> && !std::is_same_v<Policy, OnWorker>) {
            detail::guarded(here, [&] { Work::give_to_policy<Policy>(here, payload, size, &body<false>); });
        } else {
            if constexpr (std::is_same_v<Policy, OnWorker>) rove_hand_over(here);
            detail::guarded(here, [&] { body<true>(here, payload, size); });
        }
    }

private:
    using Taken = detail::Parameters<Ps...>;

    template <typename... Vs>
    static constexpr bool is_fixed(detail::List<Vs...>) {
        return (detail::is_fixed<Vs>() && ...) && (std::is_empty_v<F> || travel::Bitwise<F>);
    }
    template <typename... Vs>
    static constexpr bool has_views(detail::List<Vs...>) {
        return (detail::kIsView<Vs> || ...);
    }
    template <typename... Vs>
    static constexpr std::size_t fixed_bytes(detail::List<Vs...>) {
        return (std::size_t{0} + ... + sizeof(Vs)) + (std::is_empty_v<F> ? 0 : sizeof(F));
    }

    // Whether it can read its arguments while they arrive.
    template <typename... Vs>
    static constexpr bool gathers(detail::List<Vs...>) {
        return (travel::is_read_in_parts<Vs>() && ...) && (travel::can_gather<Vs>() || ...) &&
               (std::is_empty_v<F> || travel::Bitwise<F>);
    }

    // kDirect: as the call arrived, and not later from a copy of its payload.
    template <bool kDirect>
    static void body(rove_here* here, const void* payload, std::size_t size) {
        using Values = typename Taken::Values;
        if constexpr (kDirect && gathers(Values{})) {
            if (size == 0 && rove_payload_coming(here) > 0) return gather(here, Values{});
        }
        // Nothing in here throws then but the function itself: without one that does, no unwind tables need travel.
        if constexpr (is_fixed(Values{})) {
            if (size != fixed_bytes(Values{})) {
                (void)rove_fail_as(here, ROVE_INVALID,
                                   "the arguments have another size than the function's parameters");
                return;
            }
        }
        // A function that may wait for calls of its own does not keep the mailbox meanwhile.
        if constexpr (Taken::kHere && has_views(Values{})) payload = rove_payload_keep(here, payload, size);
        travel::Input in(payload, size);
        if constexpr (std::is_empty_v<F>) {
            detail::Storage<F> storage{};
            call<kDirect>(here, in, storage.function(), Values{});
        } else if constexpr (travel::Bitwise<F>) {
            detail::Storage<F> storage;
            if constexpr (is_fixed(Values{}))
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
    static void call(rove_here* here, travel::Input& in, F& function, detail::List<Vs...> all) {
        std::tuple<Vs...> values{read_one<Vs>(here, in)...};  // braces: in their order
        if constexpr (!is_fixed(all)) in.finish();
        // Its place in the mailbox is free from here on, however long the function takes.
        if constexpr (kDirect && gathers(all))
            rove_payload_gathers(here);
        else if constexpr (!has_views(all))
            rove_payload_read(here);
        invoke(here, function, values, typename Taken::Passed{});
    }
    // The payload is still arriving, and its call after it.
    template <typename... Vs>
    static void gather(rove_here* here, detail::List<Vs...>) {
        travel::PartsInput in(here, rove_payload_coming(here));
        detail::Storage<F> storage{};
        if constexpr (!std::is_empty_v<F>) in.read(storage.raw, sizeof(F));
        std::tuple<Vs...> values{in.template read<Vs>()...};
        if (in.is_complete()) invoke(here, storage.function(), values, typename Taken::Passed{});
    }
    template <typename... Vs, typename... Passed>
    static void invoke(rove_here* here, F& function, std::tuple<Vs...>& values, detail::List<Passed...>) {
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
        if constexpr (detail::is_fixed<V>()) {
            alignas(V) std::byte raw[sizeof(V)];
            if constexpr (is_fixed(typename Taken::Values{}))
                std::memcpy(raw, in.take_unchecked(sizeof raw), sizeof raw);
            else
                in.read(raw, sizeof raw);
            return travel::from_raw<V>(raw);
        } else {
            return detail::read_argument<V>(here, in);
        }
    }

    template <typename Invoke>
    static void finish(rove_here* here, const Invoke& invoke) {
        if constexpr (std::is_void_v<R>) {
            invoke();
            (void)rove_reply(here, nullptr, 0);
        } else {
            detail::reply_with<std::remove_cvref_t<R>>(here, invoke());
        }
    }
};

namespace detail {

// What a program says of an Offload, once, before main(). What packs the program finds the source's name by the words before it: it must take the
// same one, and under a precompiled header that is the header's.
template <typename O, typename F, typename R, typename... Vs>
struct Enrolled {
    static const Callable& make(const char* name, const char* source) {
        const TypeFacts types[] = {facts_of<std::remove_cvref_t<R>>(), facts_of<Vs>()...};
        return enroll({&typeid(O), &typeid(F), name, source, &O::run, types, 1 + sizeof...(Vs)});
    }
    template <typename T>
    static TypeFacts facts_of() {
        if constexpr (std::is_void_v<T>)
            return {&typeid(void), 0, 0, 0};
        else
            return {&typeid(T), sizeof(T), alignof(T), schema_of<T>()};
    }
};
template <typename O, typename F, typename R, typename Values>
struct Enrolment;
template <typename O, typename F, typename R, typename... Vs>
struct Enrolment<O, F, R, List<Vs...>> {
    // Functions that are known in one file only have a table of their own in each, so the file is theirs.
    static inline const Callable& callable =
        Enrolled<O, F, R, Vs...>::make(nullptr, &("rove source: " __BASE_FILE__)[13]);
};
// Under a name of its own.
template <FixedText kName, typename O, typename F, typename R, typename Values>
struct NamedEnrolment;
template <FixedText kName, typename O, typename F, typename R, typename... Vs>
struct NamedEnrolment<kName, O, F, R, List<Vs...>> {
    static inline const Callable& callable =
        Enrolled<O, F, R, Vs...>::make(kName.text, &("rove source: " __BASE_FILE__)[13]);
};

}  // namespace detail
}  // namespace rove
