/* Checks graft.sample/1 with neighbour sampling: batches against their definition, the distribution of the draws, any
 * number of threads, and arguments that must be refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft.h"
#include "graft_load.h"
#include "harness/effort.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const graft_api        *api;
static const graft_mxm_api    *mxm;
static const graft_sample_api *samples;
static graft_error             error;

/* A graph with rows of all lengths, and a sampler of it. */
struct setting {
    struct sample_csr a;
    graft_matrix     *matrix;
    graft_sampler    *sampler;
    int64_t          *seeds, n_seeds;
};

static void set_option(const char *key, const char *value)
{
    if (api->set(api->context, key, value, &error) == GRAFT_OK) return;
    printf("Bail out! %s=%s: %s\n", key, value, error.message);
    exit(1);
}

/* Row v of n has v * longest / n entries, each with a value from 0 to 3. Columns may repeat. */
static void make_long_rows(struct setting *s, int64_t n, int64_t longest, graft_dtype index_type)
{
    struct sample sample = { 17 };

    memset(s, 0, sizeof *s);
    s->a.row_ptr = calloc((size_t)n + 1, sizeof *s->a.row_ptr);
    for (int64_t v = 0; v < n; v++) s->a.row_ptr[v + 1] = s->a.row_ptr[v] + v * longest / n;
    s->a.col_idx = calloc((size_t)s->a.row_ptr[n] + 1, 8);
    s->a.values = calloc((size_t)s->a.row_ptr[n] + 1, sizeof(float));
    for (int64_t e = 0; e < s->a.row_ptr[n]; e++) {
        sample_put(s->a.col_idx, index_type, e, (double)sample_below(&sample, n));
        ((float *)s->a.values)[e] = (float)sample_below(&sample, 4);
    }
    s->a.csr = GRAFT_INIT(graft_csr);
    s->a.csr.index_type = index_type;
    s->a.csr.value_type = GRAFT_F32;
    s->a.csr.n_rows = s->a.csr.n_cols = n;
    s->a.csr.row_ptr = s->a.row_ptr;
    s->a.csr.col_idx = s->a.col_idx;
    s->a.csr.values = s->a.values;
    if (mxm->matrix_create(api->context, &s->a.csr, 0, &s->matrix, &error) != GRAFT_OK) exit(1);
}

static void make_sampler(struct setting *s, int64_t n_seeds)
{
    const int64_t n = s->a.csr.n_rows;

    s->n_seeds = n_seeds;
    s->seeds = calloc((size_t)n_seeds + 1, sizeof *s->seeds);
    for (int64_t i = 0; i < n_seeds; i++) s->seeds[i] = n - 1 - i * (n / n_seeds);
    if (samples->create(api->context, s->matrix, s->seeds, n_seeds, &s->sampler, &error) == GRAFT_OK) return;
    printf("Bail out! %s\n", error.message);
    exit(1);
}

static void setting_fini(struct setting *s)
{
    samples->destroy(s->sampler);
    mxm->matrix_destroy(s->matrix);
    free(s->a.row_ptr);
    free(s->a.col_idx);
    free(s->a.values);
    free(s->seeds);
}

static int64_t neighbour_of(const struct setting *s, int64_t e)
{
    return s->a.csr.index_type == GRAFT_I32 ? ((const int32_t *)s->a.col_idx)[e] : ((const int64_t *)s->a.col_idx)[e];
}

/* How many neighbours row v should get. */
static int64_t expected_count(const struct setting *s, int64_t v, int64_t fanout, int weights, int replace)
{
    int64_t drawable = 0;

    for (int64_t e = s->a.row_ptr[v]; e < s->a.row_ptr[v + 1]; e++) {
        const int64_t u = neighbour_of(s, e);

        if (fanout < 0 || weights == 0) drawable++;
        else if (weights == 1) drawable += ((const float *)s->a.values)[e] > 0;
        else drawable += s->a.row_ptr[u + 1] > s->a.row_ptr[u];
    }
    if (fanout < 0) return drawable;
    if (replace) return drawable > 0 ? fanout : 0;
    return drawable < fanout ? drawable : fanout;
}

