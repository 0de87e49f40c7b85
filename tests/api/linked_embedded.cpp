#include "linked.hpp"

int linked::embedded(int x) {
    static int calls = 0;
    return 0x100 * ++calls + x;
}
