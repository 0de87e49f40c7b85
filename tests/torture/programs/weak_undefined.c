/* { dg-do run } */
/* A weak function that nobody defines is null. */
extern int nobody_defines_this(void) __attribute__((weak));

int main(void) {
    return nobody_defines_this ? nobody_defines_this() + 1 : 0;
}
