// { dg-do run }
// { dg-options "-O2 -fstrict-vtable-pointers -fno-assume-unique-vtables" }
// The compiler assumes which vtable an object has that has just been made. That compares nothing.
#include <cstdlib>
#include <stdexcept>
#include <string>

int main() {
    try {
        throw std::runtime_error("thrown");
    } catch (const std::exception& error) {
        if (std::string(error.what()) != "thrown") abort();
    }
}
