// The functions that can be called on another node, and the ways to wrap one before it is sent.
//
//   rove::fn<f>               a free, static or member function; a member function's object is its first argument
//   a lambda or functor       with captures whose bytes can be copied
//   rove::bind(f, values…)    f with its first arguments, which may be of any type that travels
//   rove::named<"id">(f)      f under an id of your own, the same whatever it is called and wherever it is defined
//   rove::on_worker(f)        f as a function that runs long: another thread serves the node while f runs
//   rove::no_nesting(f)       f as a function that holds locks while it waits: nothing else runs in its thread in that time
//   rove::exactly(f)          f as it is in this program, even if the node's program has an f of its own
//   rove::run_by<Policy>(f)   f as Policy::run(rove::Work) runs it (rove/work.hpp)
//
// All of these are passed to async, sync and post (rove::Peer, rove::HerePeer) or to PeerGroup::broadcast and reduce, and may be combined:
// peer.sync(rove::on_worker(rove::exactly(rove::fn<f>)), 1).
//
// A function takes its parameters by value, by reference to const, or as a std::span or std::string_view (rove/travel.hpp says which types
// can be passed). With a first parameter rove::Here& it can ask where it runs (rove/here.hpp). If a function cannot be sent, the compiler
// prints one error that begins with "rove: " and says what to do.
//
// Which code runs there. If the node's program was compiled from the same source, it has the function already: the function is
// *resident*, and the node runs its own. Otherwise the code travels, if this program was built by rove_add_executable (docs/cpp.md).
// Nothing has to be registered: what a program calls is enrolled before main(). If two functions of a program have one id, the process
// ends there with a message.
//
// Cost: a wrapper is a value without any work of its own; it is copied into the call.
#pragma once

#include <type_traits>
#include <utility>

#include "rove/detail/send.hpp"
#include "rove/detail/wrappers.hpp"
#include "rove/no_nesting.hpp"
#include "rove/work.hpp"

namespace rove {

// A function of the program: rove::fn<square>, rove::fn<&Table::count>. Can be called here, too.
template <auto kFunction>
inline constexpr detail::Fn<kFunction> fn{};

// A function whose first arguments are `values`. They travel like any argument, so they may be of types that a lambda cannot capture.
template <typename F, typename... Values>
[[nodiscard]] auto bind(F function, Values&&... values) {
    return detail::Bound<F, std::decay_t<Values>...>{std::move(function), {std::forward<Values>(values)...}};
}

// A function with an id made of this name instead of its own name, file and build: two builds of a program, or two programs, that use
// one name mean the same function. Two functions with one name end the program at its start.
template <detail::FixedText kName, typename F>
[[nodiscard]] constexpr detail::Named<kName, F> named(F function) {
    return {std::move(function)};
}

// A function that runs long: the thread that finds its call runs it, and another thread serves the node from its beginning, without
// waiting until the node has noticed that the function is long.
template <typename F>
[[nodiscard]] constexpr detail::RunBy<detail::OnWorker, F> on_worker(F function) {
    return {std::move(function)};
}

// A function that holds a lock while it waits for calls: its thread runs no other function on top of it while it waits, because that
// function might want the same lock. The node needs a second thread for the calls that arrive in that time.
template <typename F>
[[nodiscard]] constexpr detail::RunBy<detail::Unnested, F> no_nesting(F function) {
    return {std::move(function)};
}

// A function as it is in the program that calls. Without this, a node whose program has a function of the same name and types runs its own,
// whatever its body. The code is sent if the node lacks it. Not for calls that a function makes through its Here, which send its own code
// anyway.
template <typename F>
[[nodiscard]] constexpr detail::Exactly<F> exactly(F function) {
    return {std::move(function)};
}

// A function that Policy::run(rove::Work) runs, where and when it likes: in a queue, in a pool, later (rove/work.hpp).
template <typename Policy, typename F>
[[nodiscard]] constexpr detail::RunBy<Policy, F> run_by(F function) {
    return {std::move(function)};
}

// Compiles functions into this program that only other programs call: rove::offer(rove::fn<f>, rove::fn<g>). Functions that this
// program calls itself need no offer. Not for functions with `auto` parameters, because each set of arguments makes another function.
template <typename... Fs>
void offer(const Fs&... /*functions*/) {
    (detail::enrol<detail::InPlace, "", Fs>(), ...);
}

}  // namespace rove
