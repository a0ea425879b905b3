/* The small job that samples batches.
 * SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

/* Read all blocks of a batch. */
static int32_t read_blocks(struct subject *s, graft_sampler *sampler, const graft_sample_batch *batch,
                           graft_error *error)
{
    graft_sample_block block = GRAFT_INIT(graft_sample_block);
    int32_t            rc = GRAFT_OK;

    for (int32_t l = 0; l < batch->n_layers; l++) {
        TRY(s->samples->block(sampler, l, &block, error));
        if (block.row_ptr[block.n_dst] != block.n_edges) watch_blame("block %d is no graph", l);
    }
    if (block.n_dst != batch->n_seeds) watch_blame("the last block is not about the seeds");
done:
    return rc;
}

/* Read all batches of an epoch, some of which are made in advance. */
static int32_t read_scenario_epoch(struct subject *s, graft_sampler *sampler, int64_t epoch, graft_error *error)
{
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    int64_t            n_batches = 0;
    int32_t            made, rc;

    TRY(s->samples->begin(sampler, epoch, 0, &n_batches, error));
    for (int64_t i = 0; i < n_batches; i++) {
        TRY(s->samples->prefetch(sampler, &made, error));
        TRY(s->samples->next(sampler, &batch, error));
        if (batch.index != i || batch.epoch != epoch) watch_blame("batch %lld is none", (long long)i);
        TRY(s->samples->prefetch(sampler, &made, error));
        TRY(read_blocks(s, sampler, &batch, error));
    }
    rc = s->samples->next(sampler, &batch, error);
    if (rc == GRAFT_OK) watch_blame("an epoch has more than %lld batches", (long long)n_batches);
    if (rc == GRAFT_ERR_NOT_FOUND) rc = GRAFT_OK;
done:
    return rc;
}

int32_t scenario_sample_batches(const struct scenario *scenario, struct scene *scene, struct subject *s,
                                graft_error *error)
{
    static const int64_t seeds[] = { 7, 2, 9, 1, 0 };
    graft_sample_batch   batch = GRAFT_INIT(graft_sample_batch);
    graft_matrix        *graph = NULL;
    graft_sampler       *sampler = NULL;
    char                 text[512];
    int32_t              rc;

    TRY(s->mxm->matrix_create(s->context, scene->set[scenario->set].dataset.graph, 0, &graph, error));
    TRY(s->samples->create(s->context, graph, seeds, 5, &sampler, error));
    for (int64_t epoch = 0; epoch < 2; epoch++) TRY(read_scenario_epoch(s, sampler, epoch, error));
    TRY(s->samples->sample(sampler, seeds + 1, 3, 0, &batch, error));
    TRY(read_blocks(s, sampler, &batch, error));
    TRY(s->samples->sample(sampler, seeds, 1, GRAFT_SAMPLE_ALL, &batch, error));
    TRY(s->samples->explain(sampler, text, sizeof text, error));
done:
    s->samples->destroy(sampler);
    s->mxm->matrix_destroy(graph);
    return rc;
}
