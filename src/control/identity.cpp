#include "control/identity.hpp"

#include <sodium.h>

namespace rove::control {
namespace {

const unsigned char* raw(Bytes bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

static_assert(crypto_sign_PUBLICKEYBYTES == sizeof(wire::control::PublicKey));
static_assert(crypto_sign_BYTES == sizeof(wire::control::Signature));
static_assert(crypto_sign_SECRETKEYBYTES == 64);
static_assert(crypto_sign_SEEDBYTES == sizeof(wire::control::KeySeed));

KeyPair::KeyPair() {
    crypto_sign_keypair(key_.bytes.data(), secret_.data());
}

KeyPair::KeyPair(const wire::control::KeySeed& seed) {
    crypto_sign_seed_keypair(key_.bytes.data(), secret_.data(), seed.bytes.data());
}

KeyPair::~KeyPair() {
    sodium_memzero(secret_.data(), secret_.size());
}

wire::control::KeySeed KeyPair::seed() const {
    wire::control::KeySeed seed;
    crypto_sign_ed25519_sk_to_seed(seed.bytes.data(), secret_.data());
    return seed;
}

wire::control::Signature KeyPair::sign(Bytes statement) const {
    wire::control::Signature signature;
    crypto_sign_detached(signature.bytes.data(), nullptr, raw(statement), statement.size(), secret_.data());
    return signature;
}

bool signed_by(const wire::control::PublicKey& key, Bytes statement, const wire::control::Signature& signature) {
    return crypto_sign_verify_detached(signature.bytes.data(), raw(statement), statement.size(), key.bytes.data()) == 0;
}

template <typename Id>
Id random_id() {
    Id id;
    randombytes_buf(id.bytes.data(), id.bytes.size());
    return id;
}
template wire::control::Ticket random_id();
template wire::control::LaneSecret random_id();

}  // namespace rove::control
