/* Checks the oracle itself with published test vectors and with small cases that were computed by hand.
 * SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"
#include "sample.h"

#include "harness/tap.h"

#include <math.h>
#include <string.h>

static int oracle_near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fmax(1, fabs(b));
}

/** Check the known-answer vectors of the library Random123. */
static void test_philox(void)
{
    const uint32_t counter[3][4] = { { 0, 0, 0, 0 },
                                     { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
                                     { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 } };
    const uint32_t key[3][2] = { { 0, 0 }, { 0xffffffff, 0xffffffff }, { 0xa4093822, 0x299f31d0 } };
    const uint32_t answer[3][4] = { { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 },
                                    { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd },
                                    { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } };

    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        oracle_philox(counter[i], key[i], out);
        ok(memcmp(out, answer[i], sizeof out) == 0, "Philox 4x32-10 gives known answer %d", i + 1);
    }
}

static void test_dropout(void)
{
    enum { ROWS = 100, COLUMNS = 50 };
    double *factor = oracle_new(ROWS * COLUMNS, sizeof *factor), *other = oracle_new(ROWS * COLUMNS, sizeof *other);
    double  kept = 0, worst = 0;

    oracle_dropout(0.25, 7, 3, 1, ROWS, COLUMNS, factor);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        kept += factor[i] != 0;
        worst = fmax(worst, factor[i] == 0 ? 0 : fabs(factor[i] - 4.0 / 3));
    }
    ok(oracle_near(kept / (ROWS * COLUMNS), 0.75, 0.03) && worst < 1e-15,
       "dropout 0.25 keeps three quarters, times 4/3");
    oracle_dropout(0.25, 7, 4, 1, ROWS, COLUMNS, other);
    ok(memcmp(factor, other, ROWS * COLUMNS * sizeof *factor) != 0, "another epoch drops others");
    oracle_dropout(0, 7, 4, 1, ROWS, COLUMNS, other);
    kept = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++) kept += other[i] == 1;
    ok(kept == ROWS * COLUMNS, "dropout 0 keeps all as it is");
    free(factor);
    free(other);
}

/** A dense matrix of two columns in double. */
static graft_dense two_columns(double *data, int64_t n_rows)
{
    graft_dense dense = GRAFT_INIT(graft_dense);

    dense.dtype = GRAFT_F64;
    dense.n_rows = n_rows;
    dense.n_cols = dense.stride = 2;
    dense.data = data;
    return dense;
}

/** Check the product of A = (2 . 3 / . . . / -1 4 .) and B = (1 5 / 2 NaN / 3 1), which was computed by hand. */
static void test_mxm(void)
{
    const int64_t     row_ptr[] = { 0, 2, 2, 4 };
    const int32_t     columns[] = { 0, 2, 0, 1 };
    const double      values[] = { 2, 3, -1, 4 }, scale[] = { 2, 2, 0.5 };
    double            b[] = { 1, 5, 2, NAN, 3, 1 }, old_c[] = { 100, 1, 2, 3, 4, 5 }, c[6], bound[6];
    int32_t           old_winner[] = { 7, 7, 7, 7, 7, 7 };
    int64_t           winner[6];
    graft_csr         a = GRAFT_INIT(graft_csr);
    const graft_dense dense_b = two_columns(b, 3), dense_c = two_columns(old_c, 3);
    graft_mxm_args    args = GRAFT_INIT(graft_mxm_args);

    a.index_type = GRAFT_I32;
    a.value_type = GRAFT_F64;
    a.n_rows = a.n_cols = 3;
    a.row_ptr = row_ptr;
    a.col_idx = columns;
    a.values = values;
    args.b = &dense_b;
    args.c = &dense_c;
    args.row_scale = scale;
    args.semiring = GRAFT_PLUS_TIMES;
    oracle_mxm(&a, &args, c, NULL, bound);
    ok(c[0] == 22 && c[1] == 26 && c[2] == 0 && c[3] == 0 && c[4] == 3.5 && isnan(c[5]), "plus_times by hand");
    args.semiring = GRAFT_MAX_TIMES;
    args.flags = GRAFT_MXM_ACCUMULATE;
    args.winner = old_winner;
    args.winner_stride = 2;
    oracle_mxm(&a, &args, c, winner, bound);
    ok(c[0] == 100 && c[1] == 20 && c[2] == 2 && c[3] == 3 && c[4] == 4 && isnan(c[5]), "max_times by hand");
    ok(winner[0] == 7 && winner[1] == 0 && winner[2] == 7 && winner[4] == 7 && winner[5] == 1, "its winners by hand");
    args.flags = 0;
    args.semiring = GRAFT_MIN_SECOND;
    oracle_mxm(&a, &args, c, winner, bound);
    ok(c[0] == 2 && c[1] == 2 && c[4] == 0.5 && winner[0] == 0 && winner[1] == 2 && winner[2] == -1 && winner[4] == 0,
       "min_second by hand");
}

