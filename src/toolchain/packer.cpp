#include "toolchain/packer.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <set>
#include <thread>

#include "code/cache.hpp"
#include "code/own_code.hpp"
#include "package/digest.hpp"
#include "toolchain/files.hpp"
#include "toolchain/image.hpp"
#include "toolchain/notes.hpp"
#include "toolchain/process.hpp"

namespace rove::toolchain {
namespace {

// Writes the files if that has not been done.
Result<std::vector<std::filesystem::path>> files_of(
    const std::vector<std::shared_ptr<const bitcode::SharedObject>>& objects, const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> files;
    for (const auto& each : objects) {
        files.push_back(folder / (each->made_of.hex() + ".o"));
        std::error_code unknown;
        if (!std::filesystem::exists(files.back(), unknown)) ROVE_CHECK(write_file(files.back(), each->object));
    }
    return files;
}

// Whether the error is caused by this code, and not by a machine that lacks something or was interrupted: then other code can still be
// compiled.
bool is_of_its_code(const Error& why) {
    return why.code() == ErrorCode::unsupported || why.code() == ErrorCode::invalid || why.code() == ErrorCode::failed;
}

}  // namespace

struct Packer::Work {
    std::size_t place;
    const bitcode::Extracted& from;
    Result<bitcode::Prepared> prepared = fail(ErrorCode::cancelled, "ended: a signal came");
};

Packer::Packer(bitcode::Compiler& compiler, const std::filesystem::path& program, const Libraries& libraries,
               const std::vector<std::string>& dependencies)
    : compiler_(compiler),
      libraries_(libraries),
      dependencies_(dependencies),
      linked_with_(libraries.lines() + '\n'),
      made_by_(code::made_by(compiler, reinterpret_cast<const void*>(&link_image))),
      kept_objects_(program, made_by_) {
    for (const std::string& soname : dependencies) linked_with_ += soname + '\n';
}

std::shared_ptr<const ByteBuffer> Packer::find(const Digest& bitcode) {
    std::shared_ptr<const ByteBuffer>& found = found_[bitcode];
    if (found == nullptr)
        if (ByteBuffer kept = cache_.find(key_of(bitcode)); is_linked_as_now(kept))
            found = std::make_shared<const ByteBuffer>(std::move(kept));
    return found;
}

Result<std::vector<Packed>> Packer::pack(const std::vector<bitcode::Extracted>& all) {
    std::vector<Packed> packed(all.size());
    std::vector<Work> work;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!all[i].facts.obstacle.empty()) {
            packed[i].why_not = all[i].facts.obstacle;
            continue;
        }
        if (auto kept = find(all[i].facts.digest))
            packed[i] = {.package = std::move(kept), .from_cache = true};
        else
            work.push_back({.place = i, .from = all[i]});
    }
    if (work.empty()) return packed;
    ROVE_TRY(const TemporaryFolder folder, TemporaryFolder::make());
    kept_objects_.find(shared_);
    for (std::size_t begin = 0; begin < work.size(); begin += kAtOnce) {
        const std::span<Work> some = std::span(work).subspan(begin, std::min(kAtOnce, work.size() - begin));
        prepare(some);
        ROVE_CHECK(link(some, folder.path(), packed));
    }
    kept_objects_.keep(shared_);
    return packed;
}

Digest Packer::key_of(const Digest& bitcode) const {
    return digest_of({"both", made_by_, linked_with_, bitcode.hex()});
}

// Another of the program's libraries may define a name by now, or a library that was not found may exist now.
bool Packer::is_linked_as_now(const ByteBuffer& package) const {
    if (package.empty()) return false;
    const Result<std::shared_ptr<PackageStore>> kept = PackageStore::parse(package);
    return kept && (*kept)->manifest().dependencies == dependencies_of((*kept)->manifest().imports);
}

