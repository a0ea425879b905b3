/* Checks the parts of examples/link-prediction against plain loops: the split of the edges, loss and gradient of the
 * decoder, and ranking metrics.
 * SPDX-License-Identifier: Apache-2.0 */
#include "../../examples/link-prediction/ranking.h"
#include "harness/outputs.h"
#include "harness/tap.h"

#include <math.h>
#include <string.h>

enum { N = 60, WIDTH = 5, NEGATIVES = 2, EPOCH = 3, OTHERS = 12 };

struct scene {
    struct host    host;
    int64_t        row_ptr[N + 1];
    int32_t        col_idx[N * N];
    graft_csr      whole;
    struct split   split;
    struct decoder decoder;
    float          z[N * WIDTH], gradient[N * WIDTH];
};

/* Some pairs have an edge in one direction only, some vertices have self-loops, and one has no edges. */
static void make_pair_graph(struct scene *s)
{
    int64_t count = 0;

    for (int u = 0; u < N; u++) {
        for (int v = 0; v < N; v++)
            if (u != 7 && v != 7 && draw(1, (uint64_t)u, (uint64_t)v) % 5 == 0) s->col_idx[count++] = v;
        s->row_ptr[u + 1] = count;
    }
    s->whole = GRAFT_INIT(graft_csr);
    s->whole.index_type = GRAFT_I32;
    s->whole.n_rows = s->whole.n_cols = N;
    s->whole.row_ptr = s->row_ptr;
    s->whole.col_idx = s->col_idx;
    for (int i = 0; i < N * WIDTH; i++) s->z[i] = (float)(draw(2, (uint64_t)i, 0) % 2000) / 1000 - 1;
}

static int entry(const graft_csr *graph, int u, int v)
{
    for (int64_t e = graph->row_ptr[u]; e < graph->row_ptr[u + 1]; e++)
        if (((const int32_t *)graph->col_idx)[e] == v) return 1;
    return 0;
}

/* In how many parts of the split a pair is; `which` receives the last of them. */
static int find_pair(const struct split *split, int u, int v, int *which)
{
    int found = 0;

    for (int part = 0; part < PARTS; part++) {
        for (int64_t e = split->part[part].begin[u]; e < split->part[part].begin[u + 1]; e++) {
            if (split->part[part].target[e] != v) continue;
            found++;
            *which = part;
        }
    }
    return found;
}

/* A pair with an edge in any direction must be in exactly one part, and edges of held-out pairs must not be in the
 * graph. */
static void test_parts(const struct scene *s)
{
    int wrong = 0, held_out = 0, one_way = 0;

    for (int u = 0; u < N; u++) {
        for (int v = 0; v <= u; v++) {
            const int edge = u != v && (entry(&s->whole, u, v) || entry(&s->whole, v, u));
            int       which = PART_TRAIN;

            wrong += find_pair(&s->split, u, v, &which) + (u != v && find_pair(&s->split, v, u, &which)) != edge;
            one_way += edge && !entry(&s->whole, u, v);
            held_out += which != PART_TRAIN;
            wrong += entry(&s->split.graph, u, v) != (entry(&s->whole, u, v) && which == PART_TRAIN);
            wrong += entry(&s->split.graph, v, u) != (entry(&s->whole, v, u) && which == PART_TRAIN);
        }
    }
    ok(wrong == 0 && one_way > 50 && held_out > 50,
       "each pair is in one part of the split, and held-out edges are not used for training");
    ok(count_pairs(&s->split, PART_TEST) + count_pairs(&s->split, PART_VALIDATION) == held_out,
       "the pairs of test and validation are all held-out pairs");
}

static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double plain_score(const struct scene *s, const double *z, const float *parameter, int u, int v)
{
    double sum = (double)parameter[WIDTH];

    (void)s;
    for (int c = 0; c < WIDTH; c++) sum += (double)parameter[c] * z[u * WIDTH + c] * z[v * WIDTH + c];
    return sum;
}

/* The loss by its definition, in double. */
static double plain_loss(const struct scene *s, const double *z, const float *parameter)
{
    const struct pairs *train = &s->split.part[PART_TRAIN];
    const double        positives = (double)count_pairs(&s->split, PART_TRAIN);
    double              loss = 0;

    for (int u = 0; u < N; u++) {
        for (int64_t e = train->begin[u]; e < train->begin[u + 1]; e++) {
            loss += softplus(-plain_score(s, z, parameter, u, train->target[e])) / positives;
            for (int k = 0; k < NEGATIVES; k++) {
                const int v = draw_vertex(s->host.seed + 1, EPOCH, (uint64_t)(e * NEGATIVES + k), N);

                loss += softplus(plain_score(s, z, parameter, u, v)) / (positives * NEGATIVES);
            }
        }
    }
    return loss;
}

