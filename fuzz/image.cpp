#include "wire/image.hpp"

#include "round_trip.hpp"

namespace {

constexpr std::size_t kImports = 4;

rove::ByteBuffer sample() {
    using namespace rove::wire;
    Image image;
    image.block.resize(64);
    image.data.resize(8, std::byte{1});
    image.data_bytes = 24;
    image.data_alignment = 8;
    image.eh_frame_offset = 48;
    image.eh_frame_bytes = 16;
    image.init_array_offset = 8;
    image.init_array_count = 1;
    image.relocations = {{Segment::block, Relocation::Kind::data, 0, 0, 8},
                         {Segment::block, Relocation::Kind::block, 8, 0, 16},
                         {Segment::data, Relocation::Kind::import, 0, 2, 16}};
    image.symbols = {{Symbol::Kind::entry, Segment::block, 0, 16},
                     {Symbol::Kind::static_, Segment::data, 0, 0},
                     {Symbol::Kind::anchor, Segment::block, 0, 24}};
    return encode(image);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t size_max);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t size_max,
                                               unsigned seed) {
    return rove::fuzz::mutate(data, size, size_max, seed, sample(), LLVMFuzzerMutate);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    rove::fuzz::round_trip(data, size, [](rove::Bytes bytes) { return rove::wire::decode_image(bytes, kImports); });
    return 0;
}