/** A data set of two vertices: vertex 0 gathers from vertices 0 and 1, and vertex 1 from none. The features are (1 2 /
 * 3 -1), the labels 0 and 1. */
struct tiny {
    graft_dataset dataset;
    graft_csr     graph;
    graft_dense   features;
    int64_t       row_ptr[3];
    int32_t       columns[2], labels[2];
    float         values[4];
    uint8_t       split[2];
};

static void init_tiny(struct tiny *tiny)
{
    *tiny = (struct tiny){ .row_ptr = { 0, 2, 2 },
                           .columns = { 0, 1 },
                           .labels = { 0, 1 },
                           .values = { 1, 2, 3, -1 },
                           .split = { GRAFT_SPLIT_TRAIN, GRAFT_SPLIT_TRAIN } };
    tiny->graph = GRAFT_INIT(graft_csr);
    tiny->graph.index_type = GRAFT_I32;
    tiny->graph.n_rows = tiny->graph.n_cols = 2;
    tiny->graph.row_ptr = tiny->row_ptr;
    tiny->graph.col_idx = tiny->columns;
    tiny->features = GRAFT_INIT(graft_dense);
    tiny->features.dtype = GRAFT_F32;
    tiny->features.n_rows = tiny->features.n_cols = tiny->features.stride = 2;
    tiny->features.data = tiny->values;
    tiny->dataset = GRAFT_INIT(graft_dataset);
    tiny->dataset.n_vertices = tiny->dataset.n_features = tiny->dataset.n_classes = 2;
    tiny->dataset.graph = &tiny->graph;
    tiny->dataset.features = &tiny->features;
    tiny->dataset.labels = tiny->labels;
    tiny->dataset.split = tiny->split;
}

/** Set the first elements of a weight tensor, row by row. */
static void set_weight(struct oracle_model *model, const char *name, double a, double b, double c, double d)
{
    const double          value[4] = { a, b, c, d };
    struct oracle_tensor *tensor = oracle_model_find(model, name);

    memcpy(tensor->value, value, (size_t)(tensor->rows * tensor->cols) * sizeof *value);
}

static int logits_are(struct oracle_model *model, double a, double b, double c, double d)
{
    double logits[4];

    oracle_model_forward(model, 0, logits, NULL);
    if (oracle_near(logits[0], a, 1e-14) && oracle_near(logits[1], b, 1e-14) && oracle_near(logits[2], c, 1e-14) &&
        oracle_near(logits[3], d, 1e-14))
        return 1;
    diag("logits %g %g %g %g, expected %g %g %g %g", logits[0], logits[1], logits[2], logits[3], a, b, c, d);
    return 0;
}

/** Check two heads whose transformed features are the input. One head has the scores 5 and LeakyReLU(-1), the other one
 * equal scores. */
static void test_gat(void)
{
    struct oracle_options options = { .kind = ORACLE_GAT, .layers = 1, .heads = 2 };
    struct oracle_model   model;
    struct tiny           tiny;
    const double          twice[] = { 1, 0, 1, 0, 0, 1, 0, 1 }, p = exp(5) / (exp(5) + exp(-0.2));

    init_tiny(&tiny);
    oracle_model_init(&model, &options, &tiny.dataset);
    memcpy(oracle_model_find(&model, "layers.0.weight")->value, twice, sizeof twice);
    set_weight(&model, "layers.0.attention_target", 1, 0, 0, 0);
    set_weight(&model, "layers.0.attention_source", 0, 2, 0, 0);
    set_weight(&model, "layers.0.bias", 10, 20, 0, 0);
    ok(logits_are(&model, (p + 3 * (1 - p) + 2) / 2 + 10, (2 * p - (1 - p) + 0.5) / 2 + 20, 10, 20),
       "gat by hand: the mean of two heads, 0 where there are no entries");
    oracle_model_fini(&model);
}

