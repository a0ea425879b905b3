/* Judges a dense module by its contract: products of floats, bfloat16 and doubles are compared with sums in a wider
 * type.
 * SPDX-License-Identifier: Apache-2.0 */
#include "judge.h"

#include "graft_module.h"
#include "harness/strict_host.h"
#include "harness/tap.h"

#include <dlfcn.h>
#include <math.h>

struct shape {
    int64_t m, n, k;
};

/* A product whose matrices have gaps between rows, and its expected result. */
struct gemm_product {
    graft_gemm g;
    void      *a, *b, *c, *before; /* matrices of floats or doubles, and the contents of C before the product */
    double    *expected, *allowed; /* [m x n] expected result, and allowed error */
};

enum { GAP = 3 };

static uint32_t random_state = 1;

/* Draw a random number between -1 and 1. */
static float random_number(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (float)(int32_t)random_state * 0x1p-31f;
}

static size_t gemm_element_bytes(graft_dtype type)
{
    return type == GRAFT_F64 ? sizeof(double) : sizeof(float);
}

static double element_at(const void *x, int64_t i, graft_dtype type)
{
    return type == GRAFT_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static void set_element(void *x, int64_t i, graft_dtype type, double value)
{
    if (type == GRAFT_F64) ((double *)x)[i] = value;
    else ((float *)x)[i] = (float)value;
}

/* Make a random matrix. Doubles have digits that floats cannot represent. */
static void *random_matrix(int64_t elements, graft_dtype type)
{
    void *made = malloc((size_t)(elements + 1) * gemm_element_bytes(type));

    for (int64_t i = 0; i < elements; i++)
        set_element(made, i, type, (double)random_number() + 0x1p-32 * (double)(i % 97));
    return made;
}

/* Round to the eight significant bits of bfloat16, ties to even. */
static double round_to(double value, graft_dtype type)
{
    int exponent;

    if (type != GRAFT_BF16 || value == 0) return value;
    frexp(value, &exponent);
    return ldexp(nearbyint(ldexp(value, 8 - exponent)), exponent - 8);
}

/* The matrix op(X) [rows x depth], rounded. With `across` its rows are the columns of the stored matrix. */
static double *rounded(const void *x, int64_t stride, int across, int64_t rows, int64_t depth, graft_dtype type)
{
    double *made = malloc((size_t)(rows * depth + 1) * sizeof *made);

    for (int64_t i = 0; i < rows; i++) {
        for (int64_t e = 0; e < depth; e++)
            made[i * depth + e] = round_to(element_at(x, across ? e * stride + i : i * stride + e, type), type);
    }
    return made;
}

static void dense_expect(struct gemm_product *p)
{
    const graft_gemm *g = &p->g;
    double           *a = rounded(p->a, g->lda, g->transpose_a, g->m, g->k, g->type);
    double           *b = rounded(p->b, g->ldb, !g->transpose_b, g->n, g->k, g->type);

    for (int64_t i = 0; i < g->m; i++) {
        for (int64_t j = 0; j < g->n; j++) {
            const double old = g->beta != 0 ? (double)g->beta * element_at(p->before, i * g->ldc + j, g->type) : 0;
            long double  sum = 0;
            double       absolute = 0;

            for (int64_t e = 0; e < g->k; e++) {
                const double term = a[i * g->k + e] * b[j * g->k + e];
                sum += (long double)a[i * g->k + e] * b[j * g->k + e];
                absolute += fabs(term);
            }
            p->expected[i * g->n + j] = (double)(g->alpha * sum + old);
            p->allowed[i * g->n + j] = (g->type == GRAFT_F64 ? 2e-15 : 1e-6) * (absolute + fabs(old)) + 1e-30;
        }
    }
    free(a);
    free(b);
}

static void dense_product_init(struct gemm_product *p, struct shape s, int form, graft_dtype type)
{
    const int     ta = form & 1, tb = form >> 1 & 1;
    const int64_t lda = (ta ? s.m : s.k) + GAP, ldb = (tb ? s.k : s.n) + GAP, ldc = s.n + GAP;

    p->a = random_matrix((ta ? s.k : s.m) * lda, type);
    p->b = random_matrix((tb ? s.n : s.k) * ldb, type);
    p->c = random_matrix(s.m * ldc, type);
    p->before = malloc((size_t)(s.m * ldc + 1) * gemm_element_bytes(type));
    memcpy(p->before, p->c, (size_t)(s.m * ldc) * gemm_element_bytes(type));
    p->expected = malloc((size_t)(s.m * s.n + 1) * sizeof(double));
    p->allowed = malloc((size_t)(s.m * s.n + 1) * sizeof(double));
    p->g = (graft_gemm){ .size = sizeof p->g,
                         .threads = 1,
                         .transpose_a = ta,
                         .transpose_b = tb,
                         .m = s.m,
                         .n = s.n,
                         .k = s.k,
                         .alpha = 1,
                         .beta = (float)(form >> 2 & 1),
                         .a = p->a,
                         .lda = lda,
                         .b = p->b,
                         .ldb = ldb,
                         .c = p->c,
                         .ldc = ldc,
                         .type = type };
    dense_expect(p);
}

static void gemm_product_fini(struct gemm_product *p)
{
    free(p->a);
    free(p->b);
    free(p->c);
    free(p->before);
    free(p->expected);
    free(p->allowed);
}

/* Count the wrong elements after scaling by a factor, and the elements of gaps that were written. */
static int64_t wrong(const struct gemm_product *p, double factor)
{
    int64_t count = 0;

    for (int64_t i = 0; i < p->g.m; i++) {
        for (int64_t j = 0; j < p->g.ldc; j++) {
            const double c = element_at(p->c, i * p->g.ldc + j, p->g.type);

            if (j >= p->g.n) count += c != element_at(p->before, i * p->g.ldc + j, p->g.type);
            else count += !(fabs(c - factor * p->expected[i * p->g.n + j]) <= factor * p->allowed[i * p->g.n + j]);
        }
    }
    return count;
}

static void twice(void *arg, int64_t begin, int64_t end)
{
    const struct gemm_product *p = arg;

    for (int64_t i = begin; i < end; i++) {
        for (int64_t j = 0; j < p->g.n; j++)
            set_element(p->c, i * p->g.ldc + j, p->g.type, 2 * element_at(p->c, i * p->g.ldc + j, p->g.type));
    }
}

/* Try one shape in one form: any number of threads must give bitwise identical results, and rows_done must report every
 * row once, when it is final. */
static int dense_check(const graft_dense_ops *ops, void *state, struct shape s, int form, graft_dtype type)
{
    struct gemm_product p;
    graft_error         error = GRAFT_INIT(graft_error);
    const size_t        bytes = (size_t)(s.m * (s.n + GAP)) * gemm_element_bytes(type);
    void               *first = malloc(bytes + 1);
    int                 good = 1;

    dense_product_init(&p, s, form, type);
    for (int threads = 1; threads <= 3 && good; threads++) {
        memcpy(p.c, p.before, bytes);
        p.g.threads = threads;
        good = ops->gemm(state, &p.g, &error) == GRAFT_OK && wrong(&p, 1) == 0;
        if (threads == 1) memcpy(first, p.c, bytes);
        good = good && memcmp(first, p.c, bytes) == 0;
        memcpy(p.c, p.before, bytes);
        p.g.rows_done = twice;
        p.g.rows_arg = &p;
        good = good && ops->gemm(state, &p.g, &error) == GRAFT_OK && wrong(&p, 2) == 0;
        p.g.rows_done = NULL;
        if (!good)
            diag("%lld x %lld x %lld, form %d, %d threads: %lld wrong; %s", (long long)s.m, (long long)s.n,
                 (long long)s.k, form, threads, (long long)wrong(&p, 1), error.message);
    }
    gemm_product_fini(&p);
    free(first);
    return good;
}

static const char *type_name(graft_dtype type)
{
    return type == GRAFT_F64 ? "double" : type == GRAFT_BF16 ? "bfloat16" : "float";
}

static void check_type(const graft_dense_ops *ops, void *state, const char *name, graft_dtype type)
{
    static const struct shape shapes[] = {
        { 1, 1, 1 },       { 5, 3, 2 },      { 512, 16, 128 },  { 700, 33, 100 }, { 1030, 47, 70 },  { 64, 1, 513 },
        { 600, 20, 1100 }, { 0, 4, 4 },      { 4, 0, 4 },       { 7, 5, 0 },      { 17, 12, 20000 }, { 513, 3, 9000 },
        { 3, 300, 511 },   { 33, 17, 4096 }, { 40, 24, 70001 }, { 5, 2100, 600 }, { 6, 1030, 8300 },
    };

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int good = 1;

        for (int form = 0; form < 8; form++) good &= dense_check(ops, state, shapes[i], form, type);
        ok(good, "%s, %s: %lld x %lld x %lld, all forms", name, type_name(type), (long long)shapes[i].m,
           (long long)shapes[i].n, (long long)shapes[i].k);
    }
}

