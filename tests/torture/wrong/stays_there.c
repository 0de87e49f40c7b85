/* { dg-do run } */
/* Never returns where it is sent to. */
#include <unistd.h>

#include "inside_node.h"

int main(void) {
    while (inside_node()) sleep(1);
    return 0;
}
