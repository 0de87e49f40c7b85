#include "code/own_code.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>

#include "base/clock.hpp"
#include "base/elf.hpp"
#include "base/float_environment.hpp"
#include "base/fork.hpp"
#include "base/made_once.hpp"
#include "base/own_library.hpp"
#include "code/cache.hpp"
#include "package/bundle.hpp"
#include "package/digest.hpp"
#include "package/libraries.hpp"
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
bitcode::ProgramBitcode own_program() {
    return {.program = "this program", .section = own_bitcode()};
}

}  // namespace

bool has_own_bitcode() {
    return !own_bitcode().empty();
}

namespace {

// Reads the program's bitcode in advance, so that the first function to be sent need not wait for that. exit() waits until this has ended,
// because the objects that it uses are destroyed afterwards.
class Reading {
public:
    static Reading& begin() {
        static constinit MadeOnce<Reading> reading;
        return reading.get([] {
            wait_at_exit();
            return new Reading;
        });
    }

    // If the reading has begun, waits until exit() would wait for it.
    static void wait_until_open() {
        const Reading* const made = awaited_;
        if (made == nullptr || made->made_by_ != process_generation()) return;
        for (const TimePoint limit = Clock::now() + kOpenMax; !made->is_open_ && Clock::now() < limit;)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }

private:
    Reading() {
        awaited_ = this;
        try {
            thread_ = start_thread([this] { read(); });
        } catch (const std::exception&) {  // no thread is available: the first function that is sent waits
            is_open_ = true;
        }
    }
    // Far longer than opening LLVM takes. A node that ends within dlclose() holds the dynamic loader's lock, which the opening needs.
    static constexpr auto kOpenMax = std::chrono::seconds(5);
    static void wait_at_exit() {
        (void)std::atexit([] {
            if (Reading* made = awaited_) made->wait();
        });
    }
    // In the child of a fork this thread does not exist, and its id may be another thread's, for which the child would wait.
    void wait() {
        if (made_by_ == process_generation() && thread_.joinable()) thread_.join();
    }

    void read() {
        bitcode::Compiler* const compiler = opened();
        if (compiler == nullptr) return;
        (void)compiler->read_own(own_program());
        try {
            compiler->warm_up();
        } catch (const std::exception&) {  // the error occurs again when the compiler is needed
        }
    }
    // Null: it is not needed, or not installed.
    bitcode::Compiler* opened() {
        const struct Opens {
            Reading& reading;
            ~Opens() { reading.is_open_ = true; }
        } whatever_comes{*this};
        if (!Bundle::of_program().empty() || !has_own_bitcode()) return nullptr;
        const Result<bitcode::Compiler*> compiler = bitcode::compiler();
        if (!compiler) return nullptr;
        // Once more: handlers that LLVM's libraries have registered by now run before those registered earlier.
        wait_at_exit();
        return *compiler;
    }
    static constinit std::atomic<Reading*> awaited_;
    const std::uint32_t made_by_ = process_generation();
    std::atomic<bool> is_open_{false};
    std::thread thread_;
};
constinit std::atomic<Reading*> Reading::awaited_{nullptr};

}  // namespace

void expect_to_send() {
    (void)Reading::begin();
}

void wait_until_open() {
    Reading::wait_until_open();
}

wire::Manifest manifest_of(const bitcode::Extracted& extracted, const bitcode::Prepared& prepared) {
    wire::Manifest manifest;
    manifest.name = extracted.facts.name;
    std::replace_if(manifest.name.begin(), manifest.name.end(), [](char c) { return c <= 0x20 || c >= 0x7F; }, '_');
    manifest.abi = ROVE_ABI_VERSION;
    manifest.pinned = prepared.pinned;
    manifest.entries = prepared.entries;
    manifest.imports = prepared.imports;
    return manifest;
}

std::string made_by(const bitcode::Compiler& compiler, const void* packer) {
    const auto [of_compiler, of_llvm] = compiler.code();
    return fmt::format("{} {} {} {}", ROVE_BUILD, build_of(of_compiler), build_of(of_llvm), build_of(packer));
}

Result<std::shared_ptr<PackageStore>> package_of_own(const std::string& key) {
    if (!has_own_bitcode()) return fail(ErrorCode::unsupported, "the program carries no bitcode of itself");
    ROVE_TRY(bitcode::Compiler * compiler, bitcode::compiler());
    ROVE_TRY(const bitcode::Extracted extracted, compiler->extract_own(own_program(), key));
    if (!extracted.facts.obstacle.empty()) return fail(ErrorCode::unsupported, "{}", extracted.facts.obstacle);
    const PackageCache cache;
    const Libraries libraries = Libraries::of_this_program();
    const Digest made_of = digest_of({"bitcode", made_by(*compiler, reinterpret_cast<const void*>(&package_of_own)),
                                      libraries.lines(), as_text(extracted.bitcode)});
    if (const ByteBuffer kept = cache.find(made_of); !kept.empty()) {
        Result<std::shared_ptr<PackageStore>> package = PackageStore::parse(kept);
        // Another of the program's libraries may define a name by now.
        if (package && (*package)->manifest().dependencies == libraries.with((*package)->manifest().imports))
            return package;
    }
    ROVE_TRY(const bitcode::Prepared prepared, compiler->prepare({.triple = std::string(host_triple()),
                                                                  .modules = {extracted.bitcode},
                                                                  .interface = false,
                                                                  .entries = extracted.entries,
                                                                  .object = false}));
    wire::Manifest manifest = manifest_of(extracted, prepared);
    (void)set_needs(manifest, prepared.needs);  // the build has ended, so there is no place for a warning
    manifest.dependencies = libraries.with(manifest.imports);
    std::vector<ByteBuffer> stored(1);
    manifest.slices.push_back(
        make_slice(std::string(host_triple()), Forms::bitcode, prepared.bitcode, stored.front(), true));
    ROVE_TRY(const ByteBuffer file, pack(manifest, stored));
    (void)cache.keep(made_of, file);  // if it cannot be kept, it is made again at the next start
    return PackageStore::parse(file);
}

}  // namespace rove::code
