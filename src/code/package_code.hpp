// What a cache keeps of one package: its bytes, its functions, and, while it is loaded, its code.
//
// Threads: under the cache's lock, but for the atomics.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "code/cache.hpp"
#include "code/jit/jit.hpp"
#include "code/loader.hpp"
#include "code/symbols.hpp"

namespace rove::code {

class PackageCode {
public:
    enum class Compile : std::uint8_t { none, queued, done, failed };

    PackageCode(CodeCache& owner, std::shared_ptr<PackageStore> bytes) : cache(owner), store(std::move(bytes)) {}
    PackageCode(const PackageCode&) = delete;

    // Runs the destructors of its statics, while the code is still there. Once; nothing of it may run afterwards.
    void end();

    [[nodiscard]] bool loaded() const { return image || module; }
    // Loaded code; the package's own bytes are the store's to count.
    [[nodiscard]] std::size_t loaded_bytes() const {
        return (image ? image->code_bytes() : 0) + (module ? module->code_bytes() : 0);
    }
    // All of what it holds, and how much of that the cache has counted.
    [[nodiscard]] std::size_t bytes() const { return store->bytes_held() + loaded_bytes(); }
    std::size_t counted_bytes = 0;
    // Whether its code may be taken away and brought back later without anybody noticing.
    [[nodiscard]] bool evictable() const {
        return !resident && !interface && !pinned && compile != Compile::queued && !awaited;
    }

    CodeCache& cache;
    const std::shared_ptr<PackageStore> store;
    std::vector<std::unique_ptr<Function>> functions;
    bool resident = false;
    bool interface = false;  // loaded as one: others link to it
    bool pinned = false;
    std::atomic<bool> awaited{false};  // a call waits for it to become ready: not the time to evict it
    std::optional<Error> error;        // why it cannot run here

    // Eviction and entry meet on `running` and the functions' targets: who enters counts itself first and reads the target
    // then; who evicts clears the targets first and reads the count then; both in one total order (seq_cst), so one of them
    // sees the other.
    std::atomic<int> running{0};
    std::atomic<std::uint64_t> last_used{0};

    LinkScope scope;
    bool libraries_open = false;
    Destructors destructors;
    bool constructed = false;
    std::shared_ptr<DataSegment> data;                // kept over evictions
    std::vector<void*> statics;                       // address of rove.static.n, once an image told
    std::unordered_map<std::string, void*> exported;  // an interface's names, once an image told
    std::unique_ptr<LoadedImage> image;
    std::unique_ptr<jit::CompiledModule> module;
    Compile compile = Compile::none;
};

}  // namespace rove::code