/** Check the edge operators on entries (0,0), (0,1), (1,1) with weights 1, 2, 4 and x = (1 5 / 2 7). */
static void test_edge(void)
{
    const int64_t     row_ptr[] = { 0, 2, 3 };
    const int32_t     columns[] = { 0, 1, 1 }, numbers[] = { 1, 0, 1 };
    double            w[] = { 1, 2, 4 }, x[] = { 1, 5, 2, 7 }, out[6];
    graft_csr         a = GRAFT_INIT(graft_csr);
    graft_index       index = GRAFT_INIT(graft_index);
    graft_dense       weights = two_columns(w, 3);
    const graft_dense rows = two_columns(x, 2), three = two_columns((double[]){ 1, 1, 2, 2, 3, 3 }, 3);

    a.index_type = index.index_type = GRAFT_I32;
    a.n_rows = a.n_cols = 2;
    a.row_ptr = row_ptr;
    a.col_idx = columns;
    weights.n_cols = weights.stride = 1;
    index.count = 3;
    index.data = numbers;
    oracle_gather_rows(&rows, &index, out);
    ok(out[0] == 2 && out[1] == 7 && out[2] == 1 && out[3] == 5 && out[4] == 2 && out[5] == 7, "gather_rows by hand");
    oracle_index_add(&three, &index, &rows, out);
    ok(out[0] == 3 && out[1] == 7 && out[2] == 6 && out[3] == 11, "index_add by hand");
    oracle_sddmm(&a, &rows, &rows, 1, out);
    ok(out[0] == 26 && out[1] == 37 && out[2] == 53, "sddmm by hand");
    oracle_edge_softmax(&a, &weights, out);
    ok(oracle_near(out[0], 1 / (1 + exp(1)), 1e-15) && oracle_near(out[1], 1 / (1 + exp(-1)), 1e-15) && out[2] == 1,
       "softmax by hand");
    oracle_edge_softmax_backward(&a, &weights, &weights, out);
    ok(out[0] == 1 - 5 && out[1] == 2 * (2 - 5) && out[2] == 4 * (4 - 16), "softmax_backward by hand");
    oracle_edge_mxm(&a, 0, &weights, &rows, 2, out);
    ok(out[0] == 5 && out[1] == 19 && out[2] == 8 && out[3] == 28, "mxm by hand");
    oracle_edge_mxm(&a, 1, &weights, &rows, 2, out);
    ok(out[0] == 1 && out[1] == 5 && out[2] == 10 && out[3] == 38, "mxm transposed by hand");
    oracle_edge_mxm(&a, 1, &weights, NULL, 1, out);
    ok(out[0] == 1 && out[1] == 6, "sums of columns by hand");
}

/** Targets 0 and 1 gather from source 0, and target 2 from all three sources, so that sources 1 and 2 cost more than
 * target 2. The second graph is a square, which two sources cover as well as two targets. */
static void test_cover(void)
{
    const int64_t                 row_ptr[] = { 0, 1, 2, 6 }, square_ptr[] = { 0, 2, 4 };
    const int32_t                 source[] = { 0, 0, 2, 1, 0, 2 }, square_source[] = { 0, 1, 1, 0 };
    const struct oracle_bipartite graph = { 3, 3, row_ptr, source }, square = { 2, 2, square_ptr, square_source };
    uint8_t                       s[3], t[3];
    int                           several = 1;

    ok(oracle_matching_size(&graph, -1) == 2 && oracle_matching_size(&graph, 0) == 1 &&
           oracle_matching_size(&graph, 1) == 2,
       "largest matchings by hand");
    ok(oracle_cover(&graph, s, t) == 2 && s[0] && !s[1] && !s[2] && !t[0] && !t[1] && t[2], "cover by hand");
    ok(oracle_cover_by_trial(&graph, s, t, &several) == 2 && s[0] && !s[1] && !s[2] && !t[0] && !t[1] && t[2] &&
           !several,
       "cover by trial by hand");
    ok(oracle_cover(&square, s, t) == 2 && s[0] && s[1] && !t[0] && !t[1],
       "of covers that are as small, that of sources");
    ok(oracle_cover_by_trial(&square, s, t, &several) == 2 && s[0] && s[1] && !t[0] && !t[1] && !several,
       "the same by trial");
}

