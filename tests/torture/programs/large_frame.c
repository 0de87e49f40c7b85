/* A function with a large frame, called once, where a recursive one ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t report(int depth) {
    char text[100000];
    size_t size = (size_t)snprintf(text, sizeof text, "unbalanced at %d", depth);
    memset(text + size, 'x', sizeof text - size - 1);
    text[sizeof text - 1] = 0;
    return strlen(text);
}

static size_t parse(const char* text, int depth) {
    if (*text == '(') return parse(text + 1, depth + 1) + 1 + (text[1] == 0);
    return *text != 0 ? report(depth) : 0;
}

int main(void) {
    char text[302];
    memset(text, '(', 300);
    text[300] = 'x';
    text[301] = 0;
    if (parse(text, 0) != 99999 + 300) abort();
    return 0;
}
