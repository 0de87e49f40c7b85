// A file descriptor that is closed with its owner.
//
// Threads: a Descriptor is used by one at a time. Invariant: its number is negative, or is closed by this Descriptor alone.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace rove {

class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor() { close(); }

    void close() {
        if (number_ >= 0) ::close(std::exchange(number_, -1));
    }
    [[nodiscard]] int number() const { return number_; }
    [[nodiscard]] bool is_open() const { return number_ >= 0; }

private:
    int number_ = -1;
};

// Opens a file that can be neither read nor written in place of standard input, output or error, where that is closed. Otherwise the next
// file or socket would get its number, and everything that prints would write into that file. Programs that this one starts inherit it.
inline void fill_standard_descriptors() {
    for (int each = STDIN_FILENO; each <= STDERR_FILENO; ++each)
        if (fcntl(each, F_GETFD) < 0)
            (void)::open("/dev/null", each == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // NOLINT(*-cloexec)
}

}  // namespace rove
