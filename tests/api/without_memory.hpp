// Refuses memory to some threads, and a node for tests of that.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <limits>
#include <new>
#include <thread>
#include <utility>

#include "rove/node.hpp"

namespace rove::test {

// Whether allocations of this thread are refused.
inline thread_local bool refused_here = false;
// Counts down with each of their allocations: the one that makes it 0 is refused. 0: none is.
inline std::atomic<int> refused_in{0};
// And all that follow.
inline std::atomic<bool> refused_from_there{false};
// They are refused this much and more.
inline std::atomic<std::size_t> too_much{std::numeric_limits<std::size_t>::max()};
// All threads but this one are refused everything.
inline thread_local bool is_spared = false;
inline std::atomic<bool> others_refused{false};
// Or as those with `refused_here` are.
inline std::atomic<bool> counts_others{false};

// A node whose only thread is the test's.
class Driven {
public:
    explicit Driven(NodeOptions options, bool spared = false)
        : node_([&options] {
              options.own_thread = false;
              return options;
          }()),
          thread_([this, spared] {
              is_spared = spared;
              drive();
          }) {}
    ~Driven() {
        stop_ = true;
        node_.wake();
        thread_.join();
    }
    [[nodiscard]] Node& node() { return node_; }
    // Its thread is refused what is refused.
    void refuse(bool refuse) { set(refuse_, refuse, refuses_); }
    // Nothing is served.
    void pause(bool pause) { set(pause_, pause, paused_); }

private:
    void drive() {
        while (!stop_) {
            refused_here = refuses_ = refuse_.load();
            paused_ = pause_.load();
            try {
                if (!paused_)
                    (void)node_.poll(std::chrono::milliseconds(1));
                else
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
            } catch (const std::bad_alloc&) {
            }
        }
    }
    void set(std::atomic<bool>& wanted, bool value, const std::atomic<bool>& is) {
        wanted = value;
        node_.wake();
        while (is != value) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    Node node_;
    std::atomic<bool> stop_{false}, refuse_{false}, refuses_{false}, pause_{false}, paused_{false};
    std::thread thread_;
};

}  // namespace rove::test
