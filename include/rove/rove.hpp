// Rove for C++ programs: call a function there, get its value here.
//
//   rove::Node node;                                            // this process
//   rove::Peer peer = node.connect("127.0.0.1:7400");
//   int x = peer.sync(rove::fn<square>, 42);                    // waits
//   rove::Call<double> sum = peer.async(rove::fn<inner_product>, a, b);
//   double c = sum.get();                                       // or co_await sum, sum.wait_for(1ms), sum.cancel()
//
// The words:
//   Node      a process that takes part: its memory, its code cache, its mailboxes      rove/node.hpp
//   Peer      this node's link to one other node
//   Call      one invocation in flight                                                  rove/call.hpp, rove/task.hpp
//   Buffer    typed memory on some node                                                 rove/buffer.hpp
//   Here      what a running function knows of where it is                              rove/here.hpp
//   Package   an immutable, content-addressed unit of mobile code, made by `rove build`
//
// rove/function.hpp tells what can be called, rove/travel.hpp what can be passed. The function need not be on the other node: where
// its program was not built from the same source, its code goes along (build yours with rove_add_executable, docs/cpp.md).
//
// All of this may be used from any thread; a single Call, from one at a time. Everything throws rove::Error, and std::bad_alloc where this
// process itself has no memory left; nothing else. Through Here it is an `overloaded` Error, because shipped code asks its node in C.
#pragma once

#include "rove/buffer.hpp"
#include "rove/call.hpp"
#include "rove/function.hpp"
#include "rove/here.hpp"
#include "rove/node.hpp"
#include "rove/offload.hpp"
#include "rove/peer_group.hpp"
#include "rove/task.hpp"
#include "rove/travel.hpp"
