/* The state of a training as named arrays: items of parameters, and checks of items that a host or a file gives.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_train.h"
#include "nn/parameter.h"

/** Describe a copy of parameter i as an item of the state, without copying its values. */
void gr_nn_item(const struct gr_parameters *all, int32_t i, enum gr_copy copy, graft_state_item *item);

int64_t gr_nn_item_elements(const graft_state_item *item);
int64_t gr_nn_item_bytes(const graft_state_item *item);

/** Check that an item has the type and the shape of `ours`. \return OK; ERR_FORMAT. */
int32_t gr_nn_check_form(const graft_state_item *item, const graft_state_item *ours, graft_error *error);

/** Check all values of an item: they must be finite; finite and not negative; or 0 to 2^62, so that counting can
 *  continue from them. \return OK; ERR_FORMAT. */
enum gr_nn_values { GR_NN_FINITE, GR_NN_NOT_NEGATIVE, GR_NN_COUNTER };
int32_t gr_nn_check_values(const graft_state_item *item, enum gr_nn_values legal, graft_error *error);
