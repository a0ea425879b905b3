/* Checks that the attention loops of gat for every instruction set of this processor give bitwise identical results,
 * and that dropout uses the documented random draws. That results are right is for test_gradient and
 * test_layer_options.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/dropout.h"
#include "graph/csr.h"
#include "harness/tap.h"
#include "model/gat_loops.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 41, COLS = 67, KEY = 99, THRESHOLD = 20000 };

/* The arrays of a layer. Each is exactly as long as needed, so that sanitizers find accesses beyond its end. */
struct layer {
    int64_t             heads, columns, entries;
    struct sample_csr   sparse;
    struct gr_attention arrays;
    float              *dz, *mean, *shares;
    double             *sums, *edge_sums;
    struct gr_gat       gat;
};

static float *random_floats(struct sample *sample, int64_t count)
{
    float *x = oracle_new(count, sizeof *x);

    for (int64_t i = 0; i < count; i++) x[i] = (float)sample_real(sample, -2, 2);
    return x;
}

/* Fill the arrays with the same numbers each time. */
static void layer_init(struct layer *l, int64_t heads, int64_t columns, int64_t edge_features, graft_dtype index_type)
{
    struct sample        sample = { 17 };
    struct gr_attention *a = &l->arrays;

    memset(l, 0, sizeof *l);
    sample_csr_init(&l->sparse, &sample, ROWS, COLS, index_type, 0, 0);
    l->heads = heads;
    l->columns = columns;
    l->entries = l->sparse.row_ptr[ROWS];
    a->projected = random_floats(&sample, COLS * heads * columns);
    a->alpha = random_floats(&sample, l->entries * heads);
    a->dropped = random_floats(&sample, l->entries * heads);
    a->alpha_gradient = random_floats(&sample, l->entries * heads);
    for (int end = 0; end < GR_ENDS; end++) {
        a->score[end] = random_floats(&sample, COLS * heads);
        a->score_gradient[end] = random_floats(&sample, COLS * heads);
        l->gat.vector[end] = random_floats(&sample, heads * columns);
    }
    l->dz = random_floats(&sample, COLS * heads * columns);
    l->mean = random_floats(&sample, COLS * columns);
    l->shares = random_floats(&sample, COLS * heads * columns);
    l->sums = oracle_new(GR_ENDS * heads * columns, sizeof *l->sums);
    l->gat.edge = random_floats(&sample, l->entries * edge_features);
    l->gat.edge_factor = random_floats(&sample, edge_features * heads);
    l->gat.edge_features = edge_features;
    l->edge_sums = oracle_new(edge_features * heads, sizeof *l->edge_sums);
    l->gat.arrays = *a;
    l->gat.csr = &l->sparse.csr;
    l->gat.heads = heads;
    l->gat.columns = columns;
    l->gat.key = KEY;
    l->gat.threshold = THRESHOLD;
}

static void layer_fini(struct layer *l)
{
    for (int end = 0; end < GR_ENDS; end++) {
        free(l->arrays.score[end]);
        free(l->arrays.score_gradient[end]);
        free((void *)(uintptr_t)l->gat.vector[end]);
    }
    free(l->arrays.projected);
    free(l->arrays.alpha);
    free(l->arrays.dropped);
    free(l->arrays.alpha_gradient);
    free(l->dz);
    free(l->mean);
    free(l->shares);
    free(l->sums);
    free(l->edge_sums);
    free((void *)(uintptr_t)l->gat.edge);
    free((void *)(uintptr_t)l->gat.edge_factor);
    sample_csr_fini(&l->sparse);
}

/* Run every loop once, over all but the first rows. */
static void run_loops(struct layer *l, enum gr_isa isa)
{
    const struct gr_gat_loops *loops = gr_model_gat_loops_for(isa);

    loops->vertex_scores(&l->gat, 2, COLS);
    loops->drop_gradients(&l->gat, 2, ROWS);
    loops->entry_gradients(&l->gat, 2, ROWS);
    loops->entry_scores(&l->gat, 2, ROWS);
    loops->drop(&l->gat, 2, ROWS);
    l->gat.to = l->dz;
    loops->add_score_gradients(&l->gat, 2, COLS);
    loops->vector_gradients(&l->gat, l->sums, 2, COLS);
    loops->edge_gradients(&l->gat, l->edge_sums, 2, ROWS);
    l->gat.from = l->arrays.projected;
    l->gat.to = l->mean;
    loops->average(&l->gat, 2, COLS);
    l->gat.from = l->mean;
    l->gat.to = l->shares;
    loops->average_gradients(&l->gat, 2, COLS);
}

