// Replies what a function of the other file, reached by its address, makes of its argument.
#include <rove/rove.h>

int other(int x);
static int (*volatile chosen)(int) = other;

// An array, which a guarded stack keeps a word behind.
__attribute__((noinline)) static int through_memory(const volatile char* text) {
    volatile char room[16];
    for (int i = 0; i < 16; ++i) room[i] = text[i % 2];
    return room[15];
}

ROVE_ENTRY void elsewhere(rove_here* here, const void* payload, size_t size) {
    const char text[2] = {'0', size > 0 ? *(const char*)payload : '0'};
    const char reply = (char)chosen(through_memory(text));
    rove_reply(here, &reply, 1);
}
