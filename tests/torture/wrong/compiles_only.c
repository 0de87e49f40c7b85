/* { dg-do compile } */
/* Not run at all. */
int main(void) {
    return 1;
}
