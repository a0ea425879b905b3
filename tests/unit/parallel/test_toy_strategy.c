/* A strategy is one file with its functions, and one row in the table: this program is the file, and has the row. The
 * strategy sums in plain loops in one process, and trains bitwise as strategy `serial` does with the reference kernel.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "graft_load.h"
#include "graph/csr.h"
#include "harness/hosts.h"
#include "harness/tap.h"
#include "model/run.h"
#include "parallel/strategies.h"

#include <string.h>

/* -- the strategy ------------------------------------------------------------------------------------------------- */

struct toy {
    struct gr_strategy base;
    graft_context     *context;
    int32_t            n_layers;
    int64_t            n; /* vertices, from graph() */
    int                reserved;
};

static int is_wanted;
static int n_made, n_destroyed, sums;

static int wants_toy(const struct gr_strategy_wish *wish)
{
    return is_wanted && wish->over == NULL;
}

static const struct gr_strategy_ops toy_ops;

static int32_t toy_create(const struct gr_strategy_wish *wish, struct gr_strategy **strategy, graft_error *error)
{
    struct toy *toy;
    int32_t     rc = GR_NEW(wish->run->context, toy, 1, error);

    if (rc < 0) return rc;
    *toy = (struct toy){ .base = { .ops = &toy_ops },
                         .context = wish->run->context,
                         .n_layers = gr_run_config(wish->run)->n_layers };
    *strategy = &toy->base;
    n_made++;
    return GRAFT_OK;
}

static void toy_destroy(struct gr_strategy *strategy)
{
    gr_free(((struct toy *)strategy)->context, strategy);
    n_destroyed++;
}

static int32_t toy_graph(struct gr_strategy *strategy, const struct gr_strategy_graph *graph, graft_error *error)
{
    struct toy *toy = (struct toy *)strategy;

    (void)error;
    toy->n = graph->n_vertices;
    graph->whole->of_strategy = strategy;
    for (int32_t l = 0; l < toy->n_layers; l++) graph->step[l].of_strategy = strategy;
    return GRAFT_OK;
}

static int32_t toy_reserve(struct gr_strategy *strategy, graft_error *error)
{
    (void)error;
    ((struct toy *)strategy)->reserved = 1;
    return GRAFT_OK;
}

static float sum_of(const graft_csr *a, const struct gr_sum *sum, int64_t row, int64_t column)
{
    const float *x = sum->x, *values = a->values;
    float        total = 0;

    for (int64_t e = a->row_ptr[row]; e < a->row_ptr[row + 1]; e++)
        total += (values != NULL ? values[e] : 1) * x[gr_csr_column(a, e) * sum->stride + column];
    return total;
}

static int32_t toy_aggregate(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                             graft_error *error)
{
    const struct toy *toy = (struct toy *)strategy;
    const int         back = sum->direction == GR_BACKWARD;
    const graft_csr  *a = &(back ? sum->block->a_transpose : sum->block->a)->csr;

    (void)run;
    if (sum->block->of_strategy != strategy || !toy->reserved || sum->block->n_src > toy->n)
        return gr_fail(error, GRAFT_ERR_STATE, "the toy has not been prepared");
    for (int64_t row = 0; row < (back ? sum->block->n_src : sum->block->n_dst); row++)
        for (int64_t j = 0; j < sum->width; j++) {
            float *const out = &sum->out[row * sum->width + j];
            const float  term = (sum->scale != NULL ? sum->scale[row] : 1) * sum_of(a, sum, row, j);

            *out = sum->add ? *out + term : term;
        }
    sums++;
    return GRAFT_OK;
}

static const struct gr_strategy_ops toy_ops = {
    .name = "toy",
    .make = { .create = toy_create, .destroy = toy_destroy, .graph = toy_graph, .reserve = toy_reserve },
    .aggregate_begin = toy_aggregate
};

/* The row, and the table with it in place of the library's. */
#define GR_MORE_STRATEGIES { &toy_ops, wants_toy },
#include "parallel/choose.c"

/* -- training ----------------------------------------------------------------------------------------------------- */

enum { N = 90, DEGREE = 5, FEATURES = 6, CLASSES = 3, EPOCHS = 5 };

