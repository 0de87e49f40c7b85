// A source of the program in C: it travels as its C++ does.
int linked_in_c(int x) {
    return x + 300;
}