/* Check the weight gradient of wide layers. Only a few of its elements are computed here. The memory that the module
 * keeps must also be within the bound of graft_train.h for two threads. */
static void dense_check_large(const graft_dense_ops *ops, void *state, const struct strict_host *host, graft_dtype type)
{
    const int64_t m = 1000, n = 1100, k = 20500, bound = (16 + (type == GRAFT_BF16 ? 2 * 4 : 0)) * 1024 * 1024 + 65536;
    void         *a = random_matrix(k * m, type), *b = random_matrix(k * n, type), *c = random_matrix(m * n, type);
    const graft_gemm g = { .size = sizeof g,
                           .threads = 2,
                           .transpose_a = 1,
                           .m = m,
                           .n = n,
                           .k = k,
                           .alpha = 1,
                           .a = a,
                           .lda = m,
                           .b = b,
                           .ldb = n,
                           .c = c,
                           .ldc = n,
                           .type = type };
    graft_error      error = GRAFT_INIT(graft_error);
    const int32_t    rc = ops->gemm(state, &g, &error);
    int              wrong = 0;

    for (int64_t i = 0; i < 60; i++) {
        const int64_t row = i * 7919 % m, column = i * 104729 % n;
        double        sum = 0, absolute = 0;

        for (int64_t e = 0; e < k; e++) {
            const double term =
                round_to(element_at(a, e * m + row, type), type) * round_to(element_at(b, e * n + column, type), type);

            sum += term;
            absolute += fabs(term);
        }
        wrong += !(fabs(element_at(c, row * n + column, type) - sum) <= (type == GRAFT_F64 ? 1e-14 : 1e-6) * absolute);
    }
    ok(rc == GRAFT_OK && wrong == 0, "%lld x %lld x %lld: %d wrong", (long long)m, (long long)n, (long long)k, wrong);
    ok(host->live_bytes <= bound, "what is kept of it, %.1f MB, is bounded", (double)host->live_bytes * 1e-6);
    free(a);
    free(b);
    free(c);
}

