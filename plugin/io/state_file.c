/* Makes tensors of the items of a state, and checks that a file has them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/state_file.h"

#include "base/memory.h"

#include <string.h>

int32_t gr_io_state_file_list(const graft_context *context, const struct gr_state_items *items, int32_t more,
                              struct gr_tensor_data **data, int32_t *count, graft_error *error)
{
    graft_state_item item = { .size = sizeof item };
    int32_t          n = 0;

    while (items->at(items->owner, n, &item)) n++;
    GR_TRY(GR_NEW(context, *data, n + more, error));
    for (*count = 0; items->at(items->owner, *count, &item); ++*count) {
        struct gr_tensor_data *d = &(*data)[*count];

        *d = (struct gr_tensor_data){ .name = item.name, .dtype = item.dtype, .n_dims = item.n_dims };
        memcpy(d->shape, item.shape, sizeof d->shape);
        d->data = item.data;
    }
    return GRAFT_OK;
}

static int is_item(const struct gr_state_items *items, const char *name)
{
    graft_state_item item = { .size = sizeof item };

    for (int32_t i = 0; items->at(items->owner, i, &item); i++)
        if (strcmp(item.name, name) == 0) return 1;
    return 0;
}

static int is_of_others(const struct gr_state_items *items, const char *name)
{
    return items->others != NULL && strncmp(name, items->others, strlen(items->others)) == 0;
}

int32_t gr_io_state_file_check(const struct gr_state_items *items, const struct gr_file *file,
                               const struct gr_tensors *header, graft_error *error)
{
    const struct gr_tensor *found;
    graft_state_item        item = { .size = sizeof item };
    int32_t                 count = 0;

    for (int32_t i = 0; items->at(items->owner, i, &item); i++) {
        struct gr_tensor expected = { .name = item.name, .dtype = item.dtype, .n_dims = item.n_dims };

        if (items->may_lack != NULL && items->may_lack(header, item.name)) continue;
        memcpy(expected.shape, item.shape, sizeof expected.shape);
        GR_TRY(gr_io_tensor_file_find(file, header, &expected, items->why, &found, error));
        count++;
    }
    for (int32_t i = 0; i < header->n_tensors && count < header->n_tensors; i++) {
        const struct gr_tensor *t = &header->tensors[i];

        if (is_of_others(items, t->name) || (is_item(items, t->name) && gr_io_tensors_find(header, t->name) == t))
            continue;
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s': tensor '%.64s', at byte %lld of the header, is none of %s, or comes twice", file->name,
                       t->name, (long long)t->at, items->whose);
    }
    return GRAFT_OK;
}
