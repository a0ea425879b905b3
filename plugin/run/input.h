/* The input of the first layer: the features as the model needs them.
 *
 * input.c   in the order of the derived graph, and each row divided by its sum if an option asks for it
 * sparse.c  sparse features, which stay sparse or are made dense
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "run/setup.h"

/** Reordered, normalised, sparse or dense. Collective. */
int32_t gr_setup_features_init(struct gr_setup *setup, graft_error *error);
/** Make the input of the first layer again from dense features. */
void    gr_setup_features_refresh(struct gr_setup *setup);
/** New values for the sparse features, of the host's rows. \return OK; ERR_ARG (other entries, if features stay
 *  sparse), ERR_FORMAT, ERR_NOMEM: nothing has changed. Collective. */
int32_t gr_setup_sparse_refresh(struct gr_setup *setup, const graft_csr *given, graft_error *error);
/** Whether features are expected to stay sparse; if not, they may be constant. */
void    gr_setup_expect_input(struct gr_setup *setup, int sparse);
/** to[count x width] = the rows of these vertices in the dense features `from`, checked if create() did not check them.
 *  \return OK; ERR_FORMAT (a value is not finite). */
int32_t gr_setup_take_features(const struct gr_setup *setup, const struct gr_input *from, const int64_t *vertex,
                               int64_t count, float *to, graft_error *error);

/** Whether the sparse features x stay sparse, by option 'sparse_input'. */
int     gr_setup_sparse_is_better(const struct gr_setup *setup, const graft_csr *x);
/** Keep x, of float values and 32-bit columns, in the order of the setup. Its arrays, charged to the budget, are taken,
 *  and x becomes empty. */
int32_t gr_setup_sparse_init(struct gr_setup *setup, struct gr_csr *x, graft_error *error);
void    gr_setup_sparse_fini(struct gr_setup *setup);
/** Set the input of the run to these n_src rows of the sparse features for a step, whose first n_dst are its
 *  destinations, in memory of `budget`, until gr_setup_sparse_fini(). Then the caller restores run.input. */
int32_t gr_setup_sparse_rows(struct gr_setup *setup, struct gr_budget *budget, const int64_t *vertex, int64_t n_src,
                             int64_t n_dst, graft_error *error);
/** The same for evaluations. */
int32_t gr_setup_sparse_block(struct gr_setup *setup, struct gr_budget *budget, const int64_t *vertex, int64_t n_src,
                              int64_t n_dst, graft_error *error);
