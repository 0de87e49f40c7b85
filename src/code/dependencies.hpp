// Dependencies: opens the libraries on which packages depend, and knows whether any is being opened now.
//
// Threads: any, without the lock of the cache. open() is for the worker that has the package.
//
// Invariant: is_opening_any() is true from before the first library of a package is opened until after the last.
#pragma once

#include <atomic>

#include "code/package_code.hpp"

namespace rove::code {

class Dependencies {
public:
    // Opens a package's libraries, once for each package, and waits for the libraries' own constructors.
    void open(PackageCode& package) {
        if (package.libraries_open || package.store->manifest().dependencies.empty()) return;
        const Counted opening(opening_);
        package.scope.open(package.store->manifest().dependencies);
        package.libraries_open = true;
    }
    // While a library is being opened, a thread that asks libc for a name waits for that library's constructors.
    [[nodiscard]] bool is_opening_any() const { return opening_.load() > 0; }

private:
    // Adds itself to a count during its lifetime.
    class Counted {
    public:
        explicit Counted(std::atomic<unsigned>& count) : count_(count) { ++count_; }
        ~Counted() { --count_; }
        Counted(const Counted&) = delete;

    private:
        std::atomic<unsigned>& count_;
    };

    std::atomic<unsigned> opening_{0};
};

}  // namespace rove::code