/* Check more shapes than the number for which a module keeps generated code. */
static void check_many_shapes(const graft_dense_ops *ops, void *state, const char *name, graft_dtype type)
{
    int good = 1;

    for (int64_t m = 1; m <= 150; m++) good &= dense_check(ops, state, (struct shape){ m, 4, 6 }, (int)m & 7, type);
    ok(good, "%s: many shapes one after the other", name);
}

static void dense_check_refusal(const graft_dense_ops *ops, void *state, const char *name)
{
    struct gemm_product p;
    graft_error         error = GRAFT_INIT(graft_error);
    char                why[200] = "";

    ok(ops->supports(state, GRAFT_I32, why, sizeof why) == GRAFT_ERR_UNSUPPORTED && why[0] != '\0',
       "%s: integers are refused: %s", name, why);
    if (ops->supports(state, GRAFT_BF16, why, sizeof why) != GRAFT_OK) return;
    dense_product_init(&p, (struct shape){ 4, 4, 4 }, 0, GRAFT_BF16);
    p.g.alpha = 0.5f;
    ok(ops->gemm(state, &p.g, &error) == GRAFT_ERR_UNSUPPORTED && memcmp(p.c, p.before, 7 * sizeof(float)) == 0,
       "%s: alpha of a half is refused for bfloat16: %s", name, error.message);
    gemm_product_fini(&p);
}

void judge_dense(const char *name)
{
    char                     *path = realpath(name, NULL);
    void                     *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    const graft_module_table *table = NULL;
    graft_module_fn           entry = NULL;
    struct strict_host        host;
    graft_error               error = GRAFT_INIT(graft_error);
    void                     *symbol, *state = NULL;
    char                      why[200] = "";

    free(path);
    if (!ok(library != NULL, "%s opens", name)) return;
    symbol = dlsym(library, "graft_module");
    memcpy(&entry, &symbol, sizeof entry);
    if (!ok(entry(1, 1, &table, &error) == GRAFT_OK && table->dense != NULL, "it is a dense module")) return;
    strict_host_init(&host);
    if (!ok(table->dense->init(&host.table, &state, &error) == GRAFT_OK, "%s begins", table->name)) return;
    check_type(table->dense, state, table->name, GRAFT_F32);
    dense_check_large(table->dense, state, &host, GRAFT_F32);
    dense_check_refusal(table->dense, state, table->name);
    if (table->dense->supports(state, GRAFT_BF16, why, sizeof why) == GRAFT_OK) {
        check_type(table->dense, state, table->name, GRAFT_BF16);
        dense_check_large(table->dense, state, &host, GRAFT_BF16);
        check_many_shapes(table->dense, state, table->name, GRAFT_BF16);
    } else {
        skip(3, "%s does not multiply bfloat16 here: %s", table->name, why);
    }
    if (table->dense->supports(state, GRAFT_F64, why, sizeof why) == GRAFT_OK) {
        check_type(table->dense, state, table->name, GRAFT_F64);
        dense_check_large(table->dense, state, &host, GRAFT_F64);
    } else {
        skip(2, "%s does not multiply doubles: %s", table->name, why);
    }
    table->dense->fini(state);
    ok(host.fault == NULL && host.live_blocks == 0, "%s gave all memory back", table->name);
}
