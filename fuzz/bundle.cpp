#include "package/bundle.hpp"

#include "round_trip.hpp"

namespace rove {
namespace {

struct Bundled {
    std::vector<Bundle::Entry> entries;
    friend bool operator==(const Bundled&, const Bundled&) = default;
};
ByteBuffer encode(const Bundled& bundled) {
    return value_or_throw(Bundle::encode(bundled.entries));
}
Result<Bundled> decode(Bytes bytes) {
    return Bundle::decode(bytes).map([](std::vector<Bundle::Entry> entries) { return Bundled{std::move(entries)}; });
}

}  // namespace
}  // namespace rove

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t size_max);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t size_max,
                                               unsigned seed) {
    const auto package = std::make_shared<const rove::ByteBuffer>(40, std::byte{1});
    const rove::Bundled sample{{{.key = "_Zone", .package = package, .why_not = ""},
                                {.key = "_Zwith", .package = package, .why_not = ""},
                                {.key = "_Ztwo@a/b.cpp", .package = {}, .why_not = "because"}}};
    return rove::fuzz::mutate(data, size, size_max, seed, rove::encode(sample), LLVMFuzzerMutate);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    rove::fuzz::round_trip(data, size, [](rove::Bytes bytes) { return rove::decode(bytes); });
    return 0;
}
