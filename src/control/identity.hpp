// Identifies the process that is a member: each makes a key pair when it starts, and proves that it has it whenever members meet.
//
// Threads: any. Invariant: a KeyPair never changes once it is made; its secret half is overwritten when it is destroyed.
#pragma once

#include "base/bytes.hpp"
#include "wire/control.hpp"

namespace rove::control {

class KeyPair {
public:
    KeyPair();  // random
    explicit KeyPair(const wire::control::KeySeed& seed);
    ~KeyPair();
    KeyPair(const KeyPair&) = delete;
    [[nodiscard]] const wire::control::PublicKey& key() const { return key_; }
    // The seed from which the same pair can be made again: a process that has it can sign.
    [[nodiscard]] wire::control::KeySeed seed() const;
    [[nodiscard]] wire::control::Signature sign(Bytes statement) const;

private:
    wire::control::PublicKey key_;
    std::array<unsigned char, 64> secret_;
};

[[nodiscard]] bool signed_by(const wire::control::PublicKey& key, Bytes statement,
                             const wire::control::Signature& signature);

template <typename Id>
[[nodiscard]] Id random_id();
extern template wire::control::Ticket random_id();
extern template wire::control::LaneSecret random_id();

}  // namespace rove::control
