#include "toolchain/kept_objects.hpp"

#include <span>

#include "package/pack.hpp"
#include "toolchain/sealed.hpp"

namespace rove::toolchain {
namespace {

// 1 GiB in all.
constexpr std::size_t kProgramsMax = 32;
constexpr std::size_t kBytesMax = 32UL << 20;

}  // namespace

KeptObjects::KeptObjects(const std::filesystem::path& program, std::string_view made_by)
    : files_(KeptFiles::default_folder(), ".objects", kProgramsMax, kBytesMax),
      key_(key_of_program(program, made_by)) {}

void KeptObjects::find(bitcode::SharedObjects& into) {
    const ByteBuffer file = files_.find(key_);
    for (Reader all(unseal(file)); all.ok() && !all.done();) {
        const auto made_of = all.id<Digest>();
        const Bytes object = all.take(all.number<std::uint32_t>());
        if (all.ok()) (void)into.keep({.made_of = made_of, .object = ByteBuffer(object.begin(), object.end())});
    }
    for (const auto& each : into.all()) found_.insert(each->made_of);
}

void KeptObjects::keep(const bitcode::SharedObjects& objects) const {
    if (objects.count() == found_.size()) return;
    const auto written = [&objects](const std::set<Digest>& without) {
        Writer all;
        for (const auto& each : objects.all()) {
            if (without.contains(each->made_of)) continue;
            all.bytes(std::as_bytes(std::span(each->made_of.bytes)));
            all.number(static_cast<std::uint32_t>(each->object.size()));
            all.bytes(each->object);
        }
        return all.take();
    };
    ByteBuffer content = written({});
    if (content.size() + sizeof(Digest) > kBytesMax) content = written(found_);
    (void)files_.keep(key_, seal(content));
}

}  // namespace rove::toolchain
