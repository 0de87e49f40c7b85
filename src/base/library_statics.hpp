// Statics of libstdc++'s inline functions by which threads find one another. All code of a process must use the same ones: otherwise a
// thread that waits in one copy is never woken by a thread that notifies in another.
#pragma once

#include <array>
#include <string_view>

namespace rove {

// Macros, because the names of symbols must be literals.
#define ROVE_STATIC_OF_WAITING /* std::atomic::wait() and notify(), std::latch, std::barrier */ \
    "_ZZNSt8__detail18__waiter_pool_base6_S_forEPKvE3__w"
#define ROVE_STATIC_OF_STREAMS /* std::osyncstream */ \
    "_ZZNSt13basic_syncbufIcSt11char_traitsIcESaIcEE7__mutex12_S_get_mutexEPvE3__m"
#define ROVE_STATIC_OF_WIDE_STREAMS /* std::wosyncstream */ \
    "_ZZNSt13basic_syncbufIwSt11char_traitsIwESaIwEE7__mutex12_S_get_mutexEPvE3__m"

inline constexpr std::array<std::string_view, 3> kLibraryStatics{ROVE_STATIC_OF_WAITING, ROVE_STATIC_OF_STREAMS,
                                                                 ROVE_STATIC_OF_WIDE_STREAMS};

// Thread-local variables of libstdc++ that its inline functions write for futures and for what runs once. Nodes provide them to code that
// travels.
constexpr bool is_library_thread_local(std::string_view name) {
    return name == "_ZSt15__once_callable" || name == "_ZSt11__once_call";
}
// The end of messages about a thread-local variable of any other library.
inline constexpr std::string_view kThreadLocalOfALibrary =
    "of a library, which code that travels cannot reach; let a function of that library return its address";

}  // namespace rove
