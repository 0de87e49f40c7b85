/* The functions that the templates of rove/rove.hpp call. They are plain C, so that code that travels calls the same ones as resident code.
 * Programs use rove/rove.hpp or rove/rove.h instead.
 *
 * Threads: any, except for functions that take a rove_here, which are called as in rove/rove.h. Times are in ns; negative: for ever.
 * Errors: 0 or a rove_error; rove_last_failure then has the details.
 */
#ifndef ROVE_EDGE_H
#define ROVE_EDGE_H

#include "rove/rove.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The body of a function, as Rove runs it. */
typedef void (*rove_code)(rove_here* here, const void* payload, size_t size);

/* One call in flight; engine NULL: none. Its owner drops it, once. */
typedef struct rove_pending {
    void* engine; /* the engine of the node that made the call */
    uint32_t slot;
    uint32_t generation;
} rove_pending;

/* A run of bytes of a payload or a result, which consists of several such pieces in order. */
typedef struct rove_piece {
    const void* data;
    size_t size;
} rove_piece;

/* The last error on this thread; valid until the next failure. `type` is "" unless a function threw. */
typedef struct rove_failure {
    int error; /* enum rove_error */
    rove_node_id node;
    const char* type;
    const char* message;
} rove_failure;
const rove_failure* rove_last_failure(void) ROVE_NOTHROW;

/* ---- within a function */

/* Ends the call with the exception that is being handled. To be called in a catch clause. */
int rove_fail_caught(rove_here* here) ROVE_NOTHROW;
/* Writes the exception that is being handled to this process's log, as an error of `where`. To be called in a catch clause, for code whose
 * end no caller waits for. */
void rove_report_caught(const char* where) ROVE_NOTHROW;
/* Calls run(argument): before this returns, or, if many of these calls are within each other and the thread has little stack left or runs on
 * another stack than its own (a fiber's), when the innermost of them returns; not at all if that throws, or ends its thread. */
void rove_call_back(void (*run)(void*), void* argument);
/* Leaves the function that this thread is in and ends its call with that error, for code that is compiled without exceptions. Objects
 * on the stack are not destroyed. If the thread is in no function, writes the message to stderr and ends the process. */
void rove_raise(const rove_failure* why) __attribute__((noreturn));
/* Ends the call with that error. */
int rove_fail_as(rove_here* here, int error, const char* message) ROVE_NOTHROW;
/* Ends the call with that error; the message says that a result of `size` bytes could not be sent. */
int rove_fail_unsent(rove_here* here, int error, size_t size) ROVE_NOTHROW;
/* The object that the node's program shares under this name, of that type (as typeid names it). NULL: see rove_last_failure. */
void* rove_object(rove_here* here, const char* name, const char* type) ROVE_NOTHROW;
/* A part of a buffer on this node, which is kept until the function returns. ROVE_INVALID: no such buffer here, or it is smaller. */
int rove_buffer_at(rove_here* here, uint64_t key, uint64_t offset, uint64_t bytes, void** out) ROVE_NOTHROW;
/* Declares that the payload has been read and is not used any more: its place in the mailbox becomes free. */
void rove_payload_read(rove_here* here) ROVE_NOTHROW;
/* Copies the payload, so that its place in the mailbox becomes free; the copy is valid until the function returns. Returns the payload itself,
 * which is valid as long, if it is not in a mailbox or there is no memory for a copy. */
const void* rove_payload_keep(rove_here* here, const void* payload, size_t size) ROVE_NOTHROW;
/* rove_payload_read, which also declares that this function can be begun while its payload is still arriving: rove_payload_coming. */
void rove_payload_gathers(rove_here* here) ROVE_NOTHROW;
/* The size of a payload that is still arriving; the payload passed to the function is empty then, and the call itself has not arrived: before
 * rove_payload_next reports that it has, the user's function must not be called. 0: the payload has arrived. */
size_t rove_payload_coming(rove_here* here) ROVE_NOTHROW;
/* Waits for the payload's next part, which is valid until the next call of this. *part is NULL after the last part, when the call has arrived.
 * ROVE_CANCELLED: the call will not arrive, and the function must return. */
int rove_payload_next(rove_here* here, const void** part, size_t* size) ROVE_NOTHROW;
/* rove_reply with a result in pieces, which are read before this returns. */
int rove_reply_pieces(rove_here* here, const rove_piece* pieces, size_t count) ROVE_NOTHROW;
/* Lets another thread of the node serve from now on, for a function that is known to run long. */
void rove_hand_over(rove_here* here) ROVE_NOTHROW;
/* +1: from now on, when this thread waits, it takes replies and runs no other function on top of the one that it is in. -1: ends
 * that. */
