// { dg-do run }
// An exception passes through a function of C, qsort, and through one of our own with C linkage; destructors run on the way.
#include <cstdlib>

static int destroyed;
struct Guard {
    ~Guard() { ++destroyed; }
};

extern "C" int compare(const void*, const void*) {
    Guard guard;
    throw 7;
}
extern "C" __attribute__((noinline)) void sorts(int* numbers) {
    Guard guard;
    compare(numbers, numbers + 1);
}

int main() {
    int numbers[] = {2, 1};
    destroyed = 0;
    try {
        sorts(numbers);
        abort();
    } catch (int thrown) {
        if (thrown != 7 || destroyed != 2) abort();
    }
    try {
        std::qsort(numbers, 2, sizeof *numbers, compare);
        abort();
    } catch (int thrown) {
        if (thrown != 7 || destroyed != 3) abort();
    }
}