/* Check one block. The result is NULL or an error in words. */
static const char *check_one_block(const struct setting *s, const graft_sample_batch *batch,
                                   const graft_sample_block *b, int64_t fanout, int weights, int replace)
{
    if (b->row_ptr[0] != 0 || b->row_ptr[b->n_dst] != b->n_edges) return "row pointers";
    for (int64_t i = 0; i < b->n_dst; i++) {
        const int64_t v = batch->vertex[i];

        if (b->row_ptr[i + 1] - b->row_ptr[i] != expected_count(s, v, fanout, weights, replace)) return "a count";
        for (int64_t e = b->row_ptr[i]; e < b->row_ptr[i + 1]; e++) {
            if (b->entry[e] < s->a.row_ptr[v] || b->entry[e] >= s->a.row_ptr[v + 1]) return "an entry of another row";
            if (b->col_idx[e] < 0 || b->col_idx[e] >= b->n_src) return "a column out of range";
            if (batch->vertex[b->col_idx[e]] != neighbour_of(s, b->entry[e])) return "a wrong neighbour";
            if (weights == 1 && fanout >= 0 && !(((const float *)s->a.values)[b->entry[e]] > 0)) return "weight 0";
            for (int64_t f = b->row_ptr[i]; !replace && f < e; f++)
                if (b->entry[f] == b->entry[e]) return "an edge twice";
        }
    }
    return NULL;
}

/* Vertices must be numbered in the order in which edges reach them, each once. */
static const char *check_numbers(const struct setting *s, const graft_sample_batch *batch)
{
    int64_t    *number = malloc((size_t)s->a.csr.n_rows * sizeof *number), next = batch->n_seeds;
    const char *fault = NULL;

    for (int64_t v = 0; v < s->a.csr.n_rows; v++) number[v] = -1;
    for (int64_t i = 0; i < batch->n_vertices; i++) {
        if (number[batch->vertex[i]] != -1) fault = "a vertex twice";
        number[batch->vertex[i]] = i;
    }
    for (int32_t l = batch->n_layers - 1; l >= 0 && fault == NULL; l--) {
        graft_sample_block b = GRAFT_INIT(graft_sample_block);

        if (samples->block(s->sampler, l, &b, &error) != GRAFT_OK) fault = error.message;
        else if (b.n_dst != next) fault = "destinations are not the sources of the block behind";
        for (int64_t e = 0; fault == NULL && e < b.n_edges; e++) {
            if (b.col_idx[e] > next) fault = "numbers are not in the order of edges";
            next += b.col_idx[e] == next;
        }
        if (fault == NULL && b.n_src != next) fault = "sources";
    }
    if (fault == NULL && next != batch->n_vertices) fault = "the number of vertices";
    free(number);
    return fault;
}

static const char *check_blocks(const struct setting *s, const graft_sample_batch *batch, const int64_t *fanout,
                                int weights, int replace)
{
    const char *fault = check_numbers(s, batch);
    int64_t     edges = 0;

    for (int32_t l = 0; l < batch->n_layers && fault == NULL; l++) {
        graft_sample_block b = GRAFT_INIT(graft_sample_block);

        if (samples->block(s->sampler, l, &b, &error) != GRAFT_OK) return error.message;
        fault = check_one_block(s, batch, &b, fanout[l], weights, replace);
        edges += b.n_edges;
    }
    return fault == NULL && edges != batch->n_edges ? "the number of edges" : fault;
}

/* A hash of everything in a batch. */
static uint64_t digest_of(const struct setting *s, const graft_sample_batch *batch)
{
    uint64_t digest = (uint64_t)batch->n_vertices;

    for (int64_t i = 0; i < batch->n_vertices; i++) digest = digest * 1099511628211u ^ (uint64_t)batch->vertex[i];
    for (int32_t l = 0; l < batch->n_layers; l++) {
        graft_sample_block b = GRAFT_INIT(graft_sample_block);

        samples->block(s->sampler, l, &b, &error);
        for (int64_t i = 0; i <= b.n_dst; i++) digest = digest * 1099511628211u ^ (uint64_t)b.row_ptr[i];
        for (int64_t e = 0; e < b.n_edges; e++)
            digest = digest * 1099511628211u ^ (uint64_t)b.entry[e] ^ (uint64_t)b.col_idx[e] << 32;
    }
    return digest;
}

