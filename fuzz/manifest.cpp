#include "wire/manifest.hpp"

#include "round_trip.hpp"

namespace {

rove::ByteBuffer sample() {
    using namespace rove::wire;
    Manifest manifest;
    manifest.name = "count";
    manifest.abi = 1;
    manifest.entries = {"count", "reset"};
    manifest.imports = {"rove_reply"};
    manifest.dependencies = {"libz.so.1"};
    manifest.slices = {{"x86_64-linux-gnu", rove::Forms::image, Compression::none, 66, 66, {}},
                       {"x86_64-linux-gnu", rove::Forms::bitcode, Compression::zstd, 2400, 1700, {}}};
    return encode(manifest);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t size_max);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t size_max,
                                               unsigned seed) {
    return rove::fuzz::mutate(data, size, size_max, seed, sample(), LLVMFuzzerMutate);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    rove::fuzz::round_trip(data, size, [](rove::Bytes bytes) { return rove::wire::decode_manifest(bytes); });
    return 0;
}
