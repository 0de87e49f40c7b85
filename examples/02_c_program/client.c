/* client.c: calls a function of a package on a node that has never seen it. client ADDRESS words.rove TEXT */
#include <rove/rove.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
    if (argc != 4) return fprintf(stderr, "usage: client ADDRESS words.rove TEXT\n"), 2;
    rove_node_t* node = NULL;
    rove_peer_t* peer = NULL;
    rove_package_t* package = NULL;
    rove_call_t* call = NULL;
    const void* reply = NULL;
    size_t size = 0;
    long counts[2];

    int error = rove_node_create(NULL, &node); /* a plain client */
    if (!error) error = rove_connect(node, argv[1], &peer);
    if (!error) error = rove_package_open(argv[2], &package);
    if (!error) error = rove_call_begin(peer, package, "words", argv[3], strlen(argv[3]), &call);
    if (!error) error = rove_call_wait(call, 5000, &reply, &size);
    if (error) {
        fprintf(stderr, "client: %s (%s)\n", rove_error_message(), rove_error_name(error));
    } else if (size == sizeof counts) {
        memcpy(counts, reply, sizeof counts); /* `reply` is valid until rove_call_free */
        printf("%ld words, %ld in all\n", counts[0], counts[1]);
    }
    rove_call_free(call);
    rove_package_close(package);
    rove_node_destroy(node);
    return error ? 1 : 0;
}
