/* Rove's C ABI.
 *
 * The first half is for code that travels: a function that Rove ships is an ordinary C (or C++) function marked
 * ROVE_ENTRY that sees where it runs through `rove_here`. The second half is for programs: a C program, or any
 * language that can call C, is client and server with it.
 *
 * Words: a *node* is a process that takes part; a *peer* is one node's link to another; a *package* holds
 * *functions*, its entry points, in forms that can travel; a *call* is one invocation in flight.
 *
 * This header is C99, or C++11 or newer, and needs nothing else of Rove to compile.
 */
#ifndef ROVE_ROVE_H
#define ROVE_ROVE_H

#include <stddef.h>
#include <stdint.h>

/* None of these lets an exception out: code that calls them needs no unwind tables for it. */
#ifdef __cplusplus
#define ROVE_NOTHROW noexcept
#else
#define ROVE_NOTHROW __attribute__((nothrow))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The ABI between shipped code and the node. A package built for another one is refused. */
#define ROVE_ABI_VERSION 1

/* What every function returns: 0, or what the caller can do next. */
enum rove_error {
    ROVE_OK = 0,
    ROVE_INVALID = 1,      /* the call is wrong: fix it */
    ROVE_REFUSED = 2,      /* policy forbids it */
    ROVE_UNSUPPORTED = 3,  /* no form of the code fits that target */
    ROVE_OVERLOADED = 4,   /* a bound was reached, or this process has no memory left: back off and try again */
    ROVE_DISCONNECTED = 5, /* the node is not there; the function may have run */
    ROVE_TIMED_OUT = 6,    /* no answer in time; the function may have run */
    ROVE_CANCELLED = 7,    /* the caller gave up, or the node ended */
    ROVE_FAILED = 8,       /* the function said so, or could not be linked */
    ROVE_INTERNAL = 9      /* a defect in Rove */
};

/* The most bytes that a call's payload and its reply may have. */
#define ROVE_MESSAGE_BYTES_MAX (32UL * 1024 * 1024)

/* ---- For shipped code -------------------------------------------------------------------------------------- */

/* Where a running function is and for whom it runs. Valid until the function returns, on its thread only. */
typedef struct rove_here rove_here;

/* A dense id 0…n-1 for a node; ids with the top bit set are clients. rove_forward and rove_post do not go to clients: C++ functions
 * call them (rove::Here::caller()), and then functions of the client's own program only. */
typedef uint32_t rove_node_id;

/* A function that this node knows, found by rove_find; 0 is none. Valid on this node until it ends. */
typedef uint64_t rove_function;

/* Marks an entry point:
 *     ROVE_ENTRY void NAME(rove_here *here, const void *payload, size_t size) { … }
 * `payload` is 16-byte aligned, `size` bytes long, and valid until the function returns; it must not be written.
 * A call ends once, with the first of rove_reply, rove_fail and rove_forward. Returning without any of them is an
 * empty reply. A second one returns ROVE_INVALID and changes nothing. */
#ifdef __cplusplus
#define ROVE_ENTRY extern "C" __attribute__((annotate("rove.entry"), used, visibility("default")))
#else
#define ROVE_ENTRY __attribute__((annotate("rove.entry"), used, visibility("default")))
#endif

/* Answers the call with a copy of `size` bytes. ROVE_INVALID: a second ending, or size over ROVE_MESSAGE_BYTES_MAX.
 * May wait for room: with more than a frame carries (255 KiB), until the caller's node has taken the parts before, and with any size
 * while 32 MiB of replies wait for that node. It waits for as long as that node takes some; one that takes nothing for 20 s is cut
 * off. */
int rove_reply(rove_here* here, const void* data, size_t size) ROVE_NOTHROW;

/* Ends the call with an error (ROVE_FAILED) that carries a copy of `message`. ROVE_INVALID: a second ending. */
int rove_fail(rove_here* here, const char* message) ROVE_NOTHROW;

/* Sends *this* function on to `node` with a copy of the payload; what it replies there goes to the first caller.
 * After an error the call has not ended and may still be answered.
 * ROVE_INVALID: a second ending, no such node, a client, more than 255 hops, or size over what a frame carries (255 KiB).
 * ROVE_DISCONNECTED: that node is gone or cannot be reached. ROVE_UNSUPPORTED: the function has no form for that node's
 * target. ROVE_OVERLOADED: 64 MiB of calls wait for that node; or this is the node that the caller is linked to, and 4,096 of that
 * caller's calls, or 16,384 of all its callers', are on that node already. */
int rove_forward(rove_here* here, rove_node_id node, const void* payload, size_t size) ROVE_NOTHROW;

/* Finds another function that this node knows: "package:entry" (the newest of that name to have arrived) or the 32
 * hexadecimal digits of a FunctionId. Stores its handle and returns ROVE_OK, or ROVE_INVALID when there is none. */
int rove_find(rove_here* here, const char* name, rove_function* out) ROVE_NOTHROW;

/* Sends another function to `node`, one-way: nobody is told of its end. Errors as of rove_forward; ROVE_INVALID also for a
 * `function` that rove_find did not give. */
int rove_post(rove_here* here, rove_node_id node, rove_function function, const void* payload,
              size_t size) ROVE_NOTHROW;

/* The node this runs on, the node or client that made the call, and how many nodes there are. */
rove_node_id rove_node(rove_here* here) ROVE_NOTHROW;
rove_node_id rove_origin(rove_here* here) ROVE_NOTHROW;
uint32_t rove_node_count(rove_here* here) ROVE_NOTHROW;

