/* The arrays of the layers in training by minibatch. Batches share arrays that are as large as the largest batch so far
 * needs. An evaluation uses other arrays, for all rows but without a backward pass. Only one of both sets exists at a
 * time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/dense_view.h"
#include "graph/csr.h"
#include "run/input.h"
#include "run/memory.h"
#include "run/pass.h"

#include <string.h>

/* Charge the arrays, which have a budget of their own, to the budget of the setup, or end the charge. */
static void charge(struct gr_setup *s, int exists)
{
    for (int use = 0; use < GR_USES; use++) {
        const int64_t bytes = exists ? gr_budget_bytes(&s->arrays->budget, (enum gr_use)use) : 0;

        gr_budget_charge(&s->budget, (enum gr_use)use, bytes - s->arrays->charged[use]);
        s->arrays->charged[use] = bytes;
    }
}

void gr_setup_arrays_drop_stored(struct gr_setup *s, int32_t l)
{
    struct gr_stored *stored = &s->arrays->stored[l];

    gr_budget_charge(&s->arrays->budget, GR_USE_ACTIVATIONS, -gr_memory_bytes(stored->memory));
    gr_free(s->context, stored->memory);
    gr_scratch_fini(&stored->file);
    *stored = (struct gr_stored){ 0 };
}

void gr_setup_arrays_fini(struct gr_setup *s)
{
    if (s->arrays == NULL) return;
    gr_run_clear(&s->run);
    for (int32_t l = 0; l < GR_LAYERS_MAX; l++) gr_setup_arrays_drop_stored(s, l);
    if (s->arrays->features != NULL) gr_setup_features_refresh(s);
    charge(s, 0);
    gr_budget_fini(&s->arrays->budget);
    memset(s->arrays, 0, sizeof *s->arrays);
}

/* Allocate the arrays for this capacity. `used` are the bytes of the batch, which has a budget of its own; they count
 * towards memory.limit too. */
static int32_t make_arrays(struct gr_setup *s, const struct gr_capacity *capacity, int64_t used, graft_error *error)
{
    struct gr_budget *budget = &s->arrays->budget;
    int32_t           rc = GRAFT_OK;

    gr_setup_arrays_fini(s);
    gr_budget_init(budget, s->context, s->budget.limit);
    budget->limit -= gr_budget_total(&s->budget) + used;
    gr_run_plan(&s->run, budget, capacity);
    GR_TRY_DONE(gr_budget_check_plan(budget, "", error));
    rc = gr_run_init(&s->run, budget, capacity, error);
    charge(s, 1);
done:
    if (rc < 0) gr_setup_arrays_fini(s);
    return rc;
}

/* Check the rows of features that create() did not read, before a pass over all rows. */
static int32_t check_all_rows(struct gr_setup *s, graft_error *error)
{
    const struct gr_input *input = &s->run.input;
    const graft_dense      x = gr_dense_view(input->x, input->type, s->data.n, s->model.config.width[0], input->stride);

    if (s->data.features_checked || input->x == NULL || !gr_setup_reads_rows(s)) return GRAFT_OK;
    GR_TRY(gr_dataset_check_features(&x, 0, s->run.threads, error));
    s->data.features_checked = 1;
    return GRAFT_OK;
}

/* Convert all rows of features to floats, if they have another type. Batches convert only the rows that they read. */
static int32_t widen_features(struct gr_setup *s, graft_error *error)
{
    struct gr_input *input = &s->run.input;
    const int64_t    width = s->model.config.width[0];
    float           *x;
    int32_t          rc = GRAFT_OK;

    if (input->x == NULL || input->type == GRAFT_F32) return GRAFT_OK;
    GR_TRY_DONE(GR_BUDGET_NEW(&s->arrays->budget, GR_USE_FEATURES, x, s->data.n * width, error));
    charge(s, 1);
    gr_dataset_widen(&s->data.features, NULL, s->data.n, 0, s->run.threads, x);
    s->arrays->features = x;
    input->x = x;
    input->type = GRAFT_F32;
    input->stride = width;
done:
    if (rc < 0) gr_setup_arrays_fini(s);
    return rc;
}

int32_t gr_setup_arrays_for_all(struct gr_setup *s, graft_error *error)
{
    const struct gr_capacity capacity = gr_setup_capacity(s);
    const int                recompute = s->model.config.recompute;
    int32_t                  rc;

    s->model.config.recompute = 1; /* no pass needs results of two layers at a time */
    rc = check_all_rows(s, error);
    if (rc == GRAFT_OK) rc = make_arrays(s, &capacity, 0, error);
    if (rc == GRAFT_OK) rc = widen_features(s, error);
    s->model.config.recompute = recompute;
    return gr_strategy_agree(s->run.strategy, rc, error);
}

int32_t gr_setup_arrays_for_blocks(struct gr_setup *s, const struct gr_capacity *capacity, graft_error *error)
{
    const int recompute = s->model.config.recompute;
    int32_t   rc;

    s->model.config.recompute = 1;
    rc = make_arrays(s, capacity, 0, error);
    s->model.config.recompute = recompute;
    return rc;
}

static int raise_to(int64_t *now, int64_t wanted)
{
    if (*now >= wanted) return 0;
    *now = wanted;
    return 1;
}

/* Raise the sizes of a layer to those of a block. A layer without rows has arrays of one row. */
static int grow_layer(const struct gr_setup *s, const struct gr_block *block, struct gr_layer_size *size)
{
    int64_t edges = 0;
    int     grew = 0;

    if (s->model.config.kind->attends && block->a != NULL) edges = gr_csr_entries(&block->a->csr);
    grew |= raise_to(&size->rows, block->n_dst > 0 ? block->n_dst : 1);
    grew |= raise_to(&size->seen, block->n_seen > 0 ? block->n_seen : 1);
    return grew | raise_to(&size->edges, edges);
}

int32_t gr_setup_arrays_for_batch(struct gr_setup *s, const struct gr_block *blocks, int64_t used, graft_error *error)
{
    struct gr_capacity *most = &s->arrays->most, wanted = *most;
    int                 grew = 0;

    for (int32_t l = 0; l < s->model.config.n_layers; l++) {
        const int has_gradient = l > 0 || s->model.config.kind->wide_gradient;

        grew |= grow_layer(s, &blocks[l], &wanted.layer[l]);
        raise_to(&wanted.rows, wanted.layer[l].rows);
        raise_to(&wanted.seen, wanted.layer[l].seen);
        raise_to(&wanted.edges, wanted.layer[l].edges);
        raise_to(&wanted.gradient_rows, has_gradient ? wanted.layer[l].seen : wanted.layer[l].rows);
    }
    if (!grew) return GRAFT_OK;
    wanted.winner_words = 1;
    wanted.reads_history = gr_setup_has_history(s);
    GR_TRY(make_arrays(s, &wanted, used, error));
    *most = wanted;
    return GRAFT_OK;
}
