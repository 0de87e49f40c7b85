/* server.c: a node of a program's own. Functions that are sent to it find what the program has. */
#include <rove/rove.h>
#include <stdio.h>

#include "stock.h"

int main(void) {
    struct stock stock = {.apples = 10};
    const rove_node_options options = {.listen = "127.0.0.1:0", .host_object = &stock, .own_thread = 1};
    rove_node_t* node = NULL;
    const int error = rove_node_create(&options, &node);
    if (error) return fprintf(stderr, "server: %s (%s)\n", rove_error_message(), rove_error_name(error)), 1;
    printf("listening %s\n", rove_node_address(node));
    fflush(stdout);
    (void)getchar(); /* the node's own threads serve until the input ends */
    rove_node_destroy(node);
    printf("%ld apples are left\n", (long)stock.apples);
    return 0;
}
