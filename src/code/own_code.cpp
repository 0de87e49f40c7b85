#include "code/own_code.hpp"

#include <algorithm>
#include <mutex>
#include <thread>

#include "base/made_once.hpp"
#include "code/cache.hpp"
#include "package/bundle.hpp"
#include "package/pack.hpp"

namespace rove::code {
namespace {

const ByteBuffer& own_bitcode() {
    static constinit MadeOnce<const ByteBuffer> bitcode;
    return bitcode.get([] {
        Result<ByteBuffer> section = read_section("/proc/self/exe", ".llvmbc");
        return new ByteBuffer(section ? std::move(*section) : ByteBuffer{});
    });
}

}  // namespace

bool has_own_bitcode() {
    return !own_bitcode().empty();
}

void expect_to_send() {
    struct Reading {
        std::thread thread;
        ~Reading() {
            if (thread.joinable()) thread.join();
        }
    };
    static Reading reading;
    static std::once_flag once;
    std::call_once(once, [] {
        reading.thread = std::thread([] {
            if (!Bundle::of_program().empty() || !has_own_bitcode()) return;
            const Result<jit::Engine*> engine = jit::engine();
            if (!engine) return;
            (void)(*engine)->extract(
                {.program = "this program", .bitcode = own_bitcode(), .only = std::string(jit::kNothing)});
            (*engine)->warm_up();
        });
    });
}

wire::Manifest manifest_of(const jit::Extracted& extracted, const jit::Prepared& prepared) {
    wire::Manifest manifest;
    manifest.name = extracted.name;
    std::replace_if(manifest.name.begin(), manifest.name.end(), [](char c) { return c <= 0x20 || c >= 0x7F; }, '_');
    manifest.abi = ROVE_ABI_VERSION;
    manifest.pinned = prepared.pinned;
    manifest.entries = prepared.entries;
    manifest.imports = prepared.imports;
    return manifest;
}

Result<std::shared_ptr<PackageStore>> package_of_own(const std::string& key) {
    if (!has_own_bitcode()) return fail(ErrorCode::unsupported, "the program carries no bitcode of itself");
    ROVE_TRY(jit::Engine * engine, jit::engine());
    ROVE_TRY(const std::vector<jit::Extracted> all,
             engine->extract({.program = "this program", .bitcode = own_bitcode(), .only = key}));
    const jit::Extracted& extracted = all.front();
    if (!extracted.obstacle.empty()) return fail(ErrorCode::unsupported, "{}", extracted.obstacle);
    const PackageCache cache;
    const Digest made_of = PackageCache::key_of({"bitcode", ROVE_BUILD, as_text(extracted.bitcode)});
    if (const ByteBuffer kept = cache.find(made_of); !kept.empty()) return PackageStore::parse(kept);
    ROVE_TRY(const jit::Prepared prepared, engine->prepare({.triple = std::string(host_triple()),
                                                            .modules = {extracted.bitcode},
                                                            .interface = false,
                                                            .entries = extracted.entries,
                                                            .object = false}));
    wire::Manifest manifest = manifest_of(extracted, prepared);
    std::vector<ByteBuffer> stored(1);
    manifest.slices.push_back(
        make_slice(std::string(host_triple()), wire::Form::bitcode, prepared.bitcode, stored.front(), true));
    const ByteBuffer file = PackageStore::serialize(manifest, stored);
    cache.keep(made_of, file);
    return PackageStore::parse(file);
}

}  // namespace rove::code
