// Here: what a running function knows of where it is. A function asks for it as its first parameter:
//
//   std::size_t count(rove::Here& here, int limit) { return here.object<Table>("t").below(limit); }
//
// Valid until the function returns, in its thread. Functions that travel may use all of it but HerePeer::allocate: all
// else calls rove/rove.h and rove/edge.h only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "rove/edge.h"
#include "rove/error.hpp"
#include "rove/shared_type.hpp"
#include "rove/within.hpp"

namespace rove {

class Here;
template <typename T>
class Buffer;
template <typename T>
class Call;

// Another node, as a function on this one sees it.
class HerePeer {
public:
    [[nodiscard]] std::uint32_t node() const noexcept { return node_; }
    // As of rove::Peer. A function that waits lets its thread run what comes meanwhile.
    template <typename F, typename... Args>
        requires(!std::is_same_v<F, Within>)
    auto async(const F& function, const Args&... args) const;
    template <typename F, typename... Args>
        requires(!std::is_same_v<F, Within>)
    auto sync(const F& function, const Args&... args) const;
    template <typename F, typename... Args>
        requires(!std::is_same_v<F, Within>)
    void post(const F& function, const Args&... args) const;
    // The same, given a time for all of it, the sending included.
    template <typename F, typename... Args>
    auto async(Within limit, const F& function, const Args&... args) const;
    template <typename F, typename... Args>
    auto sync(Within limit, const F& function, const Args&... args) const;
    template <typename F, typename... Args>
    void post(Within limit, const F& function, const Args&... args) const;
    // As of rove::Peer, for another node that this one has a link to: the memory belongs to this node, and may outlive the function.
    // It calls librove's C++ functions, so it is for functions that run in a program linked with librove.so, as resident functions do.
    // The call of one that travels to a plain `rove node` fails as `failed`, and names the symbols that are lacking there.
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
    explicit Here(rove_here* here) : here_(here) {}
    Here(const Here&) = delete;

    [[nodiscard]] std::uint32_t node() const { return rove_node(here_); }  // this one's id
    [[nodiscard]] std::uint32_t node_count() const { return rove_node_count(here_); }
    [[nodiscard]] HerePeer peer(std::uint32_t node) const { return {here_, node}; }  // any, this one included
    [[nodiscard]] HerePeer caller() const { return {here_, rove_origin(here_)}; }    // who made the call
    // What the node's program shared under this name (rove::Node::share). invalid: no such object, or of another type, size or alignment.
    // Members of another order or meaning are not found out: both programs are built with one definition of T.
    template <typename T>
    [[nodiscard]] T& object(std::string_view name) const {
        void* found = rove_object(here_, std::string(name).c_str(), detail::shared_type<T>());
        if (found == nullptr) {
            const rove_failure* why = rove_last_failure();
            throw_error(static_cast<ErrorCode>(why->error), why->message);
        }
        return *static_cast<T*>(found);
    }
    [[nodiscard]] void* host_object() const { return rove_host_object(here_); }
    [[nodiscard]] rove_here* raw() const noexcept { return here_; }

private:
    rove_here* here_;
};

}  // namespace rove
