// The size of a thread's own stack, and how much of it is left.
#include "base/stack.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>

namespace rove::test {
namespace {

constexpr std::size_t kStackBytes = 1024UL * 1024;

// In a thread with a stack of that size.
void run_in_thread(const std::function<void()>& work) {
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
    pthread_t thread{};
    const auto body = [](void* of) -> void* {
        (*static_cast<const std::function<void()>*>(of))();
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, body, const_cast<std::function<void()>*>(&work)), 0);
    ASSERT_EQ(pthread_attr_destroy(&attributes), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
}

[[gnu::noinline]] std::size_t left_beneath(std::size_t bytes) {
    auto* volatile frame = static_cast<char*>(__builtin_alloca(bytes));
    frame[0] = 1;
    return stack_left();
}

TEST(Stack, IsTheThreadsOwn) {
    std::size_t left = 0;
    run_in_thread([&left] { left = stack_left(); });
    EXPECT_GT(left, kStackBytes / 2);
    EXPECT_LE(left, kStackBytes);
    EXPECT_GT(stack_left(), 0U) << "the main thread's";
}

TEST(Stack, IsLessWithinAFunction) {
    std::size_t before = 0, within = 0;
    run_in_thread([&] {
        before = stack_left();
        within = left_beneath(512UL * 1024);
    });
    EXPECT_LE(within + 512UL * 1024, before);
    EXPECT_GT(within, 0U);
}

}  // namespace
}  // namespace rove::test
