#include "wire/control.hpp"

#include "round_trip.hpp"

namespace {

using namespace rove::wire::control;

rove::ByteBuffer body(const rove::ByteBuffer& message) {
    return {message.begin() + kLengthBytes, message.end()};
}

// Which sample is chosen by the seed, so that a run sees the kinds with lists in them as well.
rove::ByteBuffer sample(unsigned seed) {
    const Member member{.id = 1, .generation = 1, .address = "127.0.0.1:7400", .key = {}};
    switch (seed / 16 % 5) {
        case 0: return body(encode(Hello{}));
        case 1: return body(encode(Request{.triple = "x86_64-linux-gnu", .address = "unix:/a", .offer = {}}));
        case 2: return body(encode(Welcome{.triple = "x86_64-linux-gnu", .resident = {{}, {}}, .offer = {}}));
        case 3: return body(encode(Settled{.members = {member, member}}));
        default: return body(encode(Goodbye{.text = "a payload part out of its order"}));
    }
}

template <typename ControlMessage>
void try_as(const std::uint8_t* data, std::size_t size) {
    const auto first = decode<ControlMessage>(std::as_bytes(std::span(data, size)));
    if (!first) return;
    const auto second = decode<ControlMessage>(body(encode(*first)));
    if (!second || *second != *first) std::abort();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t size_max);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t size_max,
                                               unsigned seed) {
    return rove::fuzz::mutate(data, size, size_max, seed, sample(seed), LLVMFuzzerMutate);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try_as<Hello>(data, size);
    try_as<LaneHello>(data, size);
    try_as<Challenge>(data, size);
    try_as<ProofGiven>(data, size);
    try_as<Request>(data, size);
    try_as<Welcome>(data, size);
    try_as<Redirect>(data, size);
    try_as<Connected>(data, size);
    try_as<Settled>(data, size);
    try_as<Members>(data, size);
    try_as<Goodbye>(data, size);
    return 0;
}
