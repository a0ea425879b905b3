/* Compares the arithmetic rates of dense modules in one run: bench_dense THREADS ROUNDS MODULE.so... The shapes are
 * those of a training step on the Debian graph, of a minibatch, and of a block of model mgn. The rates are medians.
 * They are computed from the processor time per thread, which other programs disturb less than wall time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include "graft_module.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VERTICES = 63666, MODULES_MOST = 8, ROUNDS_MOST = 99 };

struct shape {
    const char *name;
    int64_t     m, n, k;
    int32_t     transpose_a, transpose_b;
    graft_dtype type;
};

static const struct shape shapes[] = {
    { "forward", VERTICES, 128, 128, 0, 0, GRAFT_F32 },
    { "forward, 256 inputs", VERTICES, 128, 256, 0, 0, GRAFT_F32 },
    { "gradient of rows", VERTICES, 128, 128, 0, 1, GRAFT_F32 },
    { "gradient of weights", 128, 128, VERTICES, 1, 0, GRAFT_F32 },
    { "forward, 1000 rows", 1000, 128, 128, 0, 0, GRAFT_F32 },
    { "gradient of weights, 1000 rows", 128, 128, 1000, 1, 0, GRAFT_F32 },
    { "forward, 64 rows", 64, 128, 128, 0, 0, GRAFT_F32 },
    { "block of mgn", 240, 128, 128, 0, 1, GRAFT_F32 },
    { "bfloat16 forward", VERTICES, 128, 128, 0, 0, GRAFT_BF16 },
    { "bfloat16 gradient of rows", VERTICES, 128, 128, 0, 1, GRAFT_BF16 },
    { "bfloat16 gradient of weights", 128, 128, VERTICES, 1, 0, GRAFT_BF16 },
};

struct dense_module {
    const graft_dense_ops *ops;
    void                  *state;
};

static graft_error error = GRAFT_INIT(graft_error);

static void *dense_allocate(void *self, uint64_t bytes, uint64_t alignment)
{
    (void)self;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void dense_deallocate(void *self, void *pointer, uint64_t bytes, uint64_t alignment)
{
    (void)self, (void)bytes, (void)alignment;
    free(pointer);
}

static void dense_log(void *self, graft_log_level level, const char *message)
{
    (void)self, (void)level;
    fprintf(stderr, "%s\n", message);
}

static struct dense_module load_dense(const graft_host *host, const char *path)
{
    void *const               library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *const               symbol = library != NULL ? dlsym(library, "graft_module") : NULL;
    const graft_module_table *table = NULL;
    struct dense_module       made = { NULL, NULL };
    graft_module_fn           entry;

    if (symbol == NULL) bench_die("%s is no module: %s", path, dlerror());
    memcpy(&entry, &symbol, sizeof entry);
    if (entry(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, &table, &error) < 0 || table->dense == NULL ||
        table->dense->init(host, &made.state, &error) < 0)
        bench_die("%s: %s", path, error.message);
    made.ops = table->dense;
    return made;
}

static float *dense_numbers(int64_t count, int threads)
{
    float *made = bench_new((size_t)count, sizeof *made, threads);

    for (int64_t i = 0; i < count; i++) made[i] = (float)(bench_mix((uint64_t)i) % 2048) / 1024 - 1;
    return made;
}

static double dense_seconds(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Returns the rate of a product in GFLOP/s. A small product is repeated so that each measurement takes about a
 * millisecond or more. */
static double dense_rate(const struct dense_module *module, const graft_gemm *g)
{
    const double work = 2 * (double)g->m * (double)g->n * (double)g->k, begin = dense_seconds();
    const int    times = work < 2e8 ? (int)(2e8 / work) : 1;

    for (int i = 0; i < times; i++)
        if (module->ops->gemm(module->state, g, &error) < 0) bench_die("%s", error.message);
    return times * work * g->threads / (dense_seconds() - begin) / 1e9;
}

static double largest_difference(const float *a, const float *b, int64_t count)
{
    double largest = 0;

    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)a[i] - (double)b[i]));
    return largest;
}

static void dense_measure(const struct shape *s, const struct dense_module *modules, int count, int threads, int rounds)
{
    static double rates[MODULES_MOST][ROUNDS_MOST];
    float        *a = dense_numbers(s->m * s->k, threads), *b = dense_numbers(s->k * s->n, 1), *c[MODULES_MOST];
    graft_gemm    g = { .size = sizeof g, .threads = threads, .m = s->m, .n = s->n, .k = s->k, .alpha = 1 };
    char          why[200];

    g.transpose_a = s->transpose_a, g.transpose_b = s->transpose_b, g.type = s->type;
    g.a = a, g.b = b, g.lda = s->transpose_a ? s->m : s->k, g.ldb = s->transpose_b ? s->k : s->n, g.ldc = s->n;
    for (int i = 0; i < count; i++) c[i] = bench_new((size_t)(s->m * s->n), sizeof(float), threads);
    for (int round = -1; round < rounds; round++) {
        for (int i = 0; i < count; i++) {
            double found = NAN;

            g.c = c[i];
            if (s->type == GRAFT_F32 || modules[i].ops->supports(modules[i].state, s->type, why, sizeof why) >= 0)
                found = dense_rate(&modules[i], &g);
            if (round >= 0) rates[i][round] = found;
        }
    }
    printf("%-32s", s->name);
    for (int i = 0; i < count; i++) printf(" %8.1f", bench_median(rates[i], rounds));
    for (int i = 1; i < count && s->type == GRAFT_F32; i++)
        if (!(largest_difference(c[0], c[i], s->m * s->n) < 1e-3 * sqrt((double)s->k))) bench_die("results differ");
    printf("\n");
    fflush(stdout);
    for (int i = 0; i < count; i++) free(c[i]);
    free(a);
    free(b);
}

int main(int argc, char **argv)
{
    const int        threads = argc > 3 ? atoi(argv[1]) : 0, rounds = argc > 3 ? atoi(argv[2]) : 0;
    const graft_host host = {
        .size = sizeof host, .allocate = dense_allocate, .deallocate = dense_deallocate, .log = dense_log
    };
    struct dense_module modules[MODULES_MOST];
    const int           count = argc - 3;

    if (threads < 1 || rounds < 1 || rounds > ROUNDS_MOST || count > MODULES_MOST)
        bench_die("usage: bench_dense THREADS ROUNDS MODULE.so... (%d rounds, %d modules at most)", ROUNDS_MOST,
                  MODULES_MOST);
    printf("%-32s", "GFLOP/s");
    for (int i = 0; i < count; i++) {
        const char *name = strstr(argv[3 + i], "graft_dense_");

        modules[i] = load_dense(&host, argv[3 + i]);
        printf(" %8.8s", name != NULL ? name + strlen("graft_dense_") : argv[3 + i]);
    }
    printf("\n");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        dense_measure(&shapes[i], modules, count, threads, rounds);
    for (int i = 0; i < count; i++) modules[i].ops->fini(modules[i].state);
    return 0;
}
