/* { dg-do run } */
/* Wrong answer where it is sent to. */
#include <stdlib.h>

#include "inside_node.h"

int main(void) {
    if (inside_node()) abort();
    return 0;
}
