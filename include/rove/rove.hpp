// Rove for C++ programs: call a function there, get its value here.
//
//   rove::Node node;                                            // this process
//   rove::Peer peer = node.connect("127.0.0.1:7400");
//   int x = peer.sync(rove::fn<square>, 42);                    // waits
//   rove::Call<double> sum = peer.async(rove::fn<inner_product>, a, b);
//   double c = sum.get();                                       // or co_await sum, sum.wait_for(1ms), sum.cancel()
//
// The nouns:
//   Node      a process that takes part: its memory, its code cache, its mailboxes      rove/node.hpp
//   Peer      one other node, as this node is linked to it
//   Call      one invocation in flight                                                  rove/call.hpp, rove/task.hpp
//   Buffer    typed memory on some node                                                 rove/buffer.hpp
//   Here      what a running function can ask about where it runs                       rove/here.hpp
//   Package   an immutable, content-addressed unit of mobile code, made by `rove build`
//
// rove/function.hpp says what can be called, rove/travel.hpp what can be passed. The function need not exist on the other node: if
// that node's program was not built from the same source, the code is sent along (build your program with rove_add_executable,
// docs/cpp.md). Everything in rove::detail and in rove/detail/ is for the headers themselves and may change at any time.
//
// Threads: all of this may be used from any thread, but a single Call from one thread at a time.
// Errors: everything throws rove::Error, and std::bad_alloc if this process has no memory left; nothing else. Within a function, calls through
// Here throw an `overloaded` Error instead, because shipped code talks to its node in C.
#pragma once

#if __cplusplus < 202002L
#error \
    "rove: rove.hpp needs C++20: compile with -std=c++20, or say target_compile_features(NAME PUBLIC cxx_std_20) in CMake"
#elif !defined(__cpp_rtti)
#error \
    "rove: rove.hpp needs RTTI, because objects that are shared by name, and exceptions, are known by their types: compile without -fno-rtti"
#else
#include "rove/buffer.hpp"
#include "rove/call.hpp"
#include "rove/function.hpp"
#include "rove/here.hpp"
#include "rove/no_nesting.hpp"
#include "rove/node.hpp"
#include "rove/peer_group.hpp"
#include "rove/task.hpp"
#include "rove/travel.hpp"
#include "rove/within.hpp"
#endif