/* Read an epoch from batch `first` on. The hash of each batch is stored, and each seed must occur once. */
static int64_t read_epoch(struct setting *s, int64_t epoch, int64_t first, uint64_t *digests)
{
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    int64_t            n_batches = 0, count = 0;

    if (samples->begin(s->sampler, epoch, first, &n_batches, &error) != GRAFT_OK) return -1;
    while (samples->next(s->sampler, &batch, &error) == GRAFT_OK) {
        if (batch.index != first + count || batch.epoch != epoch) return -1;
        digests[batch.index] = digest_of(s, &batch);
        count++;
    }
    return error.code == GRAFT_ERR_NOT_FOUND && first + count == n_batches ? n_batches : -1;
}

static void test_definition(void)
{
    static const char *const weights[] = { "uniform", "edge", "degree" }, *const fanouts[] = { "3,60,-1", "7",
                                                                                               "0,2,1" };
    static const int64_t fanout[][3] = { { 3, 60, -1 }, { 7, 7, 7 }, { 0, 2, 1 } };

    set_option("layers", "3");
    for (int which = 0; which < 36; which += case_step()) {
        struct setting     s;
        graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
        const char        *fault = NULL;
        int64_t            n = 0, many = which % 2 ? 40 : 301;

        set_option("batch_size", which % 2 ? "40" : "100");
        set_option("fanout", fanouts[which / 2 % 3]);
        set_option("sample.weights", weights[which / 6 % 3]);
        set_option("sampler", which / 18 ? "neighbour:replace" : "neighbour");
        make_long_rows(&s, which % 2 ? 100000 : 1500, which % 2 ? 30 : 200, which % 3 ? GRAFT_I32 : GRAFT_I64);
        make_sampler(&s, many);
        while (fault == NULL && samples->next(s.sampler, &batch, &error) == GRAFT_OK) {
            fault = check_blocks(&s, &batch, fanout[which / 2 % 3], which / 6 % 3, which / 18);
            n += batch.n_seeds;
        }
        ok(fault == NULL && n == many, "fanout %s, %s, %s replacement, %s: blocks satisfy their definition (%s)",
           fanouts[which / 2 % 3], weights[which / 6 % 3], which / 18 ? "with" : "without",
           which % 2 ? "hash table" : "array", fault != NULL ? fault : "all seeds");
        setting_fini(&s);
    }
    set_option("sample.weights", "uniform");
    set_option("sampler", "neighbour");
}

/* Threads of the host that make batches ahead until they are stopped. */
struct helper {
    graft_sampler  *sampler;
    _Atomic int    *stop;
    _Atomic int64_t made;
    pthread_t       thread;
};

static void *help(void *arg)
{
    struct helper *helper = arg;

    while (!*helper->stop) {
        int32_t made = 0;
        if (samples->prefetch(helper->sampler, &made, NULL) != GRAFT_OK) return arg;
        helper->made += made;
        if (!made) sched_yield();
    }
    return NULL;
}

