/* { dg-do run { target x86_64-*-* } } */
/* What the CPU can do is asked where the code runs. */
int main(void) {
    __builtin_cpu_init();
    return !__builtin_cpu_supports("sse2");
}