/* The pointer that the host process registered (rove_node_create's options), or NULL. */
void* rove_host_object(rove_here* here) ROVE_NOTHROW;

/* ---- For programs ------------------------------------------------------------------------------------------ */

typedef struct rove_node_t rove_node_t; /* a node of this process; all functions on it may be called from any thread */
typedef struct rove_peer_t rove_peer_t; /* owned by its node; lives as long as the node */
typedef struct rove_package_t rove_package_t;
typedef struct rove_call_t rove_call_t;

typedef struct rove_node_options {
    const char* listen; /* "host:port", "[v6]:port" or "unix:PATH"; NULL: a client only */
    const char* join;   /* the address of a node to join; NULL: none */
    const char* fabric; /* "best" (as NULL is), "shm", "tcp" or "ucx" (trusted networks only) */
    void* host_object;  /* what rove_host_object gives to functions that run here */
    int own_thread;     /* non-zero: a thread of the node's own polls; zero: rove_node_poll and waits do */
} rove_node_options;

/* Makes a node; `options` may be NULL for a plain client. On success *out is owned by the caller. ROVE_INVALID: an option or
 * an address is wrong; ROVE_REFUSED: not a loopback address, or another user's node; ROVE_DISCONNECTED or ROVE_TIMED_OUT:
 * nobody answers at `join`; ROVE_OVERLOADED: that node has too many peers. */
int rove_node_create(const rove_node_options* options, rove_node_t** out) ROVE_NOTHROW;
/* The address the node listens on, with its real port; "" for a client. Valid as long as the node. */
const char* rove_node_address(const rove_node_t* node) ROVE_NOTHROW;
/* Does what there is to do and returns how many frames were handled, or a negative rove_error. Waits up to
 * timeout_ms for the first (0: not at all, negative: for ever). */
int rove_node_poll(rove_node_t* node, int timeout_ms) ROVE_NOTHROW;
/* Finishes what runs, fails the calls still in flight as cancelled, and frees the node and its peers. Calls and
 * packages are freed by their owner, before or after. */
void rove_node_destroy(rove_node_t* node) ROVE_NOTHROW;

/* Meets the node at an address, or gives the link there already is. Errors as of rove_node_create with `join`. */
int rove_connect(rove_node_t* node, const char* address, rove_peer_t** out) ROVE_NOTHROW;
/* From now on, what is begun through this handle ends within timeout_ms, the sending included; negative: no limit, as at first.
 * ROVE_TIMED_OUT when that time is up: from rove_load, rove_call_begin and rove_call_post where nothing could be sent, else from
 * rove_call_wait, whose own timeout_ms only says how long to wait. Another rove_connect to the same address gives another handle,
 * with a limit of its own. ROVE_INVALID: peer is NULL. */
int rove_peer_limit(rove_peer_t* peer, int timeout_ms) ROVE_NOTHROW;

/* Reads a package file and checks all of it. ROVE_INVALID: not there, truncated, altered, or of another ABI. */
int rove_package_open(const char* path, rove_package_t** out) ROVE_NOTHROW;
void rove_package_close(rove_package_t* package) ROVE_NOTHROW;

/* Loads a package on the peer ahead of its first call; an interface must be loaded before functions can link to its
 * names. Waits for the answer. ROVE_UNSUPPORTED: no form for its target; ROVE_FAILED: it cannot be linked there;
 * ROVE_OVERLOADED: no room for its code; ROVE_DISCONNECTED: the peer is gone; ROVE_CANCELLED: the node ended. */
int rove_load(rove_peer_t* peer, rove_package_t* package) ROVE_NOTHROW;

/* Begins a call of the package's entry with a copy of the payload. ROVE_INVALID: no such entry, or a payload over
 * ROVE_MESSAGE_BYTES_MAX; ROVE_UNSUPPORTED, ROVE_DISCONNECTED and ROVE_CANCELLED as of rove_load; ROVE_OVERLOADED: too many
 * calls in flight. */
int rove_call_begin(rove_peer_t* peer, rove_package_t* package, const char* entry, const void* payload, size_t size,
                    rove_call_t** out) ROVE_NOTHROW;
/* The same without a reply. */
int rove_call_post(rove_peer_t* peer, rove_package_t* package, const char* entry, const void* payload,
                   size_t size) ROVE_NOTHROW;
/* 1 when the call has ended, else 0; polls once. */
int rove_call_test(rove_call_t* call) ROVE_NOTHROW;
/* Waits until the call has ended and gives its result: 0 and the reply (valid until rove_call_free), or the error.
 * timeout_ms negative: for ever; ROVE_TIMED_OUT leaves the call in flight. `data` and `size` may be NULL. */
int rove_call_wait(rove_call_t* call, int timeout_ms, const void** data, size_t* size) ROVE_NOTHROW;
/* Frees the call; one that has not ended is forgotten, its late reply discarded. */
void rove_call_free(rove_call_t* call) ROVE_NOTHROW;

/* The message of the last error that a function of this half returned on this thread. Valid until the next one. */
const char* rove_error_message(void) ROVE_NOTHROW;
/* "invalid", "timed_out", … */
const char* rove_error_name(int error) ROVE_NOTHROW;

#ifdef __cplusplus
}
#endif

#endif /* ROVE_ROVE_H */
