/* Reads what an optimiser may take for anything: the rest of a union. */
#include <stdlib.h>
#include <string.h>

union one_or_four {
    int one, four[4];
};

__attribute__((noinline, optnone)) static int rest_is_zero(void) {
    union one_or_four u = {0};
    for (int i = 0; i < 4; ++i)
        if (u.four[i] != 0) return 0;
    return 1;
}

__attribute__((noinline, optnone)) static void fill(char* to, int with) {
    char text[100];
    memset(text, with, sizeof text);
    memcpy(to, text, sizeof text);
}

int main(void) {
    char text[100];
    fill(text, 'x');
    if (text[99] != 'x' || !rest_is_zero()) abort();
    return 0;
}
