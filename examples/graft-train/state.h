/* The state of a trainer as a list of named arrays.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STATE_H
#define STATE_H

#include "library.h"

/** All items, those of 8 bytes per element first, so that each is aligned to its element in the file. */
struct state {
    graft_state_item *items;
    int32_t           count;
};

/** The arrays are owned by the trainer and valid until its next epoch. */
int32_t state_init(struct state *state, const struct library *library, graft_trainer *trainer, graft_error *error);
void    state_fini(struct state *state);

/** The item of this name, or NULL. */
const graft_state_item *state_find(const struct state *state, const char *name);

/** Completed epochs, from "progress.epoch"; 0 if there is no such item. */
int64_t state_epoch(const struct state *state);

/** Name of a type in safetensors, NULL if it has no place in a state; its bytes; and the type of a name, or 0. */
const char *state_dtype_name(graft_dtype dtype);
uint64_t    state_dtype_bytes(graft_dtype dtype);
graft_dtype state_dtype(const char *name);

/** Bytes of the array. Returns 0 if they cannot be counted in 63 bits, else 1. */
int state_item_bytes(const graft_state_item *item, uint64_t *bytes);

/** Type and shape in words, such as "F32 [16, 7]". */
void state_item_describe(const graft_state_item *item, char *text, size_t capacity);

#endif
