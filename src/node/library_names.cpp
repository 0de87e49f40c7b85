#include "node/library_names.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace {

// Shipped code asks for every thread-local variable by a control object, as compilers with emulated thread-locals do. libstdc++ has two
// of its own that inline code stores to, for what is to run once and for futures: these are real ones, so their control objects are
// nothing but names.
struct Control {
    void* unused[4];
};
constinit Control once_callable{}, once_call{};

// libgcc's, in its shared library, which is there for as long as a thread that may have to free its copies.
using GetAddress = void* (*)(void*);
constinit std::atomic<GetAddress> get_address_of_libgcc{nullptr};

void* get_address(void* control) {
    if (control == &once_callable) return &std::__once_callable;
    if (control == &once_call) return &std::__once_call;
    return get_address_of_libgcc.load(std::memory_order_relaxed)(control);
}

}  // namespace

#if defined(__x86_64__)
// What __builtin_cpu_supports reads. libgcc has them in each program, and of its shared library they are no names to link with.
extern "C" {
extern std::uint32_t __cpu_model[4];      // NOLINT
extern std::uint32_t __cpu_features2[3];  // NOLINT
int __cpu_indicator_init();               // NOLINT
}
#endif

namespace rove {

std::vector<code::HostSymbol> library_symbols() {
    std::vector<code::HostSymbol> symbols{{"__emutls_v._ZSt15__once_callable", &once_callable},
                                          {"__emutls_v._ZSt11__once_call", &once_call}};
    if (void* found = dlsym(RTLD_DEFAULT, "__emutls_get_address"); found != nullptr) {
        get_address_of_libgcc.store(reinterpret_cast<GetAddress>(found), std::memory_order_relaxed);
        symbols.push_back({"__emutls_get_address", reinterpret_cast<void*>(&get_address)});
    }
#if defined(__x86_64__)
    symbols.push_back({"__cpu_model", &__cpu_model});
    symbols.push_back({"__cpu_features2", &__cpu_features2});
    symbols.push_back({"__cpu_indicator_init", reinterpret_cast<void*>(&__cpu_indicator_init)});
#endif
    return symbols;
}

}  // namespace rove
