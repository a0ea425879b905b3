/* Files of states: the items of a state as tensors.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_train.h"
#include "io/tensor_file.h"

/** The items of a state, and the words of errors about them. */
struct gr_state_items {
    void *owner;
    int (*at)(void *owner, int32_t index, graft_state_item *item);      /* 0: there are not so many */
    int (*may_lack)(const struct gr_tensors *header, const char *name); /* the file may lack this item; NULL: none */
    const char *why;    /* items have their shapes, at the end of a sentence */
    const char *whose;  /* the items are */
    const char *others; /* tensors whose names begin so belong to others; NULL: there are none */
};

/** List the items as tensors to write, with space for `more` at the end. The caller frees *data. \return OK;
 *  ERR_NOMEM. */
int32_t gr_io_state_file_list(const graft_context *context, const struct gr_state_items *items, int32_t more,
                              struct gr_tensor_data **data, int32_t *count, graft_error *error);

/** Whether a file has the items, each once, and no other tensors. \return OK; ERR_FORMAT. */
int32_t gr_io_state_file_check(const struct gr_state_items *items, const struct gr_file *file,
                               const struct gr_tensors *header, graft_error *error);