static int same_bits(const void *x, const void *y, int64_t count, size_t size)
{
    return memcmp(x, y, (size_t)count * size) == 0;
}

/* The name of the first loop whose results differ, or NULL. */
static const char *compare_layers(const struct layer *x, const struct layer *y)
{
    const int64_t edges = x->entries * x->heads, seen = COLS * x->heads, wide = x->heads * x->columns;
    const size_t  f = sizeof(float);

    for (int end = 0; end < GR_ENDS; end++)
        if (!same_bits(x->arrays.score[end], y->arrays.score[end], seen, f)) return "vertex_scores";
    if (!same_bits(x->arrays.alpha, y->arrays.alpha, edges, f)) return "entry_scores";
    if (!same_bits(x->arrays.alpha_gradient, y->arrays.alpha_gradient, edges, f)) return "entry or drop gradients";
    if (!same_bits(x->arrays.dropped, y->arrays.dropped, edges, f)) return "drop";
    if (!same_bits(x->dz, y->dz, COLS * wide, f)) return "add_score_gradients";
    if (!same_bits(x->sums, y->sums, GR_ENDS * wide, sizeof *x->sums)) return "vector_gradients";
    if (!same_bits(x->edge_sums, y->edge_sums, x->gat.edge_features * x->heads, sizeof *x->edge_sums))
        return "edge_gradients";
    if (!same_bits(x->mean, y->mean, COLS * x->columns, f)) return "average";
    return same_bits(x->shares, y->shares, COLS * wide, f) ? NULL : "average_gradients";
}

/* Whether dropout keeps the entries that the generator keeps; one call draws for eight heads. */
static int drops_as_drawn(const struct layer *l)
{
    const double scale = gr_dropout_scale(THRESHOLD);

    for (int64_t row = 2; row < ROWS; row++) {
        for (int64_t i = l->sparse.row_ptr[row] * l->heads; i < l->sparse.row_ptr[row + 1] * l->heads; i++) {
            const int64_t  h = i % l->heads, u = gr_csr_column(&l->sparse.csr, i / l->heads);
            const unsigned kept = gr_dropout_kept(KEY, row, u * 8 + h / 8, THRESHOLD);
            const float    expected = kept >> h % 8 & 1 ? l->arrays.alpha[i] * (float)scale : 0;

            if (l->arrays.dropped[i] != expected) return 0;
        }
    }
    return 1;
}

/* Whether the loops of an instruction set can run here. Those for SVE are for registers of one size. */
static int runs(enum gr_isa isa)
{
    return isa < GR_ISA_SVE256 || isa == gr_processor_isa();
}

static void test_loops(int64_t heads, graft_dtype index_type)
{
    const int64_t columns[] = { 1, 7, 8, 13, 16, 32, 45 };
    const char   *words = NULL;
    int           drawn = 1;

    for (int i = 0; i < 7; i++) {
        struct layer generic;

        layer_init(&generic, heads, columns[i], i % 3, index_type);
        run_loops(&generic, GR_ISA_GENERIC);
        drawn &= drops_as_drawn(&generic);
        for (int isa = GR_ISA_GENERIC + 1; isa <= (int)gr_processor_isa(); isa++) {
            struct layer other;

            if (!runs((enum gr_isa)isa)) continue;
            layer_init(&other, heads, columns[i], i % 3, index_type);
            run_loops(&other, (enum gr_isa)isa);
            if (words == NULL) words = compare_layers(&generic, &other);
            layer_fini(&other);
        }
        layer_fini(&generic);
    }
    ok(words == NULL, "%d heads, %s-bit columns: loops of all instruction sets are bitwise identical%s%s", (int)heads,
       index_type == GRAFT_I32 ? "32" : "64", words != NULL ? ", but not in " : "", words != NULL ? words : "");
    ok(drawn, "attention dropout has the factors that were drawn");
}

int main(void)
{
    const int64_t heads[] = { 1, 2, 3, 4, 8, 9, 64 };

    for (int i = 0; i < 7; i++) test_loops(heads[i], i % 2 ? GRAFT_I64 : GRAFT_I32);
    test_loops(4, GRAFT_I32);
    return done();
}
