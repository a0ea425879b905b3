/* A setup over ranks.
 *
 * ranks_compare.c  what must be equal on all ranks    ranks_memory.c  the least memory of a rank
 * ranks_graph.c    the plans of the strategy          ranks_edges.c   other values of edges
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_RUN_RANKS_H
#define GR_RUN_RANKS_H

#include "run/setup.h"

/** Notify the other ranks of a failure of only this rank while they wait for it. It counts as a collective call. */
int32_t gr_ranks_fail(struct gr_setup *setup, int32_t rc, graft_error *error);
/** Check that all ranks have the same options. Collective. */
int32_t gr_ranks_compare_options(const struct gr_setup *setup, graft_error *error);
/** Check that all ranks have a data set of one kind; with loss=auto, choose the loss. Collective. */
int32_t gr_ranks_compare_data(struct gr_setup *setup, graft_error *error);

/** What the strategy needs of the derived graph. Collective. */
int32_t gr_ranks_graph_init(struct gr_setup *setup, graft_error *error);
/** Its plans of all rows, and of the layers in a step. Collective. */
int32_t gr_ranks_graph_mask(struct gr_setup *setup, graft_error *error);
/** Enforce the limit, which was deferred: refuse a limit that is too low for some rank, with a sentence on what would
 *  fit, before the model has any memory. The features and the graph of the steps exist; if ranks share columns, each
 *  has only its own edges. Collective.
 *  \param[out] streams  Whether the edges of other ranks are received for each sum, by option feature.graph, or because
 *                       they do not fit on some rank.
 *  \return OK; ERR_NOMEM, with the same sentence on all ranks. */
int32_t gr_ranks_check_memory(struct gr_setup *setup, int *streams, graft_error *error);
/** The matrices of the edges inside a group, if ranks share columns. Collective. */
int32_t gr_ranks_blocks_init(struct gr_setup *setup, int streams, graft_error *error);
/** Lay out the slices of columns that transposes store from step to step. This takes a channel, so no failure of only
 *  this rank may precede. Not collective. */
int32_t gr_ranks_stale_init(struct gr_setup *setup, graft_error *error);
/** Elements of the winners that this rank stores for layer l of a model with extrema, if ranks share columns. The first
 *  layer sends no gradient back. */
int64_t gr_ranks_winners(const struct gr_setup *setup, int32_t l);
/** Space for all messages of a step. Not collective. */
int32_t gr_ranks_reserve(struct gr_setup *setup, graft_error *error);
/** Columns of the labels that layer l sums beside its input. */
int64_t gr_ranks_label_columns(const struct gr_setup *setup, int32_t l);
/** The columns of this rank in the messages of each layer, and in the widest message of a plan. */
void    gr_ranks_find_widths(struct gr_setup *setup);
int64_t gr_ranks_widest(const struct gr_setup *setup, const graft_plan *plan);

/** New values of the sums of a strategy. */
struct gr_new_sums {
    struct gr_made_part   group;  /* of the ranks that share columns with this one */
    struct gr_edge_sets  *blocks; /* if all ranks share columns */
    struct gr_plan_values whole, masked[GR_LAYERS_MAX];
};
/** begin() makes them from the part with the new values; *sums stays NULL if there are none. end(), which cannot fail,
 *  puts them into use after the values of the part. Collective. */
int32_t gr_ranks_edges_begin(struct gr_setup *setup, const struct gr_part *part, struct gr_new_sums **sums,
                             graft_error *error);
void    gr_ranks_edges_end(struct gr_setup *setup, struct gr_new_sums *sums);
void    gr_ranks_edges_fini(struct gr_setup *setup, struct gr_new_sums *sums);

#endif
