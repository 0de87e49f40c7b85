/* { dg-do run { target { aarch64*-*-* && { ! aarch64*-*-linux* } } } } */
/* For a target that no machine here is. */
int main(void) {
    return 1;
}
