/* The items of a state as tensors of a file.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_train.h"
#include "io/tensor_file.h"

/** The items of a state, and words for error messages about them. */
struct gr_state_items {
    void *owner;
    int (*at)(void *owner, int32_t index, graft_state_item *item);      /* gets item `index`; 0: there is none */
    int (*may_lack)(const struct gr_tensors *header, const char *name); /* whether the file may lack it; NULL: never */
    const char *why;    /* why items have their shapes, as the end of a sentence */
    const char *whose;  /* whose items these are */
    const char *others; /* prefix of tensors that are not items, and are ignored; NULL: there are none */
};

/** List the items as tensors to write, with space for `more` tensors at the end. The caller frees *data. \return OK;
 *  ERR_NOMEM. */
int32_t gr_io_state_file_list(const graft_context *context, const struct gr_state_items *items, int32_t more,
                              struct gr_tensor_data **data, int32_t *count, graft_error *error);

/** Check that a file has each item once, and no other tensors. \return OK; ERR_FORMAT. */
int32_t gr_io_state_file_check(const struct gr_state_items *items, const struct gr_file *file,
                               const struct gr_tensors *header, graft_error *error);
