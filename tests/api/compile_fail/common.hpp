// For programs that must not compile: each says what its message has to say.
#pragma once

#include "rove/rove.hpp"

const rove::Peer& some_peer();

// It travels, but cannot be made without parameters.
class Unmade {
public:
    explicit Unmade(std::string name) : name_(std::move(name)) {}
    template <typename Archive>
    void serialize(Archive& archive) {
        archive(name_);
    }

private:
    std::string name_;
};
