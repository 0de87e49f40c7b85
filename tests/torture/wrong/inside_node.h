/* Tells a node's process from any other, so that a program can behave differently there. */
#pragma once
#include <stdio.h>
#include <string.h>

static int inside_node(void) {
    char name[32] = "";
    FILE* file = fopen("/proc/self/comm", "r");
    if (!file) return 0;
    if (!fgets(name, sizeof name, file)) name[0] = 0;
    fclose(file);
    return strcmp(name, "rove\n") == 0;
}
