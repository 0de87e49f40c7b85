// For its first call this program's machine has no thread. Prints what became of each.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <iostream>

#include "rove/rove.hpp"

static std::atomic<bool> refuses{false};

// In place of the C library's.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                              void* argument) noexcept {
    if (refuses) return EAGAIN;
    static auto* const real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
    return real(thread, attributes, run, argument);
}

static int square(int x) {
    return x * x;
}

int main(int /*count*/, char** arguments) {
    rove::Node node(rove::NodeOptions{.log = "error"});
    const rove::Peer peer = node.connect(arguments[1]);
    for (const bool refused : {true, false}) {
        refuses = refused;
        try {
            std::cout << peer.sync(rove::fn<square>, 4) << "\n";
        } catch (const rove::Error& error) {
            std::cout << to_string(error.code()) << ": " << error.what() << "\n";
        }
    }
}
