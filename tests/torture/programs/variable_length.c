/* { dg-do run } */
/* alloca and arrays whose length is known when they are made. */
#include <alloca.h>
#include <stdlib.h>
#include <string.h>

static int sum(int count) {
    int values[count];
    char* copy = alloca(sizeof values);
    int total = 0;
    for (int i = 0; i < count; ++i) values[i] = i;
    memcpy(copy, values, sizeof values);
    for (int i = 0; i < count; ++i) {
        int value;
        memcpy(&value, copy + i * sizeof value, sizeof value);
        total += value;
    }
    return total;
}

int main(void) {
    for (volatile int count = 1; count < 5000; count += 701)
        if (sum(count) != count * (count - 1) / 2) abort();
    return 0;
}
