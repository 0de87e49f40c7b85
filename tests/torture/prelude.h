/* Put before each program by tests/torture/torture: its abort and exit end the call with a status, not the process, and its main is
 * an ordinary function, which wrap.c calls. */
#ifndef ROVE_TORTURE_PRELUDE_H
#define ROVE_TORTURE_PRELUDE_H
#pragma GCC system_header
#ifdef __cplusplus
#if __cplusplus >= 201103L
#define TORTURE_NOTHROW noexcept
#else
#define TORTURE_NOTHROW throw()
#endif
extern "C" {
void abort(void) TORTURE_NOTHROW __asm__("torture_abort") __attribute__((noreturn));
void exit(int) TORTURE_NOTHROW __asm__("torture_exit") __attribute__((noreturn));
}
#else
void abort(void) __asm__("torture_abort") __attribute__((noreturn));
void exit(int) __asm__("torture_exit") __attribute__((noreturn));
#endif
#define __builtin_abort abort
#define __builtin_exit exit
#define main torture_main
#endif
