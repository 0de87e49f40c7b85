#include "linked.hpp"

int linked::left(int x) {
    return 2 * x;
}