void rove_no_nesting(int change) ROVE_NOTHROW;
/* Returns a rove_here that stays valid after the function returns, so that its call can be ended later and in another thread; `here` is
 * invalid afterwards. rove_release ends the call, if it has not ended, and frees the rove_here. NULL: no memory; `here` is unchanged. */
rove_here* rove_keep(rove_here* here) ROVE_NOTHROW;
void rove_release(rove_here* kept) ROVE_NOTHROW;
/* Calls (out NULL: posts) a function of this package or program, named by the address of its code, on another node or at the caller.
 * ROVE_INVALID: unknown code, no link to that node, or a payload over ROVE_MESSAGE_BYTES_MAX; ROVE_UNSUPPORTED: no form for
 * its target; ROVE_DISCONNECTED: it has ended; ROVE_OVERLOADED: too many calls in flight, or no room. */
int rove_here_call(rove_here* here, rove_node_id to, rove_code function, const void* payload, size_t size,
                   rove_pending* out) ROVE_NOTHROW;
/* The same, with a payload in pieces, which are read before this returns, and with a time limit for the whole call, including the sending:
 * ROVE_TIMED_OUT, from this function or from the call. */
int rove_here_call_within(rove_here* here, rove_node_id to, rove_code function, const rove_piece* pieces, size_t count,
                          int64_t timeout_ns, rove_pending* out) ROVE_NOTHROW;

/* ---- calls in flight */

/* 1: the call has ended; 0: it is in flight. Polls the node once if it has no thread of its own. */
int rove_pending_done(const rove_pending* pending) ROVE_NOTHROW;
/* Waits for the end. ROVE_TIMED_OUT: the call is still in flight. */
int rove_pending_wait(const rove_pending* pending, int64_t timeout_ns) ROVE_NOTHROW;
/* Waits, copies the result, and drops the call in any case. Errors: the call's own, or ROVE_INVALID if the result is larger
 * than `room`. */
int rove_pending_take(rove_pending* pending, void* into, size_t room, size_t* size) ROVE_NOTHROW;
/* Waits; *data is the result in place, valid until the call is dropped. Errors: the call's own. */
int rove_pending_result(const rove_pending* pending, const void** data, size_t* size) ROVE_NOTHROW;
/* rove_pending_result, but a result that is larger than a frame, and of which no part has arrived yet, is passed to `take` part by part as
 * it arrives, and *data is NULL then. `take` runs in any thread while this waits, and must not call Rove. It returns 1; or 0 if the bytes are
 * not what it expects, which ends the call as ROVE_INVALID; or less if it has no memory for them: ROVE_FAILED. */
int rove_pending_gather(const rove_pending* pending,
                        int (*take)(void* self, const void* part, size_t size, size_t total_size), void* self,
                        const void** data, size_t* size) ROVE_NOTHROW;
/* Waits until one of the calls has ended; *which is its index. ROVE_TIMED_OUT: none has. ROVE_INVALID: no calls, or calls of several nodes. */
int rove_pending_any(const rove_pending* pendings, size_t count, int64_t timeout_ns, size_t* which) ROVE_NOTHROW;
/* notify(argument) runs once, after the call has ended, in the thread that serves the node. 0: the call has ended already, and notify will not
 * run. notify NULL: withdraws the earlier request, even if the call has ended or was dropped. 1: the earlier notify will not run; 0: it has
 * run, is running, or was forgotten with the call. */
int rove_pending_notify(const rove_pending* pending, void (*notify)(void*), void* argument) ROVE_NOTHROW;
/* Sets a time limit, from now on, if it is shorter than the call's own. */
void rove_pending_limit(const rove_pending* pending, int64_t timeout_ns) ROVE_NOTHROW;
/* Ends the call as cancelled on this side; the function may still run. */
void rove_pending_cancel(const rove_pending* pending) ROVE_NOTHROW;
/* Forgets the call: its function may still run, and its end is not reported. `engine` is NULL afterwards. */
void rove_pending_drop(rove_pending* pending) ROVE_NOTHROW;
/* Serves the node, or waits while another thread does, until done(argument) returns non-zero or the time is over. */
void rove_drive(void* engine, int (*done)(void*), void* argument, int64_t timeout_ns) ROVE_NOTHROW;

#ifdef __cplusplus
}
#endif

#endif /* ROVE_EDGE_H */
