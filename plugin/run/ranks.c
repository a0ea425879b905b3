/* Compares options and data that must be equal on all ranks, reports failures of one rank, and finds the memory that
 * ranks need.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "comm/compare_options.h"
#include "dgraph/options.h"
#include "model/options.h"
#include "parallel/strategies.h"
#include "run/memory.h"
#include "run/setup.h"

#include <math.h>

int32_t gr_setup_ranks_fail(struct gr_setup *s, int32_t rc, graft_error *error)
{
    /* A cancelled step was agreed on by all ranks. */
    if (rc >= 0 || s->data.over == NULL || rc == GRAFT_ERR_PEER || rc == GRAFT_ERR_CANCELLED) return rc;
    return gr_comm_fail(s->data.over->comm, error);
}

/* Check that all ranks agree on data that must be equal to train one model, besides the options. */
static int32_t compare_data(const struct gr_setup *s, graft_error *error)
{
    static const char *const names[] = { "the number of features", "the number of classes", "the loss",
                                         "the number of edge features" };
    const enum gr_loss       loss = s->model.config.loss.kind;
    const char *const        texts[] = { NULL, NULL, gr_loss_name(loss), NULL };
    const uint64_t values[] = { (uint64_t)s->data.given.n_features, (uint64_t)s->data.given.n_classes, (uint64_t)loss,
                                (uint64_t)s->model.config.attention.edge_features };

    GR_ASSERT(s->data.over != NULL);
    return gr_comm_compare_texts(s->data.over->comm, names, values, texts, 4, error);
}

/* With loss=auto, targets determine the loss. A rank without rows takes the loss of the other ranks. */
static int32_t settle_loss(struct gr_setup *s, graft_error *error)
{
    const struct gr_loss_options *options = gr_options_of(s->options, &gr_loss_option_table);
    const int                     has_rows = s->data.over->n_slice > 0;
    int64_t                       loss = has_rows ? s->model.config.loss.kind : GR_LOSS_AUTO;

    GR_TRY(gr_comm_max(s->data.over->comm, &loss, 1, error));
    if (!has_rows && options->loss.word == GR_LOSS_AUTO) s->model.config.loss.kind = (enum gr_loss)loss;
    return GRAFT_OK;
}

int32_t gr_setup_compare_options(const struct gr_setup *s, graft_error *error)
{
    if (s->data.over == NULL) return GRAFT_OK;
    /* Options of the graph were compared when it was created. */
    return gr_comm_compare_options(s->context, s->data.over->comm,
                                   gr_setup_groups(s) & ~gr_graph_option_bits(s->context), error);
}

int32_t gr_setup_compare_data(struct gr_setup *s, graft_error *error)
{
    if (s->data.over == NULL) return GRAFT_OK;
    if (s->given == NULL) GR_TRY(settle_loss(s, error));
    return compare_data(s, error);
}

/* Find the largest memory of any rank, with and without recompute, for both variants of the strategy. Collective. */
static int32_t find_bytes(struct gr_setup *s, struct gr_rank_bytes *bytes, graft_error *error)
{
    int64_t values[6];

    for (int recompute = 1; recompute >= 0; recompute--) { /* the option's own value last: the budget keeps its plan */
        const double planned = gr_setup_planned(s, recompute || s->model.config.recompute) + gr_setup_spans_need(s);

        for (int variant = 0; variant < 2; variant++)
            values[2 * variant + recompute] =
                -(int64_t)ceil(fmax(planned + gr_strategy_need(s->strategy, variant), s->deferral.most));
    }
    for (int variant = 0; variant < 2; variant++) values[4 + variant] = -values[2 * variant] <= s->budget.limit;
    GR_TRY(gr_comm_min(s->data.over->comm, values, 6, error));
    for (int i = 0; i < 4; i++) bytes->most[i / 2][i % 2] = -(double)values[i];
    for (int i = 0; i < 2; i++) bytes->fits[i] = (int)values[4 + i];
    return GRAFT_OK;
}

int32_t gr_setup_check_memory(struct gr_setup *s, int *variant, graft_error *error)
{
    const enum gr_feature_graph option = gr_dgraph_options(s->context)->feature_graph;
    struct gr_rank_bytes        bytes;

    if (s->data.over == NULL) return GRAFT_OK;
    s->budget.deferral = NULL;
    GR_TRY(find_bytes(s, &bytes, error));
    *variant = option == GR_FEATURE_GRAPH_STREAM ||
               (option == GR_FEATURE_GRAPH_AUTO && !bytes.fits[0] && bytes.most[1][0] < bytes.most[0][0]);
    if (!bytes.fits[*variant]) return gr_parallel_refuse_limit(s->strategy, &bytes, *variant, error);
    return GRAFT_OK;
}
