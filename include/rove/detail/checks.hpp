// Checks when a call is compiled whether the function, its parameters, its result and the arguments can be sent. Each check prints a message of
// its own that says what to do; these messages are part of the API (docs/works-at-home.md lists them).
//
// Each struct below has `kFine`, and explain(), whose static_asserts print the message for the first mistake. A type for which a message was
// printed is not compiled any further, otherwise the compiler would add errors of its own.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "rove/detail/signature.hpp"
#include "rove/detail/travel.hpp"
#include "rove/detail/travel_held.hpp"
#include "rove/here.hpp"

namespace rove::detail {

// Returned in place of a Call if the function cannot be called, so that the compiler stops after Rove's own message.
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
    operator T() const;  // NOLINT: converts to any type that the caller makes of the result
};

template <typename P>
constexpr bool is_lost_reference() {
    return std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>;
}

template <typename T>
struct IsElsewhere : std::bool_constant<travel::Shows<T>::value || IsBuffer<T>::value> {};

// The mistakes in the type of a value, wherever the value is. kAside: the value's place has a message of its own, or it does not travel as
// a value.
template <typename V, bool kAside>
struct Flaws {
    template <template <typename> typename Is>
    static constexpr bool kWithin = [] {
        if constexpr (kAside)
            return false;
        else
            return travel::is_within<Is, V>();
    }();
    static constexpr bool kElsewhere = !kAside && travel::holds<IsElsewhere, V>();
    static constexpr bool kConstant = !kAside && travel::holds_constant<V>();
    static constexpr bool kStays = !kAside && travel::holds<travel::Stays, V>();
    static constexpr bool kNoHeader = !kAside && travel::holds<travel::LacksHeader, V>();
    static constexpr bool kPoints =
        !kAside && !kElsewhere && !kStays && !kNoHeader && travel::holds<travel::PointsWithin, V>();
    static constexpr bool kUnmovable = !kAside && !kStays && !std::is_move_constructible_v<V>;
    static constexpr bool kNoBeginning =
        !kUnmovable && !kConstant && (kWithin<travel::LacksBeginning> || travel::holds_unmade<V>());
    static constexpr bool kLoses = kWithin<travel::LosesItsOwn>;
    static constexpr bool kPolymorphic = kWithin<travel::PointsToPolymorphic>;
    static constexpr bool kOrdered = kWithin<travel::IsOrderedByState>;
    static constexpr bool kDeletes = kWithin<travel::DeletesByState>;
    static constexpr bool kKnown = kElsewhere || kUnmovable || kConstant || kStays || kNoHeader || kPoints ||
                                   kNoBeginning || kLoses || kPolymorphic || kOrdered || kDeletes;
};
// The messages for them. Used in Parameter and in ResultType, where `Flawed` is such a struct; a macro, because a message must be a
// literal. `value`: "an argument" or "a result"; `give`: "pass" or "return".
#define ROVE_EXPLAIN_FLAWS(value, give, instead_of_elsewhere, instead_of_unmovable)                                   \
    static_assert(!Flawed::kElsewhere, "rove: " value                                                                 \
                                       " of this type cannot travel: it holds a pointer, a view or a rove::Buffer; "  \
                                       "let it hold the values (a std::string, a std::vector)" instead_of_elsewhere); \
    static_assert(!Flawed::kUnmovable,                                                                                \
                  "rove: " value                                                                                      \
                  " of this type cannot travel: it can neither be copied nor moved " instead_of_unmovable);           \
    static_assert(!Flawed::kConstant,                                                                                 \
                  "rove: " value                                                                                      \
                  " of this type cannot travel: it holds a constant, as std::pair<const K, V> does, and "             \
                  "nothing can be read into that; leave out the const");                                              \
    static_assert(!Flawed::kStays, "rove: " value                                                                     \
                                   " of this type cannot travel: it means something in one process only, as "         \
                                   "std::function, std::thread::id, iterators and rove::Call do, or its "             \
                                   "rove::migratable says so; " give " the values that it stands for");               \
    static_assert(!Flawed::kNoHeader, "rove: " value                                                                  \
                                      " of this type cannot travel: cereal has no header for std::filesystem::path, " \
                                      "std::error_code and std::error_condition; " give                               \
                                      " path.string() or "                                                            \
                                      "code.value(), or specialise rove::migratable for it (docs/cpp.md shows how)"); \
    static_assert(!Flawed::kPoints, "rove: " value                                                                    \
                                    " of this type cannot travel: it, or a type in it, holds a pointer, a reference " \
                                    "or a view (or is a union or has bit-fields, where the compiler cannot tell); "   \
                                    "let it hold the values, give it a serialize(), or, where no pointer is in it, "  \
                                    "say rove::migratable<T>::safe = true");                                          \
    static_assert(!Flawed::kNoBeginning,                                                                              \
                  "rove: " value                                                                                      \
                  " of this type cannot travel: cereal reads it, or a type in it, into a "                            \
                  "default-constructed object; give that type a public default constructor, or specialise "           \
                  "rove::migratable for it");                                                                         \
    static_assert(                                                                                                    \
        !Flawed::kLoses,                                                                                              \
        "rove: " value                                                                                                \
        " of this type would lose members on its way: it, or a type in it, is derived from one "                      \
        "that can be serialised, and is serialised as that; give it a serialize() of its own, or specialise "         \
        "rove::migratable for it");                                                                                   \
    static_assert(!Flawed::kPolymorphic,                                                                              \
                  "rove: " value                                                                                      \
                  " of this type cannot travel: it is, or holds, a pointer to a polymorphic type, and "               \
                  "the other node is not told which derived type it points to; " give                                 \
                  " a std::variant of them, or specialise rove::migratable for it");                                  \
    static_assert(!Flawed::kOrdered,                                                                                  \
                  "rove: " value                                                                                      \
                  " of this type cannot travel: the comparator or hash function of a container in it "                \
                  "has members (or is a pointer), which would be lost; give it a type without members");              \
    static_assert(!Flawed::kDeletes,                                                                                  \
                  "rove: " value                                                                                      \
                  " of this type cannot travel: the deleter of a std::unique_ptr in it has members "                  \
                  "(or is a pointer), which would be lost; give it a type without members");                          \
    static_assert(kFine || kKnown,                                                                                    \
                  "rove: " value                                                                                      \
                  " of this type cannot travel; give it a cereal serialize() that is public or has "                  \
                  "cereal::access as a friend, include <cereal/types/NAME.hpp> for one of the standard library, or "  \
                  "specialise rove::migratable for it")

