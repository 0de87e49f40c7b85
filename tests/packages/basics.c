// Functions that the node's tests call: one for each thing that a function can do.
#include <rove/rove.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Atomic long counter;  // several threads of a node may run `count` at once

ROVE_ENTRY void count(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    const long now = ++counter;
    rove_reply(here, &now, sizeof now);
}

ROVE_ENTRY void echo(rove_here* here, const void* payload, size_t size) {
    rove_reply(here, payload, size);
}

ROVE_ENTRY void nothing(rove_here* here, const void* payload, size_t size) {
    (void)here, (void)payload, (void)size;
}

ROVE_ENTRY void complain(rove_here* here, const void* payload, size_t size) {
    char text[100];
    snprintf(text, sizeof text, "no luck with %.*s", (int)size, (const char*)payload);
    rove_fail(here, text);
}

// Replies twice, then fails: the first end counts, and the others say so.
ROVE_ENTRY void end_twice(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    rove_reply(here, "first", 5);
    if (rove_reply(here, "second", 6) != ROVE_INVALID || rove_fail(here, "third") != ROVE_INVALID ||
        rove_forward(here, 0, "", 0) != ROVE_INVALID)
        *(volatile char*)0 = 0;  // the test would see the node go
}

// Payload: the nodes still to visit, one byte each. Replies with the path that it took.
ROVE_ENTRY void visit(rove_here* here, const void* payload, size_t size) {
    unsigned char state[512];
    const unsigned char* in = payload;
    if (size < 2 || size + 1 > sizeof state) {
        rove_fail(here, "a payload of [left, stops..., path...]");
        return;
    }
    const unsigned left = in[0];
    memcpy(state, in, size);
    state[size] = (unsigned char)rove_node(here);
    if (left == 0) {
        rove_reply(here, state + 1, size);
        return;
    }
    // state: left, stops..., path...: the next stop leaves the front
    const unsigned next = in[1];
    state[1] = (unsigned char)(left - 1);
    const int error = rove_forward(here, next, state + 1, size);
    if (error) {
        char text[64];
        snprintf(text, sizeof text, "forward to %u: error %d", next, error);
        rove_fail(here, text);
    }
}

ROVE_ENTRY void where(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    const uint32_t facts[3] = {rove_node(here), rove_origin(here), rove_node_count(here)};
    rove_reply(here, facts, sizeof facts);
}

// Posts `count` of this package to the node in the payload's first byte.
ROVE_ENTRY void post_count(rove_here* here, const void* payload, size_t size) {
    rove_function function;
    if (size < 1 || rove_find(here, "basics:count", &function) != ROVE_OK) {
        rove_fail(here, "basics:count is not known here");
        return;
    }
    const int error = rove_post(here, *(const unsigned char*)payload, function, "", 0);
    rove_reply(here, &error, sizeof error);
}

ROVE_ENTRY void find(rove_here* here, const void* payload, size_t size) {
    char name[200] = {0};
    memcpy(name, payload, size < sizeof name ? size : sizeof name - 1);
    rove_function function = 0;
    const int error = rove_find(here, name, &function);
    rove_reply(here, &error, sizeof error);
}

ROVE_ENTRY void nap(rove_here* here, const void* payload, size_t size) {
    unsigned ms = 0;
    memcpy(&ms, payload, size < sizeof ms ? size : sizeof ms);
    usleep(ms * 1000);
    rove_reply(here, &ms, sizeof ms);
}

static _Atomic int met;

// Waits until two of it run at once, 20 s at most; replies whether they did.
ROVE_ENTRY void meet(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    const int round = met++ / 2;
    for (int i = 0; i < 20000 && met < 2 * (round + 1); ++i) usleep(1000);
    const unsigned char both = met >= 2 * (round + 1);
    rove_reply(here, &both, 1);
}

// Replies whether one of `meet` has begun and waits for another.
ROVE_ENTRY void meeting(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    const unsigned char waits = met % 2 != 0;
    rove_reply(here, &waits, 1);
}

// Replies whether no other of it ran in the milliseconds that it takes.
ROVE_ENTRY void run_alone(rove_here* here, const void* payload, size_t size) {
    static _Atomic int running, begun;
    unsigned ms = 0;
    memcpy(&ms, payload, size < sizeof ms ? size : sizeof ms);
    const int before = running++, mine = ++begun;
    usleep(ms * 1000);
    const unsigned char alone = before == 0 && begun == mine;
    --running;
    rove_reply(here, &alone, 1);
}

ROVE_ENTRY void aligned(rove_here* here, const void* payload, size_t size) {
    const unsigned char ok = (unsigned char)((size_t)payload % 16 == 0);
    (void)size;
    rove_reply(here, &ok, 1);
}

ROVE_ENTRY void host(rove_here* here, const void* payload, size_t size) {
    (void)payload, (void)size;
    const int* value = rove_host_object(here);
    if (value == NULL)
        rove_fail(here, "the host registered nothing");
    else
        rove_reply(here, value, sizeof *value);
}

ROVE_ENTRY void die(rove_here* here, const void* payload, size_t size) {
    (void)here, (void)payload, (void)size;
    kill(getpid(), 9);
}

// Payload: a node, and more. Sends sixteen bytes of it there, and replies there with how many came.
ROVE_ENTRY void shorten(rove_here* here, const void* payload, size_t size) {
    if (size > 16) {
        if (rove_forward(here, *(const unsigned char*)payload, payload, 16) != 0) rove_fail(here, "not forwarded");
        return;
    }
    const unsigned char came = (unsigned char)size;
    rove_reply(here, &came, 1);
}
