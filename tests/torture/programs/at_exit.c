/* { dg-do run } */
/* atexit can be called; what it registers does not run while the program does. */
#include <stdlib.h>

static int ran;

static void at_the_end(void) {
    ran = 1;
}

int main(void) {
    return atexit(at_the_end) != 0 || ran;
}
