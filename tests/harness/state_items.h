/* State items of trainers and models, and copies of whole states that tests compare bitwise.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_STATE_ITEMS_H
#define TEST_STATE_ITEMS_H

#include "graft_train.h"

#include <string.h>

enum { STATE_ITEMS_MOST = 96 };

/** The number of bytes of the data of an item. */
static inline uint64_t state_item_bytes(const graft_state_item *item)
{
    uint64_t bytes = item->dtype == GRAFT_F32 ? 4 : 8;

    for (int32_t d = 0; d < item->n_dims; d++) bytes *= (uint64_t)item->shape[d];
    return bytes;
}

/** Whether two items have the same name, shape and bytes. */
static inline int same_state_item(const graft_state_item *a, const graft_state_item *b)
{
    return strcmp(a->name, b->name) == 0 && state_item_bytes(a) == state_item_bytes(b) &&
           memcmp(a->data, b->data, state_item_bytes(a)) == 0;
}

/** Whether the name of an item begins with `prefix`. */
static inline int state_item_begins(const graft_state_item *item, const char *prefix)
{
    return strncmp(item->name, prefix, strlen(prefix)) == 0;
}

/** A copy of a state, which outlives its trainer. */
struct kept_state {
    int32_t          n;
    graft_state_item item[STATE_ITEMS_MOST];
    char             name[STATE_ITEMS_MOST][64];
};

/** Copy the state of a trainer. kept_state_fini() frees it. */
void              kept_state_take(struct kept_state *kept, const graft_train_api *train, graft_trainer *trainer);
void              kept_state_free(struct kept_state *kept);
/** The item with this name, or NULL. */
graft_state_item *kept_state_find(struct kept_state *kept, const char *name);
/** Set all items in a trainer. Items whose names begin with `without` are left out, unless it is NULL. The result is
 * the status of the first item that is refused. */
int32_t           kept_state_set(const struct kept_state *kept, const char *without, const graft_train_api *train,
                                 graft_trainer *trainer, graft_error *error);
/** Whether two states are bitwise identical. Items whose names begin with `without` are not compared, unless it is
 * NULL. The first item that differs is printed. */
int               same_kept_state(const struct kept_state *a, const struct kept_state *b, const char *without);

#endif
