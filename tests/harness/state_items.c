/* Copies the states of trainers, see harness/state_items.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/state_items.h"

#include <stdio.h>
#include <stdlib.h>

void kept_state_take(struct kept_state *kept, const graft_train_api *train, graft_trainer *trainer)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);

    for (kept->n = 0; train->state_item(trainer, kept->n, &item, NULL) == GRAFT_OK; kept->n++) {
        void *const copy = malloc(state_item_bytes(&item));

        if (copy == NULL || kept->n == STATE_ITEMS_MOST || strlen(item.name) >= sizeof kept->name[0]) {
            printf("Bail out! there is no memory for %s\n", item.name);
            exit(2);
        }
        strcpy(kept->name[kept->n], item.name);
        item.name = kept->name[kept->n];
        item.data = memcpy(copy, item.data, state_item_bytes(&item));
        kept->item[kept->n] = item;
    }
}

void kept_state_free(struct kept_state *kept)
{
    for (int32_t i = 0; i < kept->n; i++) free((void *)(uintptr_t)kept->item[i].data);
    kept->n = 0;
}

graft_state_item *kept_state_find(struct kept_state *kept, const char *name)
{
    for (int32_t i = 0; i < kept->n; i++)
        if (strcmp(kept->item[i].name, name) == 0) return &kept->item[i];
    return NULL;
}

static int is_left_out(const graft_state_item *item, const char *without)
{
    return without != NULL && state_item_begins(item, without);
}

int32_t kept_state_set(const struct kept_state *kept, const char *without, const graft_train_api *train,
                       graft_trainer *trainer, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    for (int32_t i = 0; rc == GRAFT_OK && i < kept->n; i++)
        if (!is_left_out(&kept->item[i], without)) rc = train->state_set(trainer, &kept->item[i], error);
    return rc;
}

int same_kept_state(const struct kept_state *a, const struct kept_state *b, const char *without)
{
    for (int32_t i = 0; i < a->n && a->n == b->n; i++) {
        if (is_left_out(&a->item[i], without) || same_state_item(&a->item[i], &b->item[i])) continue;
        printf("# %s differs\n", a->item[i].name);
        return 0;
    }
    return a->n == b->n;
}