// The type of one parameter.
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
    static constexpr bool kPointing =
        [] {  // the elements of a view are bytes of the call, so they must not point elsewhere
            if constexpr (IsSpan<Value>::value)
                return !travel::Bitwise<std::remove_cv_t<typename Value::value_type>>;
            else
                return false;
        }();
    static constexpr bool kOtherView = !kOdd && !kView && travel::Shows<Value>::value;
    using Flawed = Flaws<Value, kOdd || kView || kOtherView>;
    static constexpr bool kKnown = kOdd || kPointing || kOtherView || Flawed::kKnown;
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
        static_assert(!kOtherView,
                      "rove: the views that a function can take are std::span<const T>, of no fixed size, and "
                      "std::string_view; take one of these, or what holds the values: a std::array, a std::wstring");
        static_assert(!kPointing,
                      "rove: a std::span shows the bytes that were sent, and elements of this type are not known to be "
                      "their bytes "
                      "(a std::string points to others, a std::pair has an assignment of its own): take a const "
                      "std::vector<T>&; or, where their bytes can be copied, say migratable<T>::safe = true");
        ROVE_EXPLAIN_FLAWS("an argument", "pass", ", or pass the view or the buffer as an argument of its own",
                           "into the function's parameter (or it is abstract); take a std::unique_ptr to it, or to one "
                           "of its derived classes");
    }
};
// The type of a result.
template <typename R>
struct ResultType {
    using Value = std::remove_cvref_t<R>;
    static constexpr bool kPoints = std::is_pointer_v<Value> || travel::Shows<Value>::value;
    using Flawed = Flaws<Value, kPoints || std::is_void_v<Value>>;
    static constexpr bool kKnown = kPoints || Flawed::kKnown;
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
        ROVE_EXPLAIN_FLAWS("a result", "return", "", "out of the call; return a std::unique_ptr to it");
    }
};
#undef ROVE_EXPLAIN_FLAWS

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
            "argument instead: rove::bind(lambda, values…), also where std::bind_front keeps it; in place of a "
            "rove::Peer take a rove::Here& and ask it: here.peer(id), here.caller()");
        static_assert(
            kFine || !kCopied,
            "rove: this lambda captures a pointer, a reference or `this`, which means nothing on another node; capture "
            "by value what it needs, or pass it: rove::bind(lambda, values…)");
    }
};