static void test_forward(void)
{
    struct oracle_options options = { .kind = ORACLE_SAGE, .layers = 1 };
    struct oracle_model   model;
    struct tiny           tiny;
    const double          half = sqrt(0.5);

    init_tiny(&tiny);
    oracle_model_init(&model, &options, &tiny.dataset);
    set_weight(&model, "layers.0.weight_self", 1, 0, 0, 1);
    set_weight(&model, "layers.0.weight_neigh", 1, 1, 0, 2);
    set_weight(&model, "layers.0.bias", 10, 20, 0, 0);
    ok(logits_are(&model, 1 + 2 + 10, 2 + 2 + 1 + 20, 13, 19),
       "sage by hand: mean of neighbours, 0 where there are none");
    oracle_model_fini(&model);
    options = (struct oracle_options){ .kind = ORACLE_GIN, .layers = 1 };
    oracle_model_init(&model, &options, &tiny.dataset);
    set_weight(&model, "layers.0.weight_1", 1, 0, 0, 1);
    set_weight(&model, "layers.0.weight_2", 1, 0, 1, 2);
    ok(logits_are(&model, 1 + 4 + 2 + 1, 2 * 3, 3, 0), "gin by hand: the sum of itself and of neighbours");
    oracle_model_fini(&model);
    options = (struct oracle_options){ .kind = ORACLE_GCN, .layers = 1, .self_loops = 1, .normalize_features = 1 };
    oracle_model_init(&model, &options, &tiny.dataset);
    set_weight(&model, "layers.0.weight", 1, 0, 0, 1);
    ok(logits_are(&model, 1.0 / 6 + 1.5 * half, 1.0 / 3 - 0.5 * half, 1.5, -0.5),
       "gcn by hand: self loops once each, D^-1/2 on both sides, rows of features summing to 1");
    oracle_model_fini(&model);
    options.symmetrize = 1;
    oracle_model_init(&model, &options, &tiny.dataset);
    ok(model.degree[0] == 2 && model.degree[1] == 2 && model.adjacency[2] == 1, "symmetrize adds the edge back");
    oracle_model_fini(&model);
    options = (struct oracle_options){ .kind = ORACLE_MLP, .layers = 2, .hidden = { 2 }, .norm = 1 };
    oracle_model_init(&model, &options, &tiny.dataset);
    set_weight(&model, "layers.0.weight", 1, 0, 0, 1);
    set_weight(&model, "layers.0.norm.gain", 2, 3, 0, 0);
    set_weight(&model, "layers.0.norm.shift", 0.5, 0.25, 0, 0);
    set_weight(&model, "layers.1.weight", 1, 0, 0, 1);
    ok(logits_are(&model, 0, 0.25 + 3 * 0.5 / sqrt(0.25 + 1e-5), 0.5 + 2 * 2 / sqrt(4 + 1e-5), 0),
       "LayerNorm by hand: biased variance, eps 1e-5, then ReLU");
    oracle_model_fini(&model);
}

