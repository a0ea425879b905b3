/* A setup over ranks.
 *
 * ranks_compare.c  what must be equal on all ranks    ranks_memory.c  the least memory of a rank
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "run/setup.h"

/** Notify the other ranks of a failure of only this rank while they wait for it. It counts as a collective call. */
int32_t               gr_setup_tell_failure(struct gr_setup *setup, int32_t rc, graft_error *error);
static inline int32_t gr_setup_ranks_fail(struct gr_setup *setup, int32_t rc, graft_error *error)
{
    return rc >= 0 || setup->data.over == NULL ? rc : gr_setup_tell_failure(setup, rc, error);
}

/** Check that all ranks have the same options. Collective. */
int32_t gr_setup_compare_options(const struct gr_setup *setup, graft_error *error);
/** Check that all ranks have a data set of one kind; with loss=auto, choose the loss. Collective. */
int32_t gr_setup_compare_data(struct gr_setup *setup, graft_error *error);

/** Enforce the limit, which was deferred: refuse a limit that is too low for some rank, with a sentence on what would
 *  fit, before the model has any memory. The features and the graph of the steps exist; if ranks share columns, each
 *  has only its own edges. Collective.
 *  \param[out] variant  Of the strategy, by option feature.graph, or because the first does not fit on some rank.
 *  \return OK; ERR_NOMEM, with the same sentence on all ranks. */
int32_t gr_setup_check_memory(struct gr_setup *setup, int *variant, graft_error *error);
