/* What a piece of numbered work is made of: its payload, its answer, and the record that it leaves when it runs. C, because
 * packages, typed functions and the program that checks them all share it.
 *
 * A run is recorded by the function itself with one write() to a descriptor that every process inherits from `life`, opened for
 * appending. The kernel has the record before the function goes on, so a node that is killed takes none of them along.
 */
#ifndef ROVE_LIFE_WORK_H
#define ROVE_LIFE_WORK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LIFE_RUNS_FD 1000 /* under the usual soft limit of 1024 descriptors, above what a node opens */
#define LIFE_STOPS_MAX 3

/* 32 bytes divide a page, so no record lies on two of them and each is written as a whole. */
struct life_run {
    uint64_t number;
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint32_t pid, thread;
    uint32_t version;
    uint16_t step, node;
};

struct life_head {
    uint64_t number;
    uint32_t body_bytes; /* follow the head, made by life_fill */
    uint32_t nap_us;
    uint8_t step, left; /* how often it was sent on, and how often it still is */
    uint8_t on_purpose; /* fails after its run has been recorded */
    uint8_t unused[5];
    uint32_t stops[LIFE_STOPS_MAX + 1];
};

struct life_answer {
    uint64_t number;
    uint64_t sum; /* life_sum of the body, as it arrived */
    uint32_t version, node;
    uint32_t step; /* which step answered */
    int32_t error; /* what kept it from being sent on: a rove_error */
};

static inline int life_record(uint64_t number, unsigned step, unsigned node, unsigned version) {
    struct timespec now;
    struct life_run run;
    clock_gettime(CLOCK_MONOTONIC, &now);
    run.number = number;
    run.time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    run.pid = (uint32_t)getpid();
    run.thread = (uint32_t)gettid();
    run.version = version;
    run.step = (uint16_t)step;
    run.node = (uint16_t)node;
    return write(LIFE_RUNS_FD, &run, sizeof run) == (ssize_t)sizeof run;
}

static inline uint64_t life_word(uint64_t number, uint64_t index) {
    return (number + 1) * 0x9E3779B97F4A7C15u + index * 0xC2B2AE3D27D4EB4Fu;
}
/* A body that belongs to one number only: parts that end up in another's place change the sum. */
static inline void life_fill(void* body, size_t bytes, uint64_t number) {
    for (size_t at = 0; at < bytes; at += 8) {
        const uint64_t word = life_word(number, at);
        memcpy((char*)body + at, &word, bytes - at < 8 ? bytes - at : 8);
    }
}
static inline uint64_t life_sum(const void* body, size_t bytes) {
    uint64_t sum = bytes;
    for (size_t at = 0; at < bytes; at += 8) {
        uint64_t word = 0;
        memcpy(&word, (const char*)body + at, bytes - at < 8 ? bytes - at : 8);
        sum = (sum ^ word) * 0x100000001B3u;
        sum ^= sum >> 29;
    }
    return sum;
}

#endif /* ROVE_LIFE_WORK_H */
