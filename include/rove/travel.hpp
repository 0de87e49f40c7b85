// What can be passed to a function and returned from it, and rove::migratable, by which a type says how it travels.
//
//   bitwise     trivially copyable types without pointers or references in them: their bytes are copied, and a `serialize` is not called
//   views       std::span<const T> and std::string_view as parameters: not copied on the receiving side, unless the function takes a
//               rove::Here. A std::span<T> that can be written to is memory on the node: pass a rove::Buffer<T>
//   cereal      std::string, vector, optional, variant, tuple, map, unique_ptr, … and types with a cereal `serialize`
//   migratable  types for which rove::migratable<T> is specialised; the specialisation overrides everything above:
//
//       template <> struct rove::migratable<Matrix> {          // travels as another type
//           using wire = std::vector<double>;
//           static wire pack(const Matrix&);
//           static Matrix unpack(wire&&);
//       };
//       template <> struct rove::migratable<Handle> { static constexpr bool safe = false; };  // never travels
//       template <> struct rove::migratable<Union> { static constexpr bool safe = true; };    // its bytes may be copied
//       template <> struct rove::migratable<Tree> { static constexpr std::uint32_t schema = 7; };  // a number of your own that both
//                                                     // programs compare, for a type whose members Rove cannot see
//
// Errors. What cannot travel is an error of the compiler, which says what to do. `invalid` at run time: bytes that announce more than they
// hold, values nested deeper than kValueDepthMax, a std::shared_ptr that leads back to its holder, and types of another size or alignment
// on the other side. Sizes are checked against the bytes that are left before memory is allocated.
//
// Both sides are little-endian. Threads: any; values that are being sent must not change until async, sync or post has returned.
#pragma once

#include <atomic>
#include <complex>
#include <functional>

namespace rove {

// Specialise this for your types, as shown above.
template <typename T>
struct migratable {};

// Compilers disagree on whether the bytes of a std::atomic may be copied.
template <typename T>
struct migratable<std::atomic<T>> {
    static constexpr bool safe = false;
};
// The target of a std::function exists in one process only, and cannot be read out of it.
template <typename R, typename... Ps>
struct migratable<std::function<R(Ps...)>> {
    static constexpr bool safe = false;
};
// A std::complex hides its members from the check for pointers.
template <typename T>
struct migratable<std::complex<T>> {
    static constexpr bool safe = true;
};

// These mean something in one process only.
class Peer;
template <typename T>
class Call;
template <typename T>
class Task;
template <>
struct migratable<Peer> {
    static constexpr bool safe = false;
};
template <typename T>
struct migratable<Call<T>> {
    static constexpr bool safe = false;
};
template <typename T>
struct migratable<Task<T>> {
    static constexpr bool safe = false;
};

// How deep values may hold values: objects, containers and pointers count, the numbers in them do not. A list of std::unique_ptrs uses two
// levels for each node. Reading and writing one level takes some 1 KiB of stack without optimisation, and 5 KiB with the address sanitizer:
// 512 levels are 2.5 MiB of a thread's 8 MiB.
inline constexpr unsigned kValueDepthMax = 512;

}  // namespace rove
