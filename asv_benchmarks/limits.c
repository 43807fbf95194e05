/* What a machine does at best, timed where nothing stands between two runs: bytes by the C library, multiply-adds in registers.
   limits.py compiles it where the table is made, with all that the processor has. */
#include <stddef.h>
#include <string.h>
#include <time.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#define WIDTH 64
#define STREAM(to, from) _mm512_stream_si512((void *)(to), _mm512_loadu_si512((const void *)(from)))
#elif defined(__AVX__)
#include <immintrin.h>
#define WIDTH 32
#define STREAM(to, from) _mm256_stream_si256((void *)(to), _mm256_loadu_si256((const void *)(from)))
#else
#define WIDTH 16
#define STREAM(to, from) memcpy(to, from, WIDTH)
#endif
#define CHAINS 12 /* more than what is begun until a sum is there, and no more than 16 registers hold */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Past the caches, which large results do not come back from: the lines that are written need not be read first. */
static void stream(char *target, const char *source, size_t count) {
    size_t i = 0;
    for (; i + WIDTH <= count; i += WIDTH) STREAM(target + i, source + i);
    memcpy(target + i, source + i, count - i);
}

/* Seconds of so many runs: each copies, by memcpy or ``past`` the caches, looks for a byte that is not there, fills, and changes. */
double passes(int past, char *target, const char *source, size_t copied, const char *seen, size_t looked, char *filled,
              size_t written, long *kept, size_t changed, long runs) {
    volatile int found = 0;
    double start = now();
    for (long i = 0; i < runs; i++) {
        if (past) stream(target, source, copied);
        else if (copied) memcpy(target, source, copied);
        if (looked && memchr(seen, 1, looked)) found = 1;
        if (written) memset(filled, 0, written);
        for (size_t j = 0; j < changed / sizeof(long); j++) kept[j] ^= 1;
        __asm__ volatile("" : : : "memory"); /* so that each run is made, and not the last alone */
    }
    return now() - start;
}

/* Seconds of so many multiply-adds of CHAINS vectors. */
#define MULTIPLY(name, real)                                                                                                   \
    double name(long runs) {                                                                                                   \
        typedef real vector __attribute__((vector_size(WIDTH)));                                                               \
        vector sums[CHAINS] = {{0}}, half = (vector){0} + (real)0.5;                                                           \
        double start = now();                                                                                                  \
        for (long i = 0; i < runs; i++)                                                                                        \
            for (int j = 0; j < CHAINS; j++) sums[j] = sums[j] * half + half;                                                  \
        double taken = now() - start;                                                                                          \
        for (int j = 0; j < CHAINS; j++) __asm__ volatile("" : : "m"(sums[j]));                                                \
        return taken;                                                                                                          \
    }

MULTIPLY(multiply_float32, float)
MULTIPLY(multiply_float64, double)

long lanes(void) { return CHAINS * WIDTH; } /* bytes of the numbers that one run multiplies */
