// The beginning of a program's source, for tests that take functions out of its bitcode.
#pragma once

namespace rove::bitcode {

// As rove/detail/offload.hpp makes a program's functions, without all that it includes.
inline constexpr const char* kOffload = R"(
namespace rove::detail {
template <auto f>
struct Offload {
    static void run(rove_here*, const void* payload, size_t size) { *(int*)payload = f((int)size); }
};
}
)";

}  // namespace rove::bitcode
