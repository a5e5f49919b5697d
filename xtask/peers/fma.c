/* The rate of fused multiply-adds that touch nothing but registers, in f32 and f64.
 *
 *     gcc -O3 -march=native -pthread fma.c -o fma && ./fma THREADS SECONDS
 *
 * Each thread is tied to one of the processors it may use (the last ones first) and runs CHAINS independent chains
 * of vector FMAs, x = x * m + a with |m| < 1 on average, so that the values stay near 1. Prints
 *
 *     f32 GFLOP/s
 *     f64 GFLOP/s
 *
 * one number and its name a line: operations of all threads over the time from the common start to the last end.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define CHAINS 16
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#define CHAINS 12
#else
#define VECTOR_BYTES 16
#define CHAINS 24
#endif

#define BLOCK 100000 /* steps between two looks at the clock */
#define MAX_THREADS 1024

typedef float vector_f32 __attribute__((vector_size(VECTOR_BYTES)));
typedef double vector_f64 __attribute__((vector_size(VECTOR_BYTES)));

static pthread_barrier_t start_line;
static double seconds_to_run;

struct worker {
    pthread_t thread;
    int cpu;
    double flops, start, end, checksum;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* The two steps differ so that the values keep moving instead of settling on one number. */
#define DEFINE_WORKER(NAME, VECTOR, SCALAR)                                                      \
    static void *NAME(void *argument) {                                                          \
        struct worker *self = argument;                                                          \
        VECTOR x[CHAINS], m0, a0, m1, a1;                                                        \
        const int lanes = VECTOR_BYTES / sizeof(SCALAR);                                         \
        for (int lane = 0; lane < lanes; lane++) {                                               \
            m0[lane] = (SCALAR)(1.21 + 0.001 * lane);                                            \
            m1[lane] = (SCALAR)(0.77 - 0.001 * lane);                                            \
            a0[lane] = (SCALAR)(0.31 + 0.01 * lane);                                             \
            a1[lane] = (SCALAR)(-0.17 - 0.01 * lane);                                            \
            for (int chain = 0; chain < CHAINS; chain++)                                         \
                x[chain][lane] = (SCALAR)(1.0 + 0.03 * chain + 0.007 * lane);                    \
        }                                                                                        \
        cpu_set_t set;                                                                           \
        CPU_ZERO(&set);                                                                          \
        CPU_SET(self->cpu, &set);                                                                \
        pthread_setaffinity_np(pthread_self(), sizeof set, &set);                                \
        pthread_barrier_wait(&start_line);                                                       \
        self->start = now();                                                                     \
        double blocks = 0;                                                                       \
        do {                                                                                     \
            for (long step = 0; step < BLOCK; step++) {                                          \
                _Pragma("GCC unroll 32") for (int chain = 0; chain < CHAINS; chain++)            \
                    x[chain] = x[chain] * m0 + a0;                                               \
                _Pragma("GCC unroll 32") for (int chain = 0; chain < CHAINS; chain++)            \
                    x[chain] = x[chain] * m1 + a1;                                               \
            }                                                                                    \
            blocks++;                                                                            \
            self->end = now();                                                                   \
        } while (self->end - self->start < seconds_to_run);                                      \
        for (int chain = 0; chain < CHAINS; chain++)                                             \
            for (int lane = 0; lane < lanes; lane++) self->checksum += x[chain][lane];           \
        self->flops = blocks * BLOCK * 2.0 * CHAINS * lanes * 2.0;                               \
        return NULL;                                                                             \
    }

DEFINE_WORKER(work_f32, vector_f32, float)
DEFINE_WORKER(work_f64, vector_f64, double)

static double rate(void *(*work)(void *), int threads, const int *cpus, double *checksum) {
    static struct worker workers[MAX_THREADS];
    pthread_barrier_init(&start_line, NULL, threads);
    for (int i = 0; i < threads; i++) {
        workers[i] = (struct worker){.cpu = cpus[i]};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            perror("pthread_create");
            exit(1);
        }
    }
    double flops = 0, start = 0, end = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        flops += workers[i].flops;
        *checksum += workers[i].checksum;
        if (i == 0 || workers[i].start < start) start = workers[i].start;
        if (i == 0 || workers[i].end > end) end = workers[i].end;
    }
    pthread_barrier_destroy(&start_line);
    return flops / (end - start) / 1e9;
}

int main(int argc, char **argv) {
    int threads = argc == 3 ? atoi(argv[1]) : 0;
    seconds_to_run = argc == 3 ? atof(argv[2]) : 0;
    if (threads < 1 || threads > MAX_THREADS || !(seconds_to_run > 0)) {
        fprintf(stderr, "usage: %s THREADS SECONDS\n", argv[0]);
        return 2;
    }
    int cpus[MAX_THREADS], found = 0;
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        perror("sched_getaffinity");
        return 1;
    }
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && found < threads; cpu--)
        if (CPU_ISSET(cpu, &allowed)) cpus[found++] = cpu;
    if (found < threads) {
        fprintf(stderr, "%d threads asked for, %d processors allowed\n", threads, found);
        return 2;
    }
    double checksum = 0;
    printf("f32 %.2f\n", rate(work_f32, threads, cpus, &checksum));
    printf("f64 %.2f\n", rate(work_f64, threads, cpus, &checksum));
    fprintf(stderr, "checksum %g\n", checksum);
    return 0;
}
