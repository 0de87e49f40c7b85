/* { dg-do run } */
/* Ends the process where it is sent to. */
#include <signal.h>

#include "inside_node.h"

int main(void) {
    if (inside_node()) raise(SIGKILL);
    return 0;
}
