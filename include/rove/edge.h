/* What the templates of rove/rove.hpp call: plain C, so that a function that travels calls the same as one that stays at home.
 * For programs there is rove/rove.hpp, or rove/rove.h. Threads: any, but for what takes a rove_here, which is as in rove/rove.h.
 */
#ifndef ROVE_EDGE_H
#define ROVE_EDGE_H

#include "rove/rove.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The body of a function, as Rove runs it. */
typedef void (*rove_code)(rove_here* here, const void* payload, size_t size);

/* One call in flight; node NULL: none. Who has it drops it, once. */
typedef struct rove_pending {
    void* node;
    uint32_t slot;
    uint32_t generation;
} rove_pending;

/* A run of bytes of a payload or a result: several of them follow each other. */
typedef struct rove_piece {
    const void* data;
    size_t size;
} rove_piece;

/* What went wrong on this thread last; valid until the next failure. `type` is "" unless a function threw. */
typedef struct rove_failure {
    int error; /* enum rove_error */
    rove_node_id node;
    const char* type;
    const char* message;
} rove_failure;
const rove_failure* rove_last_failure(void) ROVE_NOTHROW;

/* ---- within a function */

/* Ends the call with the exception that is being handled: to be called in a catch clause. */
int rove_fail_caught(rove_here* here) ROVE_NOTHROW;
/* Writes the exception that is being handled to this process's log, as an error of `where`: to be called in a catch clause, by what
 * nobody waits for. */
void rove_report_caught(const char* where) ROVE_NOTHROW;
/* Leaves the function that this thread is in, whose call ends with that error: for code that is compiled without exceptions. The objects
 * of such code are not destroyed on the way. Where the thread is in no function it writes the message to stderr and ends the process. */
void rove_raise(const rove_failure* why) __attribute__((noreturn));
/* Ends the call with an error of that kind. */
int rove_fail_as(rove_here* here, int error, const char* message) ROVE_NOTHROW;
/* Ends the call with that error, because a result of `size` bytes could not be sent. */
int rove_fail_unsent(rove_here* here, int error, size_t size) ROVE_NOTHROW;
/* What the host shared under this name, of that type (as typeid names it); NULL: rove_last_failure says why. */
void* rove_object(rove_here* here, const char* name, const char* type) ROVE_NOTHROW;
/* `bytes` of a buffer of this node's, kept until the function returns. ROVE_INVALID: no such buffer here, or it is smaller. */
int rove_buffer_at(rove_here* here, uint64_t key, uint64_t offset, uint64_t bytes, void** out) ROVE_NOTHROW;
/* The payload has been read, and is not looked at any more: its place in the mailbox is free while the function waits for calls. */
void rove_payload_read(rove_here* here) ROVE_NOTHROW;
/* A copy of the payload that lasts until the function returns, so that its place in the mailbox is free. The payload itself, which lasts as
 * long, where it is in no mailbox or there is no memory for a copy. */
const void* rove_payload_keep(rove_here* here, const void* payload, size_t size) ROVE_NOTHROW;
/* As rove_payload_read; and this function can be begun while its payload is still arriving: rove_payload_coming. */
void rove_payload_gathers(rove_here* here) ROVE_NOTHROW;
/* The size of a payload that is still arriving; the payload that the function was given is empty then, and the call itself has not come:
 * until rove_payload_next says that it has, nothing of what the function is for may be done. 0: the payload is there. */
size_t rove_payload_coming(rove_here* here) ROVE_NOTHROW;
/* Waits for its next part, which stays valid until this is called again. *part is NULL when all have been given and the call has come.
 * ROVE_CANCELLED: it does not come, and the function returns. */
int rove_payload_next(rove_here* here, const void** part, size_t* size) ROVE_NOTHROW;
/* As rove_reply, with a result in pieces. They are read before this returns. */
int rove_reply_pieces(rove_here* here, const rove_piece* pieces, size_t count) ROVE_NOTHROW;
/* Lets another thread of the node serve meanwhile: for a function that is known to run long. */
void rove_hand_over(rove_here* here) ROVE_NOTHROW;
/* +1: from here on this thread, where it waits, takes replies and runs no other function on top of the one that it is in; -1: takes
 * that back. */
