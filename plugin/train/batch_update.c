/* Batches of data that change. All operations that can fail precede any change: a new sampler, if the training vertices
 * or weights of draws change, and space for rows from other ranks. Owners of vertices and the halo stay.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/memory.h"
#include "graph/csr.h"
#include "train/minibatch.h"
#include "train/train.h"

struct batch_update {
    graft_trainer          *trainer;
    uint32_t                what;
    graft_sampler          *sampler; /* NULL: the present one stays; else its: */
    struct gr_batches_id    id;
    struct gr_batch_deal    deal;
    struct gr_batch_changes changes; /* over ranks */
};

/* The graph from which batches will be drawn. */
static graft_csr next_graph(const struct batch_update *u, const struct gr_new_edges *edges)
{
    const struct gr_setup       *s = &u->trainer->setup;
    const struct gr_minibatches *m = u->trainer->batches;
    graft_csr                    graph = *m->graph;

    if (m->graph != &m->no_edges && edges != NULL && s->derived.whole.a != NULL)
        return gr_derived_new_graph(&s->derived, edges);
    if (u->changes.values != NULL) graph.values = u->changes.values;
    return graph;
}

/* A sampler of new targets or a new graph, if any rank cannot keep its sampler. */
static int32_t prepare_sampler(struct batch_update *u, const graft_csr *graph, const int64_t *seeds, int64_t n_seeds,
                               graft_error *error)
{
    struct gr_setup       *s = &u->trainer->setup;
    struct gr_minibatches *m = u->trainer->batches;
    const int              reads_values = (u->what & GRAFT_UPDATE_EDGE_VALUES) && gr_sampler_reads_values(m->sampler);
    int                    differs = reads_values || !gr_sampler_has_seeds(m->sampler, seeds, n_seeds);
    const struct gr_sampler_source source = { .graph = graph, .seeds = seeds, .n_seeds = n_seeds, .like = m->sampler };
    int32_t                        rc = GRAFT_OK;

    GR_TRY(gr_strategy_any(s->run.strategy, &differs, error));
    if (!differs) return GRAFT_OK;
    GR_TRY(gr_train_batch_deal_seeds(s, m, n_seeds, &u->deal, error));
    rc = gr_train_batch_sampler(s, m, source, &u->deal, &u->sampler, error);
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    return gr_train_batches_identify(s, u->sampler, &u->id, error);
}

static int32_t prepare_batches(void *arg, const struct gr_targets *targets, const struct gr_new_edges *edges,
                               graft_error *error)
{
    struct batch_update *u = arg;
    struct gr_setup     *s = &u->trainer->setup;
    graft_csr            graph;
    int64_t              n_seeds = 0, *seeds = NULL;
    int32_t              rc = gr_train_batch_seeds(s, u->trainer->batches, targets, &seeds, &n_seeds, error);

    if (rc == GRAFT_OK && s->data.over != NULL)
        rc = gr_train_batch_halo_prepare(s, u->trainer->batches, u->what, edges, &u->changes, error);
    GR_TRY_DONE(gr_strategy_agree(s->run.strategy, rc, error));
    graph = next_graph(u, edges);
    rc = prepare_sampler(u, &graph, seeds, n_seeds, error);
done:
    gr_free(s->context, seeds);
    return rc;
}

static void take_sampler(graft_trainer *t, struct batch_update *u)
{
    struct gr_minibatches *m = t->batches;

    gr_sampler_destroy(m->sampler);
    m->sampler = u->sampler;
    u->sampler = NULL;
    m->id = u->id;
    if (t->progress.batch == 0) t->progress.batches = m->id;
    t->progress.n_batches = gr_sampler_batches(m->sampler);
    gr_free(t->setup.context, m->deal.weight);
    m->deal = u->deal;
    u->deal.weight = NULL;
}

int32_t gr_train_minibatches_update(graft_trainer *t, uint32_t what, const graft_dataset *data, graft_error *error)
{
    struct gr_minibatches           *m = t->batches;
    struct batch_update              update = { .trainer = t, .what = what };
    const struct gr_update_dependent dependent = { prepare_batches, &update };
    int32_t                          rc = GRAFT_OK;

    GR_TRY_DONE(gr_setup_update(&t->setup, what, data, &dependent, error));
    if (update.sampler != NULL) take_sampler(t, &update);
    gr_train_minibatches_forget(t);
    if (m->ranks != NULL) rc = gr_train_batch_halo_take(&t->setup, m, what, &update.changes, error);
    gr_sampler_set_graph(m->sampler, m->graph);
    gr_train_batch_charge_sampler(&t->setup, m);
done:
    gr_sampler_destroy(update.sampler);
    gr_free(t->setup.context, update.deal.weight);
    gr_free(t->setup.context, update.changes.values);
    gr_free(t->setup.context, update.changes.packed);
    return rc;
}