static void test_loss(struct scene *s, int hadamard)
{
    const double h = 1e-4;
    double       z[N * WIDTH], loss = 0, worst = 0, largest = 0;
    float        parameter[WIDTH + 1];
    int          downhill = 1;

    s->decoder = (struct decoder){ .hadamard = hadamard, .width = WIDTH, .negatives = NEGATIVES };
    ok(decoder_create(&s->host, &s->split, &s->decoder) >= 0, "a decoder is created");
    for (int c = 0; c <= WIDTH && hadamard; c++) s->decoder.parameter[c] = 0.3f * (float)(c - 2);
    memcpy(parameter, s->decoder.parameter, sizeof parameter);
    for (int i = 0; i < N * WIDTH; i++) z[i] = (double)s->z[i];
    ok_or(decoder_step(&s->host, &s->decoder, &s->split, EPOCH, s->z, s->gradient, &loss) >= 0, s->host.error.message,
          "the decoder makes a step");
    ok(fabs(loss - plain_loss(s, z, parameter)) < 1e-5, "%s: the loss equals its definition",
       hadamard ? "hadamard" : "dot");
    for (int i = 0; i < N * WIDTH; i++) {
        const double kept = z[i];
        double       slope;

        z[i] = kept + h;
        slope = plain_loss(s, z, parameter);
        z[i] = kept - h;
        slope = (slope - plain_loss(s, z, parameter)) / (2 * h);
        z[i] = kept;
        worst = fmax(worst, fabs(slope - (double)s->gradient[i]));
        largest = fmax(largest, fabs(slope));
    }
    ok(worst < 1e-4 * largest, "the gradient of the pair loss differs from finite differences by %.1e of %.1e", worst,
       largest);
    for (int c = 0; c <= WIDTH; c++) {
        const float kept = parameter[c];
        double      slope;

        parameter[c] = kept + 1e-2f;
        slope = plain_loss(s, z, parameter);
        parameter[c] = kept - 1e-2f;
        slope -= plain_loss(s, z, parameter);
        parameter[c] = kept;
        downhill &= hadamard ? slope * (double)(s->decoder.parameter[c] - kept) < 0 : s->decoder.parameter[c] == kept;
    }
    ok(downhill, hadamard ? "each parameter of the decoder changes in the direction of a smaller loss"
                          : "a dot decoder changes no parameters");
}

static void test_pair_ranks(struct scene *s)
{
    const struct pairs *test = &s->split.part[PART_TEST];
    struct ranking      found = { 0 }, expected = { 0 };
    double              z[N * WIDTH];

    for (int i = 0; i < N * WIDTH; i++) z[i] = (double)s->z[i];
    for (int u = 0; u < N; u++) {
        for (int64_t e = test->begin[u]; e < test->begin[u + 1]; e++) {
            const double score = plain_score(s, z, s->decoder.parameter, u, test->target[e]);
            double       rank = 1;

            for (uint64_t j = 0; j < OTHERS; j++) {
                uint64_t attempt = 0;
                int      v;

                do v = draw_vertex(s->host.seed + 2, (uint64_t)e, j * 100 + attempt++, N);
                while (v == u || entry(&s->whole, u, v) || entry(&s->whole, v, u));
                rank += plain_score(s, z, s->decoder.parameter, u, v) > score;
            }
            expected.mrr += 1 / rank / (double)count_pairs(&s->split, PART_TEST);
            expected.hits_3 += (rank <= 3) / (double)count_pairs(&s->split, PART_TEST);
        }
    }
    ok(rank_pairs(&s->host, &s->decoder, &s->split, PART_TEST, OTHERS, s->z, &found) >= 0,
       "pairs of the test part are ranked");
    ok(fabs(found.mrr - expected.mrr) < 1e-9 && fabs(found.hits_3 - expected.hits_3) < 1e-9,
       "ranked pairs: MRR is %.4f, expected %.4f; hits@3 is %.4f, expected %.4f", found.mrr, expected.mrr, found.hits_3,
       expected.hits_3);
    ok(found.hits_1 > 0 && found.hits_1 < found.hits_3 && found.hits_3 < found.hits_10,
       "hits@k of ranked pairs grows with k");
}

