// A source of the program in C: it travels as its C++ does.
// A static of a function goes along, and one of a file does not.
static int of_the_file = 1;

int linked_in_c(int x) {
    return x + 300;
}

int linked_count_in_c(int by) {
    static int n = 7;
    return n += by;
}

int linked_of_the_file(int by) {
    return of_the_file += by;
}