Status Packer::link(std::span<Work> some, const std::filesystem::path& folder, std::vector<Packed>& packed) {
    for (Work& each : some) {
        ROVE_CHECK(not_interrupted());
        Packed& result = packed[each.place];
        if (!each.prepared && is_of_its_code(each.prepared.error())) {
            result.why_not = each.prepared.error().message();
            continue;
        }
        Result<ByteBuffer> made =
            each.prepared ? make(each, folder, result.notes) : tl::unexpected<Error>(each.prepared.error());
        if (!made && made.error().code() != ErrorCode::unsupported) return prefixed(made.error(), each.from.facts.name);
        if (!made) {
            result.why_not = made.error().message();
            continue;
        }
        if (result.notes.empty())
            if (Status kept = cache_.keep(key_of(each.from.facts.digest), *made); !kept)
                why_not_kept_ = kept.error().message();
        result.package = std::make_shared<const ByteBuffer>(std::move(*made));
    }
    return {};
}

// Each thread takes the next item that no other thread has taken.
void Packer::prepare(std::span<Work> work) const {
    std::atomic<std::size_t> next{0};
    const auto prepare_some = [&] {
        for (std::size_t i = next++; i < work.size() && not_interrupted(); i = next++)
            work[i].prepared = compiler_.prepare({.triple = std::string(code::host_triple()),
                                                  .modules = {work[i].from.bitcode},
                                                  .interface = false,
                                                  .entries = work[i].from.entries,
                                                  .shared = &shared_});
    };
    const std::size_t threads =
        std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, std::max(work.size(), std::size_t{1}));
    std::vector<std::future<void>> others;
    for (std::size_t i = 1; i < threads; ++i) try {
            others.push_back(std::async(std::launch::async, prepare_some));
        } catch (const std::system_error&) {  // no thread is available: the existing ones do the work
            break;
        }
    prepare_some();
    for (std::future<void>& each : others) each.get();
}

// Image and bitcode for this machine's kind.
Result<ByteBuffer> Packer::make(Work& work, const std::filesystem::path& folder,
                                std::vector<std::string>& notes) const {
    const std::string triple(code::host_triple());
    const bitcode::Prepared prepared = std::move(*work.prepared);  // freed at the end
    wire::Manifest manifest = code::manifest_of(work.from, prepared);
    if (!set_needs(manifest, prepared.needs)) notes.emplace_back(kNeedsOfAll);
    manifest.dependencies = dependencies_of(manifest.imports);
    std::vector<ByteBuffer> stored;
    std::string no_image = prepared.image_obstacle;
    if (no_image.empty()) {
        ROVE_TRY(std::vector<std::filesystem::path> others, files_of(prepared.shared, folder));
        Result<wire::Image> image = link_image(compiler_, {prepared.object, folder, manifest.entries, manifest.exports,
                                                           manifest.imports, std::move(others)});
        if (!image && image.error().code() != ErrorCode::unsupported) return tl::unexpected<Error>(image.error());
        ByteBuffer encoded = image ? wire::encode(*image) : ByteBuffer();
        if (!image)
            no_image = image.error().message();
        else if (encoded.size() > wire::kSliceBytesMax)
            no_image = fmt::format("it has {} bytes, and {} are the most", encoded.size(), wire::kSliceBytesMax);
        else
            manifest.slices.push_back(make_slice(triple, Forms::image, std::move(encoded), stored.emplace_back()));
    }
    if (!no_image.empty()) notes.push_back("no image: " + without_image(no_image));
    if (prepared.bitcode.size() > wire::kSliceBytesMax)
        return fail(ErrorCode::unsupported, "its bitcode has {} bytes, and {} are the most", prepared.bitcode.size(),
                    wire::kSliceBytesMax);
    manifest.slices.push_back(make_slice(triple, Forms::bitcode, prepared.bitcode, stored.emplace_back()));
    Result<ByteBuffer> file = rove::pack(manifest, stored);
    if (!file && work.from.keys.size() > 1)
        return fail(file.error().code(),
                    "{}; functions that reach a static in common travel in one package: have fewer of them reach "
                    "it, or pass what they need of it",
                    file.error().message());
    return file;
}

std::vector<std::string> Packer::dependencies_of(const std::vector<std::string>& imports) const {
    const std::vector<std::string> found = libraries_.with(imports);
    std::set<std::string> sonames(found.begin(), found.end());
    sonames.insert(dependencies_.begin(), dependencies_.end());
    return {sonames.begin(), sonames.end()};
}

}  // namespace rove::toolchain