// A function that changes its object, or its captures: the change would be lost, because both are copies where it runs.
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

// Whether the size of a value on the wire is known without the value.
template <typename V>
constexpr bool is_fixed() {
    return !kIsView<V> && travel::Bitwise<V>;
}

// Whether an argument of type A can be passed to a parameter of type V.
template <typename V, typename A>
constexpr bool fits() {
    if constexpr (IsBuffer<A>::value && IsSpan<V>::value)
        return std::is_same_v<std::remove_const_t<typename IsSpan<V>::Value>, typename IsBuffer<A>::Value>;
    else if constexpr (IsBuffer<A>::value)
        return false;
    else if constexpr (IsSpan<V>::value)
        return !kIsWritableSpan<V> && std::is_convertible_v<const A&, V>;
    else
        return std::is_same_v<V, A> || std::is_convertible_v<const A&, V>;
}

// Whether a class has a class that derives from it as a template argument (CRTP): its functions cast `*this` to that class.
template <typename V, typename Told>
constexpr bool is_base_of_told() {
    if constexpr (requires { sizeof(Told); })
        return !std::is_same_v<V, Told> && std::is_base_of_v<V, Told>;
    else
        return false;
}
template <typename V>
struct IsToldOfDerived : std::false_type {};
template <template <typename...> typename B, typename... Ts>
struct IsToldOfDerived<B<Ts...>> : std::bool_constant<(is_base_of_told<B<Ts...>, Ts>() || ...)> {};
template <template <typename, auto...> typename B, typename T, auto kFirst, auto... kMore>
struct IsToldOfDerived<B<T, kFirst, kMore...>> : std::bool_constant<is_base_of_told<B<T, kFirst, kMore...>, T>()> {};

template <typename V, typename A>
struct Argument {
    static constexpr bool kNoBuffer = kIsWritableSpan<V> && !IsBuffer<A>::value;
    static constexpr bool kNoSpan = IsBuffer<A>::value && !IsSpan<V>::value;
    static constexpr bool kSliced = [] {
        if constexpr (std::is_same_v<V, A> || !std::is_base_of_v<V, A>)
            return false;
        else
            return std::is_polymorphic_v<V> || IsToldOfDerived<V>::value ||
                   (travel::Adds<A, V> && !travel::is_standard<V>());  // by a tag in the base, it may be cast to A
    }();
    static constexpr bool kFine = !kNoBuffer && !kNoSpan && !kSliced && fits<V, A>();
    static constexpr void explain() {
        static_assert(!kNoBuffer,
                      "rove: a std::span<T> that can be written to is memory on the node where the function runs: pass "
                      "a rove::Buffer<T>, or take a std::span<const T>");
        static_assert(!kNoSpan, "rove: a rove::Buffer<T> is passed to a function that takes a std::span<T>");
        static_assert(
            !kSliced,
            "rove: the other node gets a copy of the parameter's class, without what the argument's class adds, "
            "and its virtual functions are those of the parameter's class: take the derived class (a lambda can, "
            "[](const Derived& it) { return it.f(); }), or pass a std::variant; where the base is all that is needed, "
            "cast the argument to it");
        static_assert(kFine || kNoBuffer || kNoSpan || kSliced,
                      "rove: an argument of this type does not fit the function's parameter");
    }
};

}  // namespace rove::detail
