#include "node/library_names.hpp"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <mutex>

#include "arch/arch.hpp"
#include "base/library_statics.hpp"
#include "wire/image.hpp"

// By their names, because libstdc++ shows them to nobody. library_statics.cpp makes them.
namespace rove::library {
extern char waiters[] __asm__(ROVE_STATIC_OF_WAITING);
extern char locks[] __asm__(ROVE_STATIC_OF_STREAMS);
extern char wide_locks[] __asm__(ROVE_STATIC_OF_WIDE_STREAMS);
}  // namespace rove::library

namespace {

// Shipped code asks for every thread-local variable by a control object, as compilers with emulated thread-locals do. libstdc++ has two
// of its own that inline code stores to, for what is to run once and for futures: these are real ones, so their control objects are
// nothing but names.
struct Control {
    void* unused[4];
};
constinit Control once_callable{}, once_call{};

constexpr std::string_view kControlOfCallable = "__emutls_v._ZSt15__once_callable",
                           kControlOfCall = "__emutls_v._ZSt11__once_call";
static_assert(rove::is_library_thread_local(kControlOfCallable.substr(rove::wire::kThreadLocalPrefix.size())) &&
              rove::is_library_thread_local(kControlOfCall.substr(rove::wire::kThreadLocalPrefix.size())));

// libgcc's, in its shared library, which is there for as long as a thread that may have to free its copies.
using GetAddress = void* (*)(void*);
constinit std::atomic<GetAddress> get_address_of_libgcc{nullptr};

void* get_address(void* control) {
    if (control == &once_callable) return static_cast<void*>(&std::__once_callable);
    if (control == &once_call) return static_cast<void*>(&std::__once_call);
    return get_address_of_libgcc.load(std::memory_order_relaxed)(control);
}

// In the order of kLibraryStatics.
const std::array<void*, rove::kLibraryStatics.size()> own_library_statics{rove::library::waiters, rove::library::locks,
                                                                          rove::library::wide_locks};

}  // namespace

namespace rove {

std::vector<code::HostSymbol> library_symbols() {
    std::vector<code::HostSymbol> symbols{{kControlOfCallable, &once_callable}, {kControlOfCall, &once_call}};
    if (void* found = dlsym(RTLD_DEFAULT, wire::kGetThreadLocal); found != nullptr) {
        get_address_of_libgcc.store(reinterpret_cast<GetAddress>(found), std::memory_order_relaxed);
        symbols.push_back({wire::kGetThreadLocal, reinterpret_cast<void*>(&get_address)});
    }
    for (std::size_t i = 0; i < kLibraryStatics.size(); ++i)
        symbols.push_back({kLibraryStatics[i], own_library_statics[i]});
    for (const arch::Symbol& each : arch::compiler_symbols()) symbols.push_back({each.name, each.address});
    return symbols;
}

}  // namespace rove
