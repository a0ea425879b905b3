/* Historical embeddings in one process (Fey et al. 2021, "GNNAutoScale", section 2): a batch gathers from all
 * in-neighbours of its vertices, and no deeper. It computes the rows of its own vertices, with exact gradients; rows of
 * other vertices come from the last batch that computed them, and are constants. The first layer that gathers reads
 * features, and is exact.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/minibatch.h"

#include "base/assert.h"
#include "base/memory.h"
#include "run/pass.h"
#include "sample/kind.h"
#include "sample/options.h"
#include "train/train.h"

#include <string.h>

static int32_t check_history_options(const struct gr_setup *s, graft_error *error)
{
    const struct gr_sample_options *options = gr_sample_options(s->context);
    const struct gr_sampler_kind   *kind = gr_sample_kind(s->context);

    if (kind->no_history != NULL)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "options 'history' and 'sampler=%s' cannot be set together: %s; expected neighbour or cluster",
                       kind->word, kind->no_history);
    if (options->drop_last && !kind->deals_evenly) /* else it has no effect */
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'drop_last' is yes, but with history=full each epoch renews the rows of all vertices");
    if (options->fanout.count > 1 && kind->has_fanout)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'fanout' is a list of %d numbers, but with history=full all layers gather from the same "
                       "neighbours; expected one number",
                       options->fanout.count);
    return GRAFT_OK;
}

static int32_t init_history(struct gr_setup *s, struct gr_minibatches *m, struct gr_batch_wish *wish,
                            graft_error *error)
{
    (void)m;
    (void)wish;
    return check_history_options(s, error);
}

/* All layers share one sampled layer. */
static void set_source(struct gr_setup *s, struct gr_minibatches *m, struct gr_sampler_source *source, int64_t *fanout)
{
    (void)m;
    source->n_layers = 1;
    source->by_parts = gr_sample_kind(s->context)->order != NULL;
    fanout[0] = source->by_parts || gr_option_is_default(s->context, "fanout")
                    ? GR_ALL_NEIGHBOURS
                    : gr_sample_options(s->context)->fanout.width[0];
}

/* The blocks of all vertices as the blocks of one batch. */
static int32_t make_whole_blocks(struct gr_setup *s, struct gr_minibatches *m, struct gr_block *block,
                                 const struct gr_block **block_of, graft_error *error)
{
    const struct gr_batch       batch = { .n_seeds = s->data.n, .n_vertices = s->data.n };
    const struct gr_batch_layer layer = { .n_dst = s->data.n, .n_src = s->data.n, .n_seen = s->data.n };
    const int64_t              *vertex;
    int64_t                     n;

    GR_TRY(m->strategy->ops->number(m->strategy, &batch, &vertex, &n, error));
    for (int32_t l = 0; l < s->model.config.n_layers; l++) {
        block[l] = *s->derived.whole_of[l];
        block_of[l] = &block[l];
        GR_TRY(m->strategy->ops->block(m->strategy, l, &layer, NULL, &block[l], error));
    }
    return GRAFT_OK;
}

int32_t gr_train_history_fill(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    struct gr_block        block[GR_LAYERS_MAX];
    const struct gr_block *block_of[GR_LAYERS_MAX];
    int32_t                rc = GRAFT_OK;

    GR_TRY_DONE(gr_setup_arrays_for_all(s, error));
    m->now.budget.limit = s->budget.limit - gr_budget_total(&s->budget);
    GR_TRY_DONE(make_whole_blocks(s, m, block, block_of, error));
    s->run.strategy = &m->strategy->base;
    GR_TRY_DONE(gr_run_forward(&s->run, GRAFT_PASS_EVALUATION, block_of, error));
    /* With unfit rows the step fails or is cancelled, and tables are filled again. */
    m->strategy->is_filled = m->strategy->unfit == 0;
done:
    gr_setup_arrays_fini(s);
    s->run.strategy = m->whole.strategy;
    return rc;
}

const struct gr_batch_mode gr_train_history_batches = {
    .seeds = "vertices, which read rows of earlier batches,",
    .refills = "tables will be filled again",
    .renews = 1,
    .init = init_history,
    .source = set_source,
};
