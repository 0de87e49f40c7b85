// Fills the globals of lifetimes_test's program, which are in three translation units.
#pragma once

#include <optional>

#include "rove/rove.hpp"

namespace lifetimes {

// Some of everything that a program can hold of Rove's.
struct Objects {
    std::optional<rove::Peer> peer;
    std::optional<rove::Buffer<int>> small, large;
    std::optional<rove::Call<int>> call;
    std::optional<rove::Call<rove::Buffer<int>>> allocation;
    std::optional<rove::RawCall> raw;
    std::optional<rove::CallFrame> frame;
    std::optional<rove::Batch> batch;
    std::optional<rove::Task<int>> task;
    ~Objects();  // uses each once more
    void fill(const rove::Peer& to, const rove::Entry& entry);
};

extern Objects before_node, after_node;       // lifetimes_globals.cpp, on both sides of …
extern std::optional<rove::Node> node;        // … this, in that file
extern Objects in_another_file;               // lifetimes_more_globals.cpp
extern std::optional<rove::Node> other_node;  // there

}  // namespace lifetimes