static const graft_api       *api;
static const graft_train_api *train;
static graft_error            error = GRAFT_INIT(graft_error);

static int64_t row_ptr[N + 1];
static int32_t col_idx[N * DEGREE], labels[N];
static float   values[N * DEGREE], features[N * FEATURES];
static uint8_t split[N];

/* Not symmetric, with values, and with vertices that have no neighbour; few vertices train, so that steps need few
 * rows. */
static void make_graph(void)
{
    uint32_t state = 7;
    int64_t  at = 0;

    for (int v = 0; v < N; v++) {
        for (int e = 0; e < v % (DEGREE + 1); e++, at++) {
            state = state * 1664525 + 1013904223;
            col_idx[at] = (int32_t)((state >> 8) % N);
            values[at] = 0.25f + (float)(state >> 24) / 256;
        }
        row_ptr[v + 1] = at;
        for (int j = 0; j < FEATURES; j++) {
            state = state * 1664525 + 1013904223;
            features[v * FEATURES + j] = (float)(state >> 8) / (1 << 24) - 0.5f;
        }
        labels[v] = v % CLASSES;
        split[v] = v % 7 == 0 ? GRAFT_SPLIT_TRAIN : GRAFT_SPLIT_VALIDATION;
    }
}

/* losses[0 .. EPOCHS-1] of epochs, and the loss of all vertices after them. */
static int train_with(const char *settings, int toy, double *losses)
{
    const graft_csr   graph = { .size = sizeof graph,
                                .index_type = GRAFT_I32,
                                .value_type = GRAFT_F32,
                                .n_rows = N,
                                .n_cols = N,
                                .row_ptr = row_ptr,
                                .col_idx = col_idx,
                                .values = values };
    const graft_dense x = {
        .size = sizeof x, .dtype = GRAFT_F32, .n_rows = N, .n_cols = FEATURES, .stride = FEATURES, .data = features
    };
    const graft_dataset set = { .size = sizeof set,
                                .n_vertices = N,
                                .n_features = FEATURES,
                                .n_classes = CLASSES,
                                .graph = &graph,
                                .features = &x,
                                .labels = labels,
                                .split = split };
    graft_trainer      *trainer = NULL;
    graft_epoch         epoch = GRAFT_INIT(graft_epoch);
    graft_metrics       metrics = GRAFT_INIT(graft_metrics);
    int32_t             rc;

    is_wanted = toy;
    host_set_all(api, "mxm.kernel=reference dense.module=reference layers=2 hidden=8 threads=2 dropout=0.25 seed=3");
    host_set_all(api, settings);
    rc = train->create(api->context, &set, &trainer, &error);
    for (int e = 0; e < EPOCHS && rc == GRAFT_OK; e++) {
        rc = train->epoch(trainer, &epoch, &error);
        losses[e] = epoch.loss;
    }
    if (rc == GRAFT_OK) rc = train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &metrics, &error);
    losses[EPOCHS] = metrics.validation_loss;
    train->destroy(trainer);
    if (rc < 0) diag("%s: %s", settings, error.message);
    return rc == GRAFT_OK;
}

static void compare_with_serial(const char *settings)
{
    double    serial[EPOCHS + 1], toy[EPOCHS + 1];
    const int before = n_made, sums_before = sums;
    const int trained = train_with(settings, 0, serial), none = n_made == before && sums == sums_before;

    ok(trained && none, "%s: strategy `serial` is chosen where the toy strategy does not apply", settings);
    ok(train_with(settings, 1, toy) && n_made == before + 1 && sums > sums_before, "%s: the toy strategy is chosen",
       settings);
    if (!ok(memcmp(serial, toy, sizeof serial) == 0, "%s: losses with the toy strategy are bitwise identical",
            settings))
        for (int e = 0; e <= EPOCHS; e++) diag("%.17g %.17g", serial[e], toy[e]);
}

int main(void)
{
    if (graft_open(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, NULL, &api, &error) < 0) return 2;
    train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    make_graph();
    compare_with_serial("model=sage aggregator=mean");
    compare_with_serial("model=gcn");
    compare_with_serial("model=gin");
    compare_with_serial("model=appnp");
    ok(n_destroyed == n_made, "every object of the toy strategy is destroyed");
    api->close(api->context);
    return done();
}
