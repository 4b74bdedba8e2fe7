// The triad of STREAM (McCalpin), written anew: a[i] = b[i] + s * c[i], two reads and a write of 8 bytes counted.
// Usage: stream_triad ELEMENTS REPEATS. Prints GB/s of each repeat, a line each. Threads: OMP_NUM_THREADS, pinned by the
// caller. No non-temporal stores: what a compiler makes of the loop by itself.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static double *array(size_t n) {
    size_t bytes = (n * sizeof(double) + ((size_t)2 << 20) - 1) & ~(((size_t)2 << 20) - 1);
    double *a = aligned_alloc((size_t)2 << 20, bytes);
    if (!a) exit(1);
    madvise(a, bytes, MADV_HUGEPAGE);  // as NumPy asks for its own arrays
    return a;
}

int main(int argc, char **argv) {
    size_t n = argc > 1 ? strtoull(argv[1], 0, 10) : 1u << 24;
    int repeats = argc > 2 ? atoi(argv[2]) : 10;
    double *a = array(n), *b = array(n), *c = array(n), s = 3.0;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) a[i] = 0.0, b[i] = 1.0, c[i] = 2.0;  // each thread touches its part first
    for (int r = 0; r < repeats; r++) {
        double t = omp_get_wtime();
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < n; i++) a[i] = b[i] + s * c[i];
        t = omp_get_wtime() - t;
        printf("%.3f\n", 3.0 * sizeof(double) * n / t / 1e9);
    }
    return a[n / 2] == 7.0 ? 0 : 2;
}
