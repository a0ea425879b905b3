/* The state of a trainer as a list of named arrays.
 * SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    graft_dtype dtype;
    uint32_t    bytes;
    const char *name;
} DTYPES[] = { { GRAFT_F32, 4, "F32" }, { GRAFT_F64, 8, "F64" }, { GRAFT_I64, 8, "I64" } };

enum { N_DTYPES = sizeof DTYPES / sizeof *DTYPES };

const char *state_dtype_name(graft_dtype dtype)
{
    for (int i = 0; i < N_DTYPES; i++) {
        if (DTYPES[i].dtype == dtype) return DTYPES[i].name;
    }
    return NULL;
}

uint64_t state_dtype_bytes(graft_dtype dtype)
{
    for (int i = 0; i < N_DTYPES; i++) {
        if (DTYPES[i].dtype == dtype) return DTYPES[i].bytes;
    }
    return 0;
}

graft_dtype state_dtype(const char *name)
{
    for (int i = 0; i < N_DTYPES; i++) {
        if (strcmp(DTYPES[i].name, name) == 0) return DTYPES[i].dtype;
    }
    return 0;
}

int state_item_bytes(const graft_state_item *item, uint64_t *bytes)
{
    uint64_t product = state_dtype_bytes(item->dtype);
    int      empty = 0;

    for (int32_t d = 0; d < item->n_dims; d++) {
        if (item->shape[d] < 0) return 0;
        if (item->shape[d] == 0) empty = 1;
        else if (product > INT64_MAX / (uint64_t)item->shape[d]) return 0;
        else product *= (uint64_t)item->shape[d];
    }
    *bytes = empty ? 0 : product;
    return 1;
}

void state_item_describe(const graft_state_item *item, char *text, size_t capacity)
{
    const char *name = state_dtype_name(item->dtype);
    size_t      used = (size_t)snprintf(text, capacity, "%s [", name != NULL ? name : "?");

    for (int32_t d = 0; d < item->n_dims && used < capacity; d++) {
        used += (size_t)snprintf(text + used, capacity - used, "%s%" PRId64, d > 0 ? ", " : "", item->shape[d]);
    }
    if (used < capacity) snprintf(text + used, capacity - used, "]");
}

/** Ask the trainer for its items until it has no more. */
static int32_t collect(struct state *state, const struct library *library, graft_trainer *trainer, graft_error *error)
{
    int32_t  capacity = 0;
    uint64_t bytes;

    for (;; state->count++) {
        graft_state_item item = GRAFT_INIT(graft_state_item);
        const int32_t    rc = library->train->state_item(trainer, state->count, &item, error);

        if (rc < 0) return rc == GRAFT_ERR_NOT_FOUND ? GRAFT_OK : rc;
        if (state_dtype_bytes(item.dtype) == 0 || !state_item_bytes(&item, &bytes)) {
            return problem(error, GRAFT_ERR_FORMAT, "item '%s' of the trainer has type %d, expected F32, F64 or I64",
                           item.name, item.dtype);
        }
        if (state->count == capacity) {
            capacity = capacity == 0 ? 64 : 2 * capacity;
            graft_state_item *larger = realloc(state->items, (size_t)capacity * sizeof *larger);
            if (larger == NULL) return problem_memory(error, "the list of weights");
            state->items = larger;
        }
        state->items[state->count] = item;
    }
}

/** Move the wide items to the front; the order is kept otherwise. */
static int32_t wide_first(struct state *state, graft_error *error)
{
    graft_state_item *sorted = calloc((size_t)state->count + 1, sizeof *sorted);
    int32_t           n = 0;

    if (sorted == NULL) return problem_memory(error, "the list of weights");
    for (uint64_t bytes = 8; bytes >= 4; bytes -= 4) {
        for (int32_t i = 0; i < state->count; i++) {
            if (state_dtype_bytes(state->items[i].dtype) == bytes) sorted[n++] = state->items[i];
        }
    }
    free(state->items);
    state->items = sorted;
    return GRAFT_OK;
}

int32_t state_init(struct state *state, const struct library *library, graft_trainer *trainer, graft_error *error)
{
    int32_t rc;

    *state = (struct state){ 0 };
    TRY(collect(state, library, trainer, error));
    TRY(wide_first(state, error));
done:
    if (rc < 0) state_fini(state);
    return rc;
}

void state_fini(struct state *state)
{
    free(state->items);
    *state = (struct state){ 0 };
}

const graft_state_item *state_find(const struct state *state, const char *name)
{
    for (int32_t i = 0; i < state->count; i++) {
        if (strcmp(state->items[i].name, name) == 0) return &state->items[i];
    }
    return NULL;
}

int64_t state_epoch(const struct state *state)
{
    const graft_state_item *item = state_find(state, "progress.epoch");
    uint64_t                bytes = 0;
    int64_t                 epoch = 0;

    if (item != NULL && item->dtype == GRAFT_I64 && state_item_bytes(item, &bytes) && bytes >= sizeof epoch) {
        memcpy(&epoch, item->data, sizeof epoch);
    }
    return epoch;
}