static void test_any_threads(void)
{
    static const char *const threads[] = { "1", "2", "3", "5", "2", "4" }, *const ahead[] = { "1", "0", "1",
                                                                                              "3", "4", "9" };
    uint64_t       expected[64], got[64];
    struct setting s;
    int64_t        n_expected = 0, prefetched = 0;

    set_option("fanout", "5,10,15");
    set_option("batch_size", "100");
    for (int hashed = 0; hashed < 2; hashed++) {
        for (int which = 0; which < 8; which++) {
            const int     helpers = which < 6 ? 0 : which - 5;
            struct helper helper[2];
            _Atomic int   stop = 0;
            void         *failed = NULL;
            int64_t       n, again;

            set_option("threads", threads[which % 6]);
            set_option("sample.ahead", which < 6 ? ahead[which] : "6");
            make_long_rows(&s, hashed ? 2000000 : 20000, hashed ? 12 : 90, GRAFT_I32);
            make_sampler(&s, 1850);
            for (int h = 0; h < helpers; h++) {
                helper[h] = (struct helper){ .sampler = s.sampler, .stop = &stop };
                pthread_create(&helper[h].thread, NULL, help, &helper[h]);
            }
            n = read_epoch(&s, 3, 0, which == 0 ? expected : got);
            if (which == 0) n_expected = n;
            again = memcmp(expected, which == 0 ? expected : got, (size_t)n_expected * sizeof *got);
            if (n == 19) memset(got, 0, sizeof got);
            n = n == 19 ? read_epoch(&s, 3, 7, got) : -1;
            stop = 1;
            for (int h = 0; h < helpers; h++) {
                void *result;
                pthread_join(helper[h].thread, &result);
                if (result != NULL) failed = result;
                prefetched += helper[h].made;
            }
            ok(n == 19 && again == 0 && memcmp(expected + 7, got + 7, 12 * sizeof *got) == 0 && failed == NULL,
               "%s, %s threads, %d threads of the host: the same 19 batches, also from batch 8 on",
               hashed ? "hash table" : "array", threads[which % 6], helpers);
            setting_fini(&s);
        }
    }
    ok(prefetched > 0, "threads of the host have made %lld batches", (long long)prefetched);
    set_option("threads", "0");
    set_option("sample.ahead", "0");
}

static void test_epochs(void)
{
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    struct setting     s;
    int64_t            n_batches, same = 0, n = 0;
    uint8_t            seen[1000] = { 0 };
    int64_t            order[2][333];

    set_option("fanout", "2");
    set_option("batch_size", "50");
    make_long_rows(&s, 1000, 20, GRAFT_I32);
    make_sampler(&s, 333);
    for (int epoch = 0; epoch < 2; epoch++) {
        int64_t at = 0;

        samples->begin(s.sampler, epoch, 0, &n_batches, &error);
        while (samples->next(s.sampler, &batch, &error) == GRAFT_OK)
            for (int64_t i = 0; i < batch.n_seeds; i++) order[epoch][at++] = batch.vertex[i];
        ok(at == 333 && n_batches == 7, "epoch %d has 7 batches of 333 seeds", epoch);
    }
    for (int64_t i = 0; i < 333; i++) {
        same += order[0][i] == order[1][i];
        n += !seen[order[0][i]]++;
    }
    ok(n == 333, "each seed is in one batch of an epoch");
    ok(same < 12, "seeds have another order in each epoch (%lld have the same position)", (long long)same);
    samples->destroy(s.sampler);
    free(s.seeds);
    set_option("drop_last", "yes"); /* no sampler exists now, so the option can be set */
    make_sampler(&s, 333);
    samples->begin(s.sampler, 0, 0, &n_batches, &error);
    for (n = 0; samples->next(s.sampler, &batch, &error) == GRAFT_OK; n++)
        if (batch.n_seeds != 50) break;
    ok(n == 6 && n_batches == 6, "with drop_last an epoch has 6 batches of 50 seeds");
    setting_fini(&s);
    set_option("drop_last", "no");
}