/** Check the gradient of one layer. For softmax and for sigmoid it is H^T (p - y) / n with the probabilities p. */
static void test_gradient(int sigmoid)
{
    struct oracle_options options = { .kind = ORACLE_MLP,
                                      .layers = 1,
                                      .loss = sigmoid ? ORACLE_SIGMOID : ORACLE_SOFTMAX };
    struct oracle_model   model;
    struct tiny           tiny;
    double                weight[4], bias[2], *gradient[2] = { weight, bias }, logits[4], delta[4], worst = 0, loss = 0;

    init_tiny(&tiny);
    oracle_model_init(&model, &options, &tiny.dataset);
    set_weight(&model, "layers.0.weight", 0.5, -0.25, 0.125, 0.75);
    set_weight(&model, "layers.0.bias", 0.1, -0.2, 0, 0);
    oracle_model_drop(&model, 0);
    oracle_model_forward(&model, 1, logits, NULL);
    for (int at = 0; at < 4; at++) {
        const double other = logits[at ^ 1];
        const double p = sigmoid ? 1 / (1 + exp(-logits[at])) : exp(logits[at]) / (exp(logits[at]) + exp(other));
        const double y = at == 0 || at == 3;
        delta[at] = (p - y) / 2;
        if (sigmoid || y == 1) loss -= log(y == 1 ? p : 1 - p) / 2;
    }
    ok(oracle_near(oracle_model_loss(&model, logits, GRAFT_SPLIT_TRAIN), loss, 1e-14), "%s loss by hand",
       sigmoid ? "sigmoid" : "softmax");
    ok(oracle_model_gradient(&model, 1e-5, 0, gradient), "no kink in one layer");
    for (int j = 0; j < 2; j++) {
        worst = fmax(worst, fabs(bias[j] - delta[j] - delta[2 + j]));
        for (int i = 0; i < 2; i++)
            worst =
                fmax(worst, fabs(weight[2 * i + j] - tiny.values[i] * delta[j] - tiny.values[2 + i] * delta[2 + j]));
    }
    ok(worst < 1e-9, "gradient of one layer by hand, largest difference %.1e", worst);
    oracle_model_fini(&model);
}

static void test_kinks(void)
{
    struct oracle_options options = { .kind = ORACLE_MLP, .layers = 2, .hidden = { 1 } };
    struct oracle_model   model;
    struct tiny           tiny;
    double                value[4][2], *gradient[4] = { value[0], value[1], value[2], value[3] };

    init_tiny(&tiny);
    oracle_model_init(&model, &options, &tiny.dataset);
    oracle_model_drop(&model, 0);
    set_weight(&model, "layers.0.weight", 1, 1, 0, 0);
    set_weight(&model, "layers.0.bias", -2.000001, 0, 0, 0);
    set_weight(&model, "layers.1.weight", 1, -1, 0, 0);
    ok(!oracle_model_gradient(&model, 1e-5, 0, gradient), "a difference across a kink is refused");
    set_weight(&model, "layers.0.bias", -2.001, 0, 0, 0);
    ok(oracle_model_gradient(&model, 1e-5, 0, gradient), "one beside it is not");
    ok(!oracle_model_gradient(&model, 1e-5, 0.01, gradient), "one within the margin is");
    oracle_model_fini(&model);
}

static void test_optimizer(void)
{
    struct oracle_optimizer optimizer = { .adam = 1, .lr = 0.5 };
    double                  w = 1, m = 0, v = 0, g = -0.25;
    struct oracle_tensor    tensor = { .name = "layers.0.weight_self", .rows = 1, .cols = 1, .value = &w };

    oracle_optimizer_step(&optimizer, 1, &tensor, &g, &m, &v);
    ok(oracle_near(w, 1.5, 1e-7), "the first step of Adam is lr against the sign");
    g = 0.25;
    oracle_optimizer_step(&optimizer, 2, &tensor, &g, &m, &v);
    ok(oracle_near(w, 1.5 - 0.5 * (0.1 - 0.9 * 0.1) / (1 - 0.81), 1e-7), "the second step by hand");
    optimizer = (struct oracle_optimizer){ .lr = 0.5, .momentum = 0.5, .weight_decay = 2, .decay_first_only = 1 };
    w = 1;
    m = 0;
    oracle_optimizer_step(&optimizer, 1, &tensor, &g, &m, &v);
    ok(w == 1 - 0.5 * 2.25, "SGD adds the penalty to the gradient");
    oracle_optimizer_step(&optimizer, 2, &tensor, &g, &m, &v);
    ok(w == -0.125 - 0.5 * (0.5 * 2.25 + 0.25 - 0.25), "and keeps its momentum");
    tensor.layer = 1;
    w = 1;
    m = 0;
    oracle_optimizer_step(&optimizer, 1, &tensor, &g, &m, &v);
    ok(w == 0.875, "no penalty past the first layer if only that one has it");
}

int main(void)
{
    test_philox();
    test_dropout();
    test_mxm();
    test_edge();
    test_cover();
    test_forward();
    test_gat();
    test_gradient(0);
    test_gradient(1);
    test_kinks();
    test_optimizer();
    return done();
}
