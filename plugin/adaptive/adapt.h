/* Adaptive widths: each row is sent in 2, 4 or 8 bits, depending on the range of its elements, on its weight in the
 * result of its receiver, and on the network. Source: AdaQP, section 4 (Wan, Zhao, Wu 2023).
 *
 * An error e in a received row changes the result by e times the factors that the row is multiplied with; the sum of
 * their squares is the weight of the row. The rows from one rank to another are divided into groups. Rank 0 receives
 * the number of rows of each group, and its variance: the quantization error with a step as wide as the range of each
 * row (adaptive/assign.h). The error in a layer and direction is divided by the sum of weight |x|^2 of its rows,
 * because gradients are smaller than features by orders of magnitude, but equally important. Error and sum are taken
 * over all exchanges since widths were last assigned, as AdaQP traces them, so that a single unusual pass has little
 * effect.
 *
 * Widths are the same for any number of threads. With halo.budget=balance they depend on measured times
 * (adaptive/network.h), and differ from run to run; with a limit they do not.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "adaptive/assign.h"
#include "halo/layers.h"

/** Assign a bit width to each row of later exchanges. The decision uses the ranges of all exchanges since the last
 *  assignment. A layer without an exchange since then keeps its widths, and messages in flight keep theirs. Layers that
 *  are NULL or not adaptive are skipped. Collective, for the same layers on all ranks.
 * \param[in] of       Has the layers, and option halo.budget.
 * \param[in] layers   [n_layers] or NULL: all layers of `of`.
 * \param[in] besides  Bytes of other rows in an epoch, which count towards a budget of bytes.
 * \return OK; ERR_OPTION (a limit that cannot be met: the message has a feasible one; a limit of the error fails only
 *         the first time, later all rows of such a layer have 8 bits, and rank 0 logs it); ERR_NOMEM: the same on all
 *         ranks, and widths stay as they were; ERR_PEER. */
int32_t gr_adaptive_set_widths(const struct gr_halo_layers *of, struct gr_halo_layer *const *layers, int32_t n_layers,
                               int64_t besides, graft_error *error);