/* Hand the gradient to a trainer: a linear model Z = X W + b must make one step of plain gradient descent with rate 1,
 * which gives Z - (X X^T + 1) G. */
static void test_hand_over(struct scene *s)
{
    static const char *const settings[][2] = { { "model", "mlp" },     { "layers", "1" }, { "loss", "mse" },
                                               { "optimizer", "sgd" }, { "lr", "1" },     { "dropout", "0" } };
    const graft_train_api   *train = graft_interface(s->host.api, GRAFT_TRAIN_ID, GRAFT_HAS(graft_train_api, update));
    float                    x[N * WIDTH], before[N * WIDTH], after[N * WIDTH], targets[N * WIDTH] = { 0 };
    uint8_t                  members[N];
    const graft_dense        features = graft_dense_in(GRAFT_F32, N, WIDTH, x);
    const graft_dense        wanted = graft_dense_in(GRAFT_F32, N, WIDTH, targets);
    const graft_dense        z[2] = { graft_dense_in(GRAFT_F32, N, WIDTH, before),
                                      graft_dense_in(GRAFT_F32, N, WIDTH, after) };
    graft_dataset            set = GRAFT_INIT(graft_dataset);
    graft_epoch              epoch = output_epoch();
    graft_trainer           *trainer = NULL;
    graft_error             *error = &s->host.error;
    double                   worst = 0, moved = 0;
    int32_t                  rc = 0;

    for (size_t i = 0; i < sizeof settings / sizeof *settings && rc >= 0; i++)
        rc = s->host.api->set(s->host.api->context, settings[i][0], settings[i][1], error);
    memset(members, GRAFT_SPLIT_TRAIN, sizeof members);
    for (int i = 0; i < N * WIDTH; i++) x[i] = (float)(draw(5, (uint64_t)i, 0) % 2000) / 1000 - 1;
    set.n_vertices = N;
    set.n_features = set.n_classes = WIDTH;
    set.graph = &s->whole;
    set.features = &features;
    set.split = members;
    set.float_targets = &wanted;
    if (rc >= 0) rc = train->create(s->host.api->context, &set, &trainer, error);
    if (rc >= 0) rc = train->predict(trainer, GRAFT_WEIGHTS_LAST, NULL, &z[0], error);
    if (rc >= 0) {
        memcpy(targets, s->gradient, sizeof targets);
        gradient_to_targets(before, (int64_t)N * WIDTH, targets);
        rc = train->update(trainer, GRAFT_UPDATE_TARGETS, &set, error);
    }
    if (rc >= 0) rc = train->epoch(trainer, &epoch, error);
    if (rc >= 0) rc = train->predict(trainer, GRAFT_WEIGHTS_LAST, NULL, &z[1], error);
    train->destroy(trainer);
    for (int i = 0; i < N; i++) {
        for (int c = 0; c < WIDTH; c++) {
            double expected = (double)before[i * WIDTH + c];

            for (int j = 0; j < N; j++) {
                double product = 1;

                for (int f = 0; f < WIDTH; f++) product += (double)x[i * WIDTH + f] * (double)x[j * WIDTH + f];
                expected -= product * (double)s->gradient[j * WIDTH + c];
            }
            worst = fmax(worst, fabs(expected - (double)after[i * WIDTH + c]));
            moved = fmax(moved, fabs(expected - (double)before[i * WIDTH + c]));
        }
    }
    ok_or(rc >= 0 && worst < 1e-4 * moved, error->message,
          "a trainer takes the step of the gradient: differs by %.1e of %.1e", worst, moved);
}

int main(void)
{
    static struct scene scene;
    struct host        *host = &scene.host;

    host->error = GRAFT_INIT(graft_error);
    host->seed = 11;
    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &host->api, &host->error) < 0) return 1;
    host->edge = graft_interface(host->api, GRAFT_EDGE_ID, GRAFT_HAS(graft_edge_api, mxm));
    host->mxm = graft_interface(host->api, GRAFT_MXM_ID, GRAFT_HAS(graft_mxm_api, matrix_destroy));
    make_pair_graph(&scene);
    if (ok(split_create(host, &scene.whole, &scene.split) >= 0, "the pairs of a graph are split")) {
        test_parts(&scene);
        for (int hadamard = 0; hadamard < 2; hadamard++) {
            test_loss(&scene, hadamard);
            test_pair_ranks(&scene);
            decoder_free(&scene.decoder);
        }
        test_hand_over(&scene);
    }
    split_free(&scene.split);
    host->api->close(host->api->context);
    return done();
}
