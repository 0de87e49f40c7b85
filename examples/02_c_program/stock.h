/* stock.h: what the server has, and functions that are sent to it may use. */
#pragma once
#include <stdatomic.h>

struct stock {
    atomic_long apples;
};