void rove_no_nesting(int change) ROVE_NOTHROW;
/* A rove_here that stays valid when the function returns, so that its call can be ended later and elsewhere; release ends the
 * call, if nobody did, and frees it. The first one means nothing afterwards. NULL: there is no memory for it, and the first one is as it
 * was. */
rove_here* rove_keep(rove_here* here) ROVE_NOTHROW;
void rove_release(rove_here* kept) ROVE_NOTHROW;
/* Calls (out NULL: posts) a function of this package or program, by its code, on another node, or the one that called.
 * ROVE_INVALID: unknown code, no link to that node, or a payload over ROVE_MESSAGE_BYTES_MAX; ROVE_UNSUPPORTED: no form for
 * its target; ROVE_DISCONNECTED: it is gone; ROVE_OVERLOADED: too many calls in flight, or no room. rove_last_failure tells more. */
int rove_here_call(rove_here* here, rove_node_id to, rove_code function, const void* payload, size_t size,
                   rove_pending* out) ROVE_NOTHROW;
/* The same, with a payload in pieces, which are read before this returns, and given a time for all of it, the sending included:
 * ROVE_TIMED_OUT when that is up, at once or from the call. Negative: for ever. */
int rove_here_call_within(rove_here* here, rove_node_id to, rove_code function, const rove_piece* pieces, size_t count,
                          int64_t timeout_ns, rove_pending* out) ROVE_NOTHROW;

/* ---- calls in flight: times are in ns, negative: for ever */

int rove_pending_done(const rove_pending* pending)
    ROVE_NOTHROW; /* 1 or 0; polls where the node has no thread of its own */
int rove_pending_wait(const rove_pending* pending,
                      int64_t timeout_ns) ROVE_NOTHROW; /* ROVE_OK, or ROVE_TIMED_OUT: still in flight */
/* Waits, copies the result, and drops the call, whatever it gives: the call's own error, or ROVE_INVALID where the result is larger
 * than `room`. */
int rove_pending_take(rove_pending* pending, void* into, size_t room, size_t* size) ROVE_NOTHROW;
/* Waits, and shows the result in place, valid until the call is dropped; or gives the call's own error. */
int rove_pending_result(const rove_pending* pending, const void** data, size_t* size) ROVE_NOTHROW;
/* As rove_pending_result; but a result that is larger than a frame, and of which nothing has come yet, is given to `take` as it
 * comes, part by part, and *data is NULL then. `take` runs in any thread while this waits, and must not call Rove; it gives 0 where
 * it has no use for the bytes, which ends the call as ROVE_INVALID, and less where it has no memory for them: ROVE_FAILED. */
int rove_pending_gather(const rove_pending* pending,
                        int (*take)(void* self, const void* part, size_t size, size_t total_size), void* self,
                        const void** data, size_t* size) ROVE_NOTHROW;
/* Which of them ended first, or ROVE_TIMED_OUT. ROVE_INVALID: none are given, or they are of several nodes. */
int rove_pending_any(const rove_pending* pendings, size_t count, int64_t timeout_ns, size_t* which) ROVE_NOTHROW;
/* notify(argument) runs once when the call has ended, in the thread that leads the node. 0: it has ended already. NULL: takes back
 * what was asked for, also where the call has ended or is gone; 1: it will not run, 0: it has run, runs, or was forgotten with the
 * call. */
int rove_pending_notify(const rove_pending* pending, void (*notify)(void*), void* argument) ROVE_NOTHROW;
/* Ends it as timed out when the time is up, if that is before its limit. */
void rove_pending_limit(const rove_pending* pending, int64_t timeout_ns) ROVE_NOTHROW;
/* Ends it as cancelled on this side; the function may run. */
void rove_pending_cancel(const rove_pending* pending) ROVE_NOTHROW;
/* Forgets the call: its function may run, and nobody is told. `node` is NULL afterwards. */
void rove_pending_drop(rove_pending* pending) ROVE_NOTHROW;
/* Serves the node, or waits while another thread does, until done(argument) gives non-zero. */
void rove_drive(void* node, int (*done)(void*), void* argument, int64_t timeout_ns) ROVE_NOTHROW;

#ifdef __cplusplus
}
#endif

#endif /* ROVE_EDGE_H */
