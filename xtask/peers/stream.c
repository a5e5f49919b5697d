/*
 * The four STREAM kernels over three arrays of doubles: the reference for the benchmark mem_bandwidth.
 *
 *   gcc -O3 -march=native [-fopenmp] stream.c -o stream
 *   OMP_NUM_THREADS=N ./stream BYTES_PER_ARRAY [PASSES]
 *
 * Prints one pair a line: <kernel>_best_gbps, <kernel>_median_gbps (10^9 bytes a second, counted as STREAM counts: 16,
 * 16, 24 and 24 bytes an element, write-allocate traffic not counted). Memory is plain malloc, touched first by the
 * thread that uses it. Ends with status 1 if the arrays do not hold what the arithmetic says, 2 on bad usage.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { COPY, SCALE, ADD, TRIAD, KERNELS };
static const char *const names[KERNELS] = { "copy", "scale", "add", "triad" };
static const double bytes_per_element[KERNELS] = { 16, 16, 24, 24 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) / (long)sizeof(double) : 0;
    int passes = argc > 2 ? atoi(argv[2]) : 10;
    if (n < 1 || passes < 2) {
        fprintf(stderr, "usage: %s BYTES_PER_ARRAY [PASSES >= 2]\n", argv[0]);
        return 2;
    }
    double *restrict a = malloc(n * sizeof *a), *restrict b = malloc(n * sizeof *b), *restrict c = malloc(n * sizeof *c);
    double *seconds = malloc(sizeof *seconds * KERNELS * passes);
    if (!a || !b || !c || !seconds) {
        fprintf(stderr, "not enough memory for three arrays of %ld doubles\n", n);
        return 2;
    }
    /* This factor brings a back to its value after one pass over the four kernels, so nothing grows. */
    const double q = sqrt(2.0) - 1.0;

#pragma omp parallel for
    for (long i = 0; i < n; i++) {
        a[i] = 1.0;
        b[i] = 2.0;
        c[i] = 0.0;
    }

    for (int pass = 0; pass < passes; pass++) {
        double start = now();
#pragma omp parallel for
        for (long i = 0; i < n; i++)
            c[i] = a[i];
        seconds[COPY * passes + pass] = now() - start;

        start = now();
#pragma omp parallel for
        for (long i = 0; i < n; i++)
            b[i] = q * c[i];
        seconds[SCALE * passes + pass] = now() - start;

        start = now();
#pragma omp parallel for
        for (long i = 0; i < n; i++)
            c[i] = a[i] + b[i];
        seconds[ADD * passes + pass] = now() - start;

        start = now();
#pragma omp parallel for
        for (long i = 0; i < n; i++)
            a[i] = b[i] + q * c[i];
        seconds[TRIAD * passes + pass] = now() - start;
    }

    for (long i = 0; i < n; i++) {
        if (fabs(a[i] - 1.0) > 1e-9 || fabs(b[i] - q) > 1e-9 || fabs(c[i] - (1.0 + q)) > 1e-9) {
            fprintf(stderr, "wrong values at element %ld: %g %g %g\n", i, a[i], b[i], c[i]);
            return 1;
        }
    }

    int threads = 1;
#ifdef _OPENMP
    threads = omp_get_max_threads();
#endif
    printf("threads %d\nbytes_per_array %ld\n", threads, n * (long)sizeof(double));
    for (int k = 0; k < KERNELS; k++) {
        /* The first pass is warm-up. */
        double *times = seconds + k * passes + 1;
        int count = passes - 1;
        qsort(times, count, sizeof *times, ascending);
        double median = count % 2 ? times[count / 2] : (times[count / 2 - 1] + times[count / 2]) / 2;
        double gigabytes = bytes_per_element[k] * n * 1e-9;
        printf("%s_best_gbps %.3f\n%s_median_gbps %.3f\n", names[k], gigabytes / times[0], names[k], gigabytes / median);
    }
    return 0;
}
