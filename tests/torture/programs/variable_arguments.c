/* { dg-do run } */
/* Variable arguments of several kinds, more than registers hold, and a list that is copied and handed on. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Pair {
    long first, second, third;
};

static double sum(int count, ...) {
    va_list list, again;
    double total = 0;
    va_start(list, count);
    va_copy(again, list);
    for (int i = 0; i < count; ++i) {
        total += va_arg(list, int);
        total += va_arg(list, double);
        total += va_arg(list, struct Pair).third;
    }
    if (va_arg(again, int) != 1) abort();
    va_end(again);
    va_end(list);
    return total;
}

static void print(char* to, size_t size, const char* format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(to, size, format, list);
    va_end(list);
}

int main(void) {
    struct Pair pair = {0, 0, 100};
    char text[32];
    if (sum(4, 1, 0.5, pair, 2, 0.5, pair, 3, 0.5, pair, 4, 0.5, pair) != 412) abort();
    print(text, sizeof text, "%d %s %.1f", 3, "three", 3.0);
    if (strcmp(text, "3 three 3.0")) abort();
    return 0;
}
