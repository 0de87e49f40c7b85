// Here: what a running function can ask about where it runs. A function asks for it as its first parameter:
//
//   std::size_t count(rove::Here& here, int limit) { return here.object<Table>("t").below(limit); }
//
// Valid until the function returns, in its thread only. Functions that travel may use all of it except HerePeer::allocate, because the
// rest calls only rove/rove.h and rove/edge.h, which every node provides. Errors are thrown as rove::Error; where the node has no memory
// left the error is `overloaded`, not std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "rove/detail/shared_type.hpp"
#include "rove/detail/throw.hpp"
#include "rove/edge.h"
#include "rove/error.hpp"
#include "rove/within.hpp"

namespace rove {

class Here;
template <typename T>
class Buffer;
template <typename T>
class Call;

// Another node, as a function on this one sees it. Valid as long as its Here.
class HerePeer {
public:
    [[nodiscard]] std::uint32_t node() const noexcept { return node_; }

    // These work as rove::Peer's do. While a function waits for a call, its thread serves the node, and may run other functions on top of
    // it; see rove::no_nesting.
    template <typename F, typename... Args>
        requires(!std::is_same_v<F, Within>)
    auto async(const F& function, const Args&... args) const;
    template <typename F, typename... Args>
        requires(!std::is_same_v<F, Within>)
    auto sync(const F& function, const Args&... args) const;
    template <typename F, typename... Args>
        requires(!std::is_same_v<F, Within>)
    void post(const F& function, const Args&... args) const;
    // The same with a time limit for the whole call, including the sending.
    template <typename F, typename... Args>
    auto async(Within limit, const F& function, const Args&... args) const;
    template <typename F, typename... Args>
    auto sync(Within limit, const F& function, const Args&... args) const;
    template <typename F, typename... Args>
    void post(Within limit, const F& function, const Args&... args) const;

    // Works as rove::Peer's does, on a node to which this one has a link. The memory belongs to this node, and may outlive the function. It
    // calls librove's C++ functions, so it works in programs that are linked with librove.so, as resident functions are. On a plain `rove
    // node` the call of a function that uses it ends as `failed`, and the message names the missing symbols.
    template <typename T>
    [[nodiscard]] Call<Buffer<T>> allocate(std::size_t count) const;
    template <typename T>
    [[nodiscard]] Call<Buffer<T>> allocate(Within limit, std::size_t count) const;

private:
    friend class Here;
    HerePeer(rove_here* here, std::uint32_t node) : here_(here), node_(node) {}
    rove_here* here_;
    std::uint32_t node_;
};

class Here {
public:
    // Makes the Here of a ROVE_ENTRY function in C++, which is given a rove_here.
    explicit Here(rove_here* here) : here_(here) {}
    Here(const Here&) = delete;

    // The id of the node on which this runs, and how many nodes its cluster has.
    [[nodiscard]] std::uint32_t node() const { return rove_node(here_); }
    [[nodiscard]] std::uint32_t node_count() const { return rove_node_count(here_); }
    // A node by its id, this one included; and the node or client that made the call.
    [[nodiscard]] HerePeer peer(std::uint32_t node) const { return {here_, node}; }
    [[nodiscard]] HerePeer caller() const { return {here_, rove_origin(here_)}; }
    // The object that the node's program shares under this name (rove::Node::share); the program owns it, and other functions use it at
    // the same time. invalid: no such object, or of another type, size or alignment. Another order or meaning of its members is not
    // detected, so build both programs with one definition of T. `const T` is the same object, to be read.
    template <typename T>
    [[nodiscard]] T& object(std::string_view name) const {
        if (name.find('\0') != std::string_view::npos)
            detail::throw_error(ErrorCode::invalid, "the name of an object has no zero character");
        void* found = rove_object(here_, std::string(name).c_str(), detail::shared_type<std::remove_const_t<T>>());
        if (found == nullptr) {
            const rove_failure* why = rove_last_failure();
            detail::throw_error(static_cast<ErrorCode>(why->error), why->message);
        }
        return *static_cast<T*>(found);
    }
    // NodeOptions::host_object of this node.
    [[nodiscard]] void* host_object() const { return rove_host_object(here_); }
    // What the functions of rove/rove.h take.
    [[nodiscard]] rove_here* raw() const noexcept { return here_; }

private:
    rove_here* here_;
};

}  // namespace rove
