/* The entry that tests/torture/torture gives a program. Its reply is three ints: how the program ended (Status), how often it has run in
 * this process, and the status that it returned or gave to exit. */
#include <rove/rove.h>
#include <setjmp.h>

enum Status { kPassed, kAborted, kExited, kReturned };

/* What longjmp leaves behind in C++ when a handler or a destructor is jumped out of: the thread's caught and uncaught exceptions. The next
 * program of this thread is not to find them. The layout is that of the Itanium C++ ABI. */
typedef struct {
    void* caught;
    unsigned int uncaught;
} Exceptions;

#ifdef __cplusplus
#define TORTURE_C extern "C"
TORTURE_C Exceptions* __cxa_get_globals(void) noexcept;
static Exceptions* exceptions(void) {
    return __cxa_get_globals();
}
#else
#define TORTURE_C extern
static Exceptions* exceptions(void) {
    static Exceptions none;
    return &none;
}
#endif
TORTURE_C int torture_main(int, char**, char**);
TORTURE_C void torture_abort(void);
TORTURE_C void torture_exit(int);
TORTURE_C char** environ;

static struct {
    int status, runs, code;
} last;
static jmp_buf before;

void torture_abort(void) {
    last.status = kAborted;
    longjmp(before, 1);
}

void torture_exit(int code) {
    last.status = code ? kExited : kPassed;
    last.code = code;
    longjmp(before, 1);
}

ROVE_ENTRY void run(rove_here* here, const void* payload, size_t size) {
    static char name[] = "./program";
    static char* arguments[2] = {name, 0};
    (void)payload;
    (void)size;
    const Exceptions at_first = *exceptions();
    ++last.runs;
    last.code = 0;
    if (!setjmp(before)) {
        last.code = torture_main(1, arguments, environ);
        last.status = last.code ? kReturned : kPassed;
    } else {
        *exceptions() = at_first;
    }
    rove_reply(here, &last, sizeof last);
}
