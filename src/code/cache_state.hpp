// The inside of a CodeCache; see cache.hpp for what it promises.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "code/package_code.hpp"

namespace rove::code {

// Functions known at once: an index fits 16 bits of a handle. Packages that are evicted are forgotten for new ones.
inline constexpr std::size_t kFunctionsMax = 65536;

struct CodeCache::State {
    State(CodeCache& owner, CodeOptions given)
        : cache(owner), options(std::move(given)), symbols(options.host_symbols), table(kFunctionsMax) {}

    using Lock = std::unique_lock<std::mutex>;

    // ---- known packages (cache.cpp)
    [[nodiscard]] Status number_functions(PackageCode& package);
    [[nodiscard]] Result<std::uint32_t> free_index();
    [[nodiscard]] bool forget_one();
    void forget(PackageCode& package);
    void free_numbers(PackageCode& package);

    // ---- loading (loading.cpp)
    enum class Ready : std::uint8_t { yes, code, compile };
    [[nodiscard]] Result<Ready> make_ready(PackageCode& package);
    [[nodiscard]] Status load_image(PackageCode& package, std::size_t slice);
    [[nodiscard]] Status open_libraries(PackageCode& package);
    void publish(PackageCode& package);
    void queue_compile(PackageCode& package);
    void compile_loop();
    void compile_one(PackageCode& package, Lock& lock);
    [[nodiscard]] Result<std::unique_ptr<jit::CompiledModule>> compile(PackageCode& package, Lock& lock);
    [[nodiscard]] bool stored(const PackageCode& package, wire::Form form) const;
    void try_again();
    [[nodiscard]] std::string why_no_symbol(const PackageCode& package, const std::string& names) const;

    // ---- eviction (loading.cpp)
    void count(PackageCode& package);  // after anything of it has come or gone
    void trim();
    [[nodiscard]] bool evict(PackageCode& package);
    [[nodiscard]] bool is_running(const PackageCode& package) const;
    static bool can_fence_all();
    static void fence_all();

    CodeCache& cache;
    CodeOptions options;
    Symbols symbols;
    CodePool pool;                            // outlives the packages below
    std::unique_ptr<LoadedImage> warm_image;  // of warm_up; kept, for its page would be cold again
    mutable std::mutex mutex;
    std::unordered_map<Digest, std::unique_ptr<PackageCode>> packages;
    std::unordered_map<FunctionId, Function*> functions;
    std::vector<std::unique_ptr<Function>> residents;      // of the process's own program
    std::unordered_map<std::string, PackageCode*> newest;  // by package name
    std::vector<PackageCode*> interfaces;                  // in the order in which they were loaded
    std::vector<std::atomic<Function*>> table;             // by a handle's index; read without the lock
    std::vector<std::uint16_t> generations = std::vector<std::uint16_t>(kFunctionsMax, 0);
    std::vector<std::uint32_t> free_indices;
    std::uint32_t indices_used = 0;

    std::size_t code_bytes = 0;
    std::size_t static_bytes = 0;
    std::atomic<bool> over_budget{false};  // ~Entered looks at this and nothing else
    std::atomic<std::uint64_t> epoch{1};   // advances with every load: coarse time for last_used
    std::size_t evictions = 0, loads = 0;
    // What the leader runs, if it has entered by enter_leading: that package is not evicted.
    alignas(64) std::atomic<PackageCode*> leader_runs{nullptr};
    const bool evictor_fences = can_fence_all();  // with a barrier for all threads, so that the leader needs none

    std::deque<PackageCode*> compile_queue;
    PackageCode* compiling = nullptr;
    std::condition_variable compile_changed;
    bool stopping = false;
    std::thread compile_thread;  // started with the first compile
};

}  // namespace rove::code