static void test_all_neighbours(void)
{
    static const int64_t all[] = { -1, -1, -1 }, query[] = { 7, 999, 3, 500 };
    graft_sample_batch   batch = GRAFT_INIT(graft_sample_batch), next = GRAFT_INIT(graft_sample_batch);
    struct setting       s;
    const char          *fault = NULL;
    uint64_t             expected[7], got[7];

    make_long_rows(&s, 1000, 20, GRAFT_I32);
    make_sampler(&s, 333);
    read_epoch(&s, 0, 0, expected);
    samples->begin(s.sampler, 0, 0, NULL, &error);
    for (int i = 0; i < 7; i++) {
        if (samples->sample(s.sampler, query, 4, GRAFT_SAMPLE_ALL, &batch, &error) != GRAFT_OK) fault = error.message;
        if (fault == NULL) fault = check_blocks(&s, &batch, all, 0, 0);
        if (batch.n_seeds != 4 || batch.index != -1 || memcmp(batch.vertex, query, sizeof query) != 0) fault = "seeds";
        if (samples->next(s.sampler, &next, &error) == GRAFT_OK) got[i] = digest_of(&s, &next);
    }
    ok(fault == NULL, "sample() returns all neighbours: %s", fault != NULL ? fault : "as defined");
    ok(memcmp(expected, got, sizeof got) == 0, "after sample() the epoch continues with its next batch");
    setting_fini(&s);
}

/* -- distributions ------------------------------------------------------------------------------------------------ */

/* Sample a star: vertex 0 with d neighbours of these values. The result is how often each entry, or pair of entries,
 * was drawn. */
static void draw_star(int64_t d, const float *values, int64_t fanout, int64_t times, int64_t *entry, int64_t *pair)
{
    int64_t           *row_ptr = calloc((size_t)d + 2, sizeof *row_ptr), seed = 0;
    int32_t           *col = calloc((size_t)d + 1, sizeof *col);
    graft_csr          csr = GRAFT_INIT(graft_csr);
    graft_matrix      *matrix = NULL;
    graft_sampler     *sampler = NULL;
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    graft_sample_block block = GRAFT_INIT(graft_sample_block);
    char               text[24];

    for (int64_t v = 1; v <= d + 1; v++) row_ptr[v] = d;
    for (int64_t e = 0; e < d; e++) col[e] = (int32_t)e + 1;
    csr.index_type = GRAFT_I32;
    csr.value_type = values != NULL ? GRAFT_F32 : 0;
    csr.n_rows = csr.n_cols = d + 1;
    csr.row_ptr = row_ptr;
    csr.col_idx = col;
    csr.values = values;
    snprintf(text, sizeof text, "%lld", (long long)fanout);
    set_option("fanout", text);
    if (mxm->matrix_create(api->context, &csr, 0, &matrix, &error) != GRAFT_OK ||
        samples->create(api->context, matrix, &seed, 1, &sampler, &error) != GRAFT_OK) {
        printf("Bail out! %s\n", error.message);
        exit(1);
    }
    for (int64_t t = 0; t < times; t++) {
        samples->begin(sampler, t, 0, NULL, &error);
        samples->next(sampler, &batch, &error);
        samples->block(sampler, 0, &block, &error);
        for (int64_t e = 0; e < block.n_edges; e++) entry[block.entry[e]]++;
        if (pair != NULL)
            pair[block.entry[0] < block.entry[1] ? block.entry[0] * d + block.entry[1]
                                                 : block.entry[1] * d + block.entry[0]]++;
    }
    samples->destroy(sampler);
    mxm->matrix_destroy(matrix);
    free(row_ptr);
    free(col);
}

/* Chi-squared of counts against probabilities, as the distance from its mean n - 1 in standard deviations, where the
 * variance is 2 (n - 1). For draws without replacement of a share `drawn` of all at a time the counts vary less, by the
 * factor 1 - drawn. */
static double chi_squared(const int64_t *count, const double *probability, int64_t n, double total, double drawn)
{
    double  sum = 0;
    int64_t used = 0;

    for (int64_t i = 0; i < n; i++) {
        const double expected = total * probability[i];

        if (expected == 0 && count[i] > 0) return INFINITY;
        if (expected == 0) continue;
        sum += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
        used++;
    }
    sum /= 1 - drawn;
    return (sum - (double)(used - 1)) / sqrt(2 * (double)(used - 1));
}

