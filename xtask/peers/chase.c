/*
 * A pointer chase in random order over cache lines: the reference for the benchmark mem_latency.
 *
 *   gcc -O3 -march=native chase.c -o chase
 *   ./chase BYTES...
 *
 * Prints one pair a line: latency_<BYTES>_ns, the median over some runs of the time of one dependent load. Memory is
 * plain malloc, so its pages are what the system gives a program that asks for nothing. Ends with status 2 on bad usage.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LINE = 64, RUNS = 9 };

struct line {
    struct line *next;
    char rest[LINE - sizeof(struct line *)];
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static uint64_t state = 0x9e3779b97f4a7c15u;

/* Marsaglia's xorshift, scaled to 0 .. bound - 1. */
static uint64_t below(uint64_t bound)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint64_t)(((unsigned __int128)state * bound) >> 64);
}

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Sattolo's algorithm: a random permutation that is a single cycle. */
static void link_lines(struct line *lines, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        lines[i].next = &lines[i];
    for (uint64_t i = count - 1; i > 0; i--) {
        uint64_t j = below(i);
        struct line *swap = lines[i].next;
        lines[i].next = lines[j].next;
        lines[j].next = swap;
    }
}

static double nanoseconds_per_load(struct line **at, uint64_t loads)
{
    struct line *p = *at;
    double start = now();
    for (uint64_t i = 0; i < loads; i += 8) {
        p = p->next;
        p = p->next;
        p = p->next;
        p = p->next;
        p = p->next;
        p = p->next;
        p = p->next;
        p = p->next;
    }
    double seconds = now() - start;
    *at = p;
    return seconds * 1e9 / loads;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s BYTES...\n", argv[0]);
        return 2;
    }
    for (int arg = 1; arg < argc; arg++) {
        uint64_t count = strtoull(argv[arg], NULL, 10) / LINE;
        struct line *lines = count < 2 ? NULL : aligned_alloc(LINE, count * LINE);
        if (!lines) {
            fprintf(stderr, "cannot chase through `%s` bytes: too few, or not enough memory\n", argv[arg]);
            return 2;
        }
        link_lines(lines, count);
        /* A whole turn brings in what the caches can hold; small sets get more, so that the clock has risen, and those
         * far beyond any cache get less. */
        struct line *at = lines;
        nanoseconds_per_load(&at, count < 1000000 ? 1000000 : count < 4000000 ? count : 4000000);
        double results[RUNS];
        for (int run = 0; run < RUNS; run++)
            results[run] = nanoseconds_per_load(&at, 200000);
        qsort(results, RUNS, sizeof *results, ascending);
        printf("latency_%s_ns %.3f\n", argv[arg], results[RUNS / 2]);
        /* The end of the chase is used, or the compiler would be free to leave the chase out. */
        if (!at->next)
            return 1;
        free(lines);
    }
    return 0;
}
