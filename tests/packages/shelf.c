// An interface: a shelf that keeps a number. Built with different LABELs, it is a different interface of one name.
#include <rove/rove.h>

#ifndef LABEL
#define LABEL 1
#endif

long shelf_value = LABEL * 100;

long shelf_add(long n) {
    return shelf_value += n;
}
int shelf_label(void) {
    return LABEL;
}