static void test_distributions(void)
{
    static const float weights[] = { 1, 2, 0, 4, 0.5f, 2.5f, 10 };
    int64_t            count[1000] = { 0 }, pair[100] = { 0 };
    double             even[1000], p[100] = { 0 }, deviation;

    set_option("layers", "1");
    set_option("batch_size", "0");
    for (int i = 0; i < 1000; i++) even[i] = 1.0 / 1000;
    draw_star(1000, NULL, 10, 100000, count, NULL);
    deviation = chi_squared(count, even, 1000, 1e6, 0.01);
    ok(fabs(deviation) < 4.5, "draws of 10 of 1000 vertices, a million times, are uniform (%.2f)", deviation);
    memset(count, 0, sizeof count);
    draw_star(200, NULL, 100, 20000, count, NULL);
    for (int i = 0; i < 200; i++) even[i] = 1.0 / 200;
    deviation = chi_squared(count, even, 200, 2e6, 0.5);
    ok(fabs(deviation) < 4.5, "draws of 100 of 200 vertices are uniform (%.2f)", deviation);
    memset(count, 0, sizeof count);
    draw_star(10, NULL, 2, 200000, count, pair);
    for (int i = 0; i < 10; i++)
        for (int j = i + 1; j < 10; j++) p[10 * i + j] = 1.0 / 45;
    deviation = chi_squared(pair, p, 100, 2e5, 0);
    ok(fabs(deviation) < 4.5, "draws of 2 of 10 vertices have all pairs with the same probability (%.2f)", deviation);

    set_option("sampler", "neighbour:replace");
    memset(count, 0, sizeof count);
    draw_star(200, NULL, 50, 20000, count, NULL);
    deviation = chi_squared(count, even, 200, 1e6, 0);
    ok(fabs(deviation) < 4.5, "draws with replacement are uniform (%.2f)", deviation);
    set_option("sample.weights", "edge");
    memset(count, 0, sizeof count);
    for (int i = 0; i < 7; i++) p[i] = weights[i] / 20.0;
    draw_star(7, weights, 10, 100000, count, NULL);
    deviation = chi_squared(count, p, 7, 1e6, 0);
    ok(fabs(deviation) < 4.5 && count[2] == 0,
       "draws with replacement by edge weights are in proportion to the weights (%.2f)", deviation);

    /* Without replacement the pair (i, j) has probability w_i/W w_j/(W-w_i) + w_j/W w_i/(W-w_j). */
    set_option("sampler", "neighbour");
    memset(count, 0, sizeof count);
    memset(pair, 0, sizeof pair);
    memset(p, 0, sizeof p);
    draw_star(7, weights, 2, 300000, count, pair);
    for (int i = 0; i < 7; i++)
        for (int j = i + 1; j < 7; j++)
            p[7 * i + j] = weights[i] / 20.0 * weights[j] / (20.0 - weights[i]) +
                           weights[j] / 20.0 * weights[i] / (20.0 - weights[j]);
    deviation = chi_squared(pair, p, 49, 3e5, 0);
    ok(fabs(deviation) < 4.5, "draws without replacement by edge weights are those of one draw after the other (%.2f)",
       deviation);
    set_option("sample.weights", "uniform");
}

/* -- what is refused ---------------------------------------------------------------------------------------------- */

static void sampler_refuses(int32_t rc, int32_t expected, const char *part, const char *what)
{
    ok(rc == expected && strstr(error.message, part) != NULL, "%s: %s", what, error.message);
}

static int32_t create_sampler(struct setting *s, const int64_t *seeds, int64_t n)
{
    s->sampler = NULL;
    return samples->create(api->context, s->matrix, seeds, n, &s->sampler, &error);
}

