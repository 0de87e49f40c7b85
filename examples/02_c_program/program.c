/* A C program that is client and server at once: register, create, send, poll.
 *
 *     c_program PACKAGE.rove ENTRY TEXT [ADDRESS]
 *
 * calls PACKAGE's ENTRY with TEXT, three times: on the node at ADDRESS, or, without one, on a node of its own that it
 * serves by polling. Prints each reply. */
#include <rove/rove.h>
#include <stdio.h>
#include <string.h>

static int failed(const char* what, int error) {
    fprintf(stderr, "%s: %s (%s)\n", what, rove_error_message(), rove_error_name(error));
    return 1;
}

static int call_three_times(rove_peer_t* peer, rove_package_t* package, const char* entry, const char* text,
                            rove_node_t* server) {
    for (int i = 0; i < 3; ++i) {
        rove_call_t* call;
        int error = rove_call_begin(peer, package, entry, text, strlen(text), &call);
        if (error) return failed("begin", error);
        while (!rove_call_test(call)) /* a server of one's own is to be polled; somebody else's serves itself */
            if (server && rove_node_poll(server, 0) < 0) break;
        const void* data;
        size_t size;
        error = rove_call_wait(call, 10000, &data, &size);
        if (!error) printf("%.*s\n", (int)size, (const char*)data);
        rove_call_free(call);
        if (error) return failed("call", error);
    }
    return 0;
}

int main(int argc, char** argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: %s PACKAGE.rove ENTRY TEXT [ADDRESS]\n", argv[0]);
        return 2;
    }
    rove_node_t *server = NULL, *client = NULL;
    rove_peer_t* peer = NULL;
    rove_package_t* package = NULL;
    const rove_node_options serving = {.listen = "127.0.0.1:0"};
    int error = argc > 4 ? ROVE_OK : rove_node_create(&serving, &server);
    if (!error) error = rove_node_create(NULL, &client);
    if (!error) error = rove_connect(client, server ? rove_node_address(server) : argv[4], &peer);
    if (!error) error = rove_package_open(argv[1], &package);
    int status = error ? failed("start", error) : call_three_times(peer, package, argv[2], argv[3], server);
    rove_package_close(package);
    if (client) rove_node_destroy(client);
    if (server) rove_node_destroy(server);
    return status;
}
