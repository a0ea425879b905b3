/* The input of the first layer: features as the model reads them.
 *
 * input.c   in the order of the derived graph, and each row divided by its sum if an option asks for it
 * sparse.c  sparse features, which stay sparse or are made dense
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "run/setup.h"

/** Make the input of the first layer: reordered, normalised, sparse or dense. Collective. */
int32_t gr_setup_features_init(struct gr_setup *setup, graft_error *error);
/** Make the input of the first layer again, from changed dense features. */
void    gr_setup_features_refresh(struct gr_setup *setup);
/** Replace the values of sparse features by those of the host's rows. \return OK; ERR_ARG (other rows or columns, if
 *  features stay sparse), ERR_FORMAT, ERR_NOMEM: nothing has changed. Collective. */
int32_t gr_setup_sparse_refresh(struct gr_setup *setup, const graft_csr *given, graft_error *error);
/** State whether features are expected to stay sparse. If not, they may be constant. */
void    gr_setup_expect_input(struct gr_setup *setup, int sparse);
/** Copy the rows of these vertices from the dense features `from` to to[count x width], and check those that create()
 *  did not check. \return OK; ERR_FORMAT (a value is not finite). */
int32_t gr_setup_take_features(const struct gr_setup *setup, const struct gr_input *from, const int64_t *vertex,
                               int64_t count, float *to, graft_error *error);

/** Decide whether the sparse features x stay sparse, by option 'sparse_input'. */
int     gr_setup_sparse_is_better(const struct gr_setup *setup, const graft_csr *x);
/** Use x, with float values and 32-bit columns in the order of the setup, as the input. This takes over its arrays,
 *  which are charged to the budget, and x becomes empty. */
int32_t gr_setup_sparse_init(struct gr_setup *setup, struct gr_csr *x, graft_error *error);
void    gr_setup_sparse_fini(struct gr_setup *setup);
/** Make these n_src rows of the sparse features the input of the run for a step, the first n_dst of which are its
 *  destinations. Memory is from `budget`. It ends with gr_setup_sparse_fini(); then the caller restores run.input. */
int32_t gr_setup_sparse_rows(struct gr_setup *setup, struct gr_budget *budget, const int64_t *vertex, int64_t n_src,
                             int64_t n_dst, graft_error *error);
/** As gr_setup_sparse_rows(), for evaluations. */
int32_t gr_setup_sparse_block(struct gr_setup *setup, struct gr_budget *budget, const int64_t *vertex, int64_t n_src,
                              int64_t n_dst, graft_error *error);