static void test_refusals(void)
{
    static const int64_t outside[] = { 3, 100 }, twice[] = { 3, 5, 3 }, good[] = { 3, 5, 7 };
    graft_sample_batch   batch = GRAFT_INIT(graft_sample_batch);
    graft_sample_block   block = GRAFT_INIT(graft_sample_block);
    struct setting       s;
    int32_t              made;
    char                 text[600];

    set_option("layers", "2");
    set_option("fanout", "3,4");
    make_long_rows(&s, 100, 10, GRAFT_I32);
    sampler_refuses(create_sampler(&s, outside, 2), GRAFT_ERR_ARG, "seeds[1] is 100", "a seed out of range");
    sampler_refuses(create_sampler(&s, twice, 3), GRAFT_ERR_ARG, "seeds[2] is 3", "a seed twice");
    sampler_refuses(create_sampler(&s, NULL, 3), GRAFT_ERR_ARG, "null", "no seeds");
    sampler_refuses(samples->create(api->context, NULL, good, 3, &s.sampler, &error), GRAFT_ERR_ARG, "null",
                    "no graph");
    sampler_refuses(samples->create(api->context, s.matrix, good, 3, NULL, &error), GRAFT_ERR_ARG, "null", "no place");
    set_option("fanout", "1,2,3");
    sampler_refuses(create_sampler(&s, good, 3), GRAFT_ERR_OPTION, "3 numbers, but there are 2 layers", "fan-outs");
    set_option("fanout", "3");
    set_option("batch_size", "4");
    sampler_refuses(create_sampler(&s, good, 3), GRAFT_ERR_OPTION, "'batch_size' is 4, expected at most 3",
                    "a large batch");
    set_option("batch_size", "2");
    set_option("sample.weights", "edge");
    ((float *)s.a.values)[20] = -1;
    sampler_refuses(create_sampler(&s, good, 3), GRAFT_ERR_OPTION, "entry 20 of the graph is -1", "a negative weight");
    set_option("sample.weights", "uniform");
    sampler_refuses(api->set(api->context, "fanout", "-2", &error), GRAFT_ERR_OPTION, "-2", "fanout -2");
    if (!ok(create_sampler(&s, good, 3) == GRAFT_OK, "a sampler with legal options is created")) return;
    sampler_refuses(samples->block(s.sampler, 0, &block, &error), GRAFT_ERR_STATE, "next()", "a block of no batch");
    ok(samples->next(s.sampler, &batch, &error) == GRAFT_OK, "the sampler makes a batch");
    sampler_refuses(samples->block(s.sampler, 2, &block, &error), GRAFT_ERR_ARG, "layer is 2", "a layer too many");
    sampler_refuses(samples->begin(s.sampler, -1, 0, NULL, &error), GRAFT_ERR_ARG, "epoch is -1", "a negative epoch");
    sampler_refuses(samples->begin(s.sampler, 0, 3, NULL, &error), GRAFT_ERR_ARG, "2 batches",
                    "a first batch too many");
    sampler_refuses(samples->sample(s.sampler, twice, 3, 0, &batch, &error), GRAFT_ERR_ARG, "are both 3",
                    "a query twice");
    sampler_refuses(samples->sample(s.sampler, outside, 2, 0, &batch, &error), GRAFT_ERR_ARG, "is 100",
                    "a query outside");
    sampler_refuses(samples->sample(s.sampler, good, 3, 8, &batch, &error), GRAFT_ERR_ARG, "flags is 0x8",
                    "unknown flags");
    sampler_refuses(samples->prefetch(s.sampler, NULL, &error), GRAFT_ERR_ARG, "made is null",
                    "prefetch without result");
    ok(samples->explain(s.sampler, text, sizeof text, &error) == GRAFT_OK && strstr(text, " 2 of 2 seeds") != NULL,
       "explain() reports the number of batches");
    ok(samples->prefetch((graft_sampler *)s.matrix, &made, &error) == GRAFT_ERR_STATE,
       "prefetch() of a matrix is refused");
    setting_fini(&s);
}

int main(void)
{
    error = GRAFT_INIT(graft_error);
    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) != GRAFT_OK) {
        printf("Bail out! %s\n", error.message);
        return 1;
    }
    mxm = graft_interface(api, GRAFT_MXM_ID, sizeof *mxm);
    samples = graft_interface(api, GRAFT_SAMPLE_ID, sizeof *samples);
    if (!ok(mxm != NULL && samples != NULL, "the library has the interface for samplers")) return done();
    test_definition();
    test_any_threads();
    test_epochs();
    test_all_neighbours();
    if (effort_fewer() == 1) test_distributions();
    test_refusals();
    api->close(api->context);
    return done();
}
