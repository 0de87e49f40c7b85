// The same, without bitcode.
double floor(double x) {
    return x + 1000;
}
