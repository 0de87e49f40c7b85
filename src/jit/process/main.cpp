// rove-compiler LIBRARY: compiles the bitcode that a node's peers have sent, in a process of its own (serve.hpp). Begun by Rove.
#include <dlfcn.h>
#include <signal.h>
#include <sys/socket.h>

#include <cstdio>

#include "bitcode/compiler.hpp"

int main(int count, char** arguments) {
    constexpr int kSocket = 3;
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, nullptr);
    int type = 0;
    socklen_t bytes = sizeof type;
    if (count != 2 || getsockopt(kSocket, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0) {
        std::fputs("rove-compiler is begun by Rove, to compile bitcode in a process of its own\n", stderr);
        return 2;
    }
    void* const library = dlopen(arguments[1], RTLD_NOW);
    if (library == nullptr) return 1;
    auto* serve = reinterpret_cast<void (*)(int)>(dlsym(library, rove::bitcode::kServe));
    if (serve != nullptr) serve(kSocket);
    return 1;
}
