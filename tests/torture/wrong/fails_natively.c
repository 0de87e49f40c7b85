/* { dg-do run } */
/* Fails everywhere: does not count. */
int main(void) {
    return 1;
}
