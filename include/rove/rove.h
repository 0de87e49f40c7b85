/* Rove's C ABI.
 *
 * The first half is for code that travels: a function that Rove ships is an ordinary C (or C++) function marked
 * ROVE_ENTRY; through `rove_here` it asks where it runs and replies. The second half is for programs: with it a C program, or a program
 * in any language that can call C, is a client or a server.
 *
 * Nouns: a *node* is a process that takes part; a *peer* is one node's link to another; a *package* holds
 * *functions*, its entry points, in forms that can travel; a *call* is one invocation in flight.
 *
 * This header is C99, or C++11 or newer, and needs nothing else of Rove to compile.
 */
#ifndef ROVE_ROVE_H
#define ROVE_ROVE_H

#include <stddef.h>
#include <stdint.h>

/* No exception leaves any of these functions, so code that calls them needs no unwind tables for them. */
#ifdef __cplusplus
#define ROVE_NOTHROW noexcept
#else
#define ROVE_NOTHROW __attribute__((nothrow))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the ABI between shipped code and the node. A package built for another version is refused. */
#define ROVE_ABI_VERSION 1

/* The result of every function: 0, or an error whose number says what the caller can do next. */
enum rove_error {
    ROVE_OK = 0,
    ROVE_INVALID = 1,      /* the call is wrong: fix it */
    ROVE_REFUSED = 2,      /* policy forbids it */
    ROVE_UNSUPPORTED = 3,  /* no form of the code fits that target */
    ROVE_OVERLOADED = 4,   /* a bound was reached, or this process has no memory left: back off and try again */
    ROVE_DISCONNECTED = 5, /* the node cannot be reached or has ended; the function may have run */
    ROVE_TIMED_OUT = 6,    /* no answer in time; the function may have run */
    ROVE_CANCELLED = 7,    /* the caller gave up, or the node ended */
    ROVE_FAILED = 8,       /* the function reported an error, or could not be linked */
    ROVE_INTERNAL = 9      /* a defect in Rove */
};

/* The largest payload of a call, and the largest reply. */
#define ROVE_MESSAGE_BYTES_MAX (32UL * 1024 * 1024)

/* ---- For shipped code -------------------------------------------------------------------------------------- */

/* The node on which a function runs, and the call for which it runs. Valid until the function returns, on its thread only. */
typedef struct rove_here rove_here;

/* The id of a node, dense from 0; ids with the top bit set are clients'. rove_forward and rove_post cannot address clients; C++ functions
 * can call them (rove::Here::caller()), but only functions of the client's own program. */
typedef uint32_t rove_node_id;

/* A function that this node knows, found by rove_find; 0: none. Valid on this node until it ends. */
typedef uint64_t rove_function;

/* Marks an entry point:
 *     ROVE_ENTRY void NAME(rove_here *here, const void *payload, size_t size) { … }
 * `payload` is 16-byte aligned, `size` bytes long, and valid until the function returns; it must not be written.
 * A call ends once, by the first of rove_reply, rove_fail and rove_forward. Returning without any of them sends an
 * empty reply. A second one returns ROVE_INVALID and changes nothing. */
#ifdef __cplusplus
#define ROVE_ENTRY extern "C" __attribute__((annotate("rove.entry"), used, visibility("default")))
#else
#define ROVE_ENTRY __attribute__((annotate("rove.entry"), used, visibility("default")))
#endif

/* Answers the call with a copy of `size` bytes. ROVE_INVALID: a second ending, or size over ROVE_MESSAGE_BYTES_MAX.
 * May wait for room: a reply of more than a frame carries (255 KiB) waits until the caller's node has taken its earlier parts, and a reply
 * of any size waits while 32 MiB of replies are queued for that node. It waits as long as that node keeps taking replies; a node that takes
 * nothing for 20 s is cut off. */
int rove_reply(rove_here* here, const void* data, size_t size) ROVE_NOTHROW;

/* Ends the call with an error (ROVE_FAILED) that carries a copy of `message`. ROVE_INVALID: a second ending. */
int rove_fail(rove_here* here, const char* message) ROVE_NOTHROW;

/* Forwards the call: *this* function runs on `node` with a copy of the payload, and its reply there is sent to the first caller.
 * After an error the call has not ended and may still be answered.
 * ROVE_INVALID: a second ending, no such node, a client, more than 255 hops, or size over what a frame carries (255 KiB).
 * ROVE_DISCONNECTED: that node has ended or cannot be reached. ROVE_UNSUPPORTED: the function has no form for that node's
 * target. ROVE_OVERLOADED: 64 MiB of calls wait for that node; or this is the node to which the caller is linked, and 4,096 calls of that
 * caller, or 16,384 of all its callers, have been forwarded to that node and not answered yet. */
int rove_forward(rove_here* here, rove_node_id node, const void* payload, size_t size) ROVE_NOTHROW;

/* Finds another function that this node knows: by "package:entry" (of several with that name the one that arrived last) or by the 32
 * hexadecimal digits of a FunctionId. Stores it in *out and returns ROVE_OK; ROVE_INVALID: there is none. */
int rove_find(rove_here* here, const char* name, rove_function* out) ROVE_NOTHROW;

/* Calls another function on `node` without a reply: its end is not reported. Errors as rove_forward's; ROVE_INVALID also for a
 * `function` that rove_find did not return. */
int rove_post(rove_here* here, rove_node_id node, rove_function function, const void* payload,
              size_t size) ROVE_NOTHROW;

/* The node on which this runs, the node or client that made the call, and the number of nodes. */
rove_node_id rove_node(rove_here* here) ROVE_NOTHROW;
rove_node_id rove_origin(rove_here* here) ROVE_NOTHROW;
uint32_t rove_node_count(rove_here* here) ROVE_NOTHROW;

