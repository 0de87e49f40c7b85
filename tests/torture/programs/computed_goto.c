/* { dg-do run } */
/* Addresses of labels, kept in a static table. */
#include <stdlib.h>

static int interpret(const unsigned char* code) {
    static const void* const steps[] = {&&add, &&twice, &&end};
    int sum = 0;
    goto* steps[*code++];
add:
    sum += 3;
    goto* steps[*code++];
twice:
    sum *= 2;
    goto* steps[*code++];
end:
    return sum;
}

int main(void) {
    static const unsigned char code[] = {0, 1, 0, 1, 2};
    if (interpret(code) != 18) abort();
    return 0;
}