/* The pointer that the node's program registered (rove_node_options::host_object), or NULL. */
void* rove_host_object(rove_here* here) ROVE_NOTHROW;

/* ---- For programs ------------------------------------------------------------------------------------------ */

typedef struct rove_node_t rove_node_t; /* a node of this process; all functions on it may be called from any thread */
typedef struct rove_peer_t rove_peer_t; /* owned by its node; valid as long as the node */
typedef struct rove_package_t rove_package_t;
typedef struct rove_call_t rove_call_t;

/* rove_node_options::engines: one for each core that the process may use, and no more than 16. */
#define ROVE_ENGINES_AUTO (~0U)

typedef struct rove_node_options {
    const char* listen; /* "host:port", "[v6]:port" or "unix:PATH"; NULL: a client */
    const char* join;   /* the address of a node to join; NULL: none */
    const char* fabric; /* "best" (as NULL is), "shm", "tcp" or "ucx" (trusted networks only) */
    void* host_object;  /* what rove_host_object returns to functions that run here; not owned */
    int own_thread;     /* non-zero: threads of the node's own serve it; zero: rove_node_poll and waits do */
    unsigned engines;   /* threads that poll, each for its own peers: 1 to 64, ROVE_ENGINES_AUTO; 0: one. More need own_thread */
} rove_node_options;

/* Makes a node; `options` may be NULL for a plain client. On success *out is owned by the caller. ROVE_INVALID: an option or
 * an address is wrong; ROVE_REFUSED: not a loopback address, or another user's node; ROVE_DISCONNECTED or ROVE_TIMED_OUT:
 * no node answers at `join`; ROVE_OVERLOADED: that node has too many peers. */
int rove_node_create(const rove_node_options* options, rove_node_t** out) ROVE_NOTHROW;
/* The address on which the node listens, with the actual port; "" for a client. Valid as long as the node. */
const char* rove_node_address(const rove_node_t* node) ROVE_NOTHROW;
/* Serves the node: handles the frames that have arrived and returns how many, or a negative rove_error. Waits up to
 * timeout_ms for the first (0: not at all, negative: for ever). */
int rove_node_poll(rove_node_t* node, int timeout_ms) ROVE_NOTHROW;
/* Waits until peers have begun what was posted to them, for a second at most; finishes the functions that run, ends the calls
 * in flight as cancelled, and frees the node and its peers. Calls and packages are freed by their owner, before or after. */
void rove_node_destroy(rove_node_t* node) ROVE_NOTHROW;

/* Connects to the node at an address, or returns the existing link. Errors as rove_node_create's with `join`. */
int rove_connect(rove_node_t* node, const char* address, rove_peer_t** out) ROVE_NOTHROW;
/* Everything that is begun through this handle from now on ends within timeout_ms, including the sending; negative: no limit, the default.
 * When the time is over, rove_load, rove_call_begin and rove_call_post return ROVE_TIMED_OUT if nothing could be sent, otherwise
 * rove_call_wait does, whose own timeout_ms only says how long to wait. Another rove_connect to the same address returns another handle,
 * with a limit of its own. ROVE_INVALID: peer is NULL. */
int rove_peer_limit(rove_peer_t* peer, int timeout_ms) ROVE_NOTHROW;

/* Reads a package file and checks its form, and each slice by its digest. ROVE_INVALID: it does not exist, is truncated or malformed, a slice is
 * altered, or it has another ABI. */
int rove_package_open(const char* path, rove_package_t** out) ROVE_NOTHROW;
void rove_package_close(rove_package_t* package) ROVE_NOTHROW;

/* Loads a package on the peer before its first call; an interface must be loaded before functions can be linked to its
 * names. Waits for the answer. ROVE_UNSUPPORTED: no form for its target; ROVE_FAILED: it cannot be linked there;
 * ROVE_OVERLOADED: no room for its code; ROVE_DISCONNECTED: the peer has ended; ROVE_CANCELLED: the node ended. */
int rove_load(rove_peer_t* peer, rove_package_t* package) ROVE_NOTHROW;

/* Begins a call of the package's entry with a copy of the payload. ROVE_INVALID: no such entry, or a payload over
 * ROVE_MESSAGE_BYTES_MAX; ROVE_UNSUPPORTED, ROVE_DISCONNECTED and ROVE_CANCELLED as rove_load's; ROVE_OVERLOADED: too many
 * calls in flight. */
int rove_call_begin(rove_peer_t* peer, rove_package_t* package, const char* entry, const void* payload, size_t size,
                    rove_call_t** out) ROVE_NOTHROW;
/* The same without a reply. */
int rove_call_post(rove_peer_t* peer, rove_package_t* package, const char* entry, const void* payload,
                   size_t size) ROVE_NOTHROW;
/* 1 if the call has ended, else 0. Polls the node once. */
int rove_call_test(rove_call_t* call) ROVE_NOTHROW;
/* Waits until the call has ended and returns its result: 0 and the reply (valid until rove_call_free), or the call's error.
 * timeout_ms negative: for ever. If the time is over it returns ROVE_TIMED_OUT and the call stays in flight. `data` and `size` may be
 * NULL. */
int rove_call_wait(rove_call_t* call, int timeout_ms, const void** data, size_t* size) ROVE_NOTHROW;
/* Frees the call. A call in flight is forgotten, and its late reply discarded. */
void rove_call_free(rove_call_t* call) ROVE_NOTHROW;

/* The message of the last error that a function of this half returned on this thread. Valid until the next one. */
const char* rove_error_message(void) ROVE_NOTHROW;
/* "invalid", "timed_out", … */
const char* rove_error_name(int error) ROVE_NOTHROW;

#ifdef __cplusplus
}
#endif

#endif /* ROVE_ROVE_H */
