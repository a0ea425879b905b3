/* The state of a trainer as named arrays, to be read and written one by one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N_PROGRESS = 4 };

static void progress_item(const graft_trainer *t, int32_t index, graft_state_item *item)
{
    static const char *const names[N_PROGRESS] = { "progress.epoch", "progress.best_epoch", "progress.best_accuracy",
                                                   "progress.best_loss" };
    const void *const data[N_PROGRESS] = { &t->progress.epoch, &t->progress.best_epoch, &t->progress.best_accuracy,
                                           &t->progress.best_loss };

    item->dtype = index < 2 ? GRAFT_I64 : GRAFT_F64;
    item->name = names[index];
    item->n_dims = 1;
    item->shape[0] = 1;
    item->data = data[index];
}

int32_t gr_trainer_state_item(graft_trainer *t, int32_t index, graft_state_item *item, graft_error *error)
{
    const int32_t              count = t->setup.model.n_parameters * GR_STATE_COPIES;
    const struct gr_parameter *p;

    if (index < 0 || index >= count + N_PROGRESS) {
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "state item %d of %d", index, count + N_PROGRESS);
    }
    if (index >= count) {
        progress_item(t, index - count, item);
        return GRAFT_OK;
    }
    p = &t->setup.model.parameters[index % t->setup.model.n_parameters];
    item->dtype = GRAFT_F32;
    item->name = p->name[index / t->setup.model.n_parameters];
    item->n_dims = p->n_dims;
    item->shape[0] = p->n_dims == 2 ? p->rows : p->cols;
    item->shape[1] = p->n_dims == 2 ? p->cols : 0;
    item->data =
        (const float *const[GR_STATE_COPIES]){ p->value, p->best, p->m, p->v }[index / t->setup.model.n_parameters];
    return GRAFT_OK;
}

static int64_t elements(const graft_state_item *item)
{
    return item->shape[0] * (item->n_dims == 2 ? item->shape[1] : 1);
}

/* The item as text, such as "F32 [128, 64]". */
static void describe(const graft_state_item *item, char text[64])
{
    const char *const types[] = { "?", "F32", "F64", "I32", "I64", "U8" };
    const int         known = item->dtype >= GRAFT_F32 && item->dtype <= GRAFT_U8;
    int               used = snprintf(text, 64, "%s [", types[known ? item->dtype : 0]);

    for (int i = 0; i < item->n_dims && i < 2; i++) {
        used += snprintf(text + used, 64 - (size_t)used, "%s%lld", i > 0 ? ", " : "", (long long)item->shape[i]);
    }
    snprintf(text + used, 64 - (size_t)used, "%s]", item->n_dims > 2 ? ", ..." : "");
}

static int same_form(const graft_state_item *a, const graft_state_item *b)
{
    return a->dtype == b->dtype && a->n_dims == b->n_dims && a->shape[0] == b->shape[0] &&
           (a->n_dims < 2 || a->shape[1] == b->shape[1]);
}

/* Whether a number can be what the state of this name is: an accuracy, or -1 before there is one; a mean loss. */
static int number_can_be(const char *name, double number)
{
    if (strcmp(name, "progress.best_accuracy") == 0) return number == -1 || (number >= 0 && number <= 1);
    return number >= 0 && isfinite(number);
}

/* Counters cannot be negative, nor second moments; weights must be finite, or no evaluation could follow. */
static int32_t check_values(const graft_state_item *item, graft_error *error)
{
    if (item->dtype == GRAFT_I64 && *(const int64_t *)item->data < 0) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%.80s' is %lld, expected 0 or more", item->name,
                       (long long)*(const int64_t *)item->data);
    }
    if (item->dtype == GRAFT_F64 && !number_can_be(item->name, *(const double *)item->data)) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%.80s' cannot be %g", item->name,
                       *(const double *)item->data);
    }
    for (int64_t i = 0; i < elements(item) && item->dtype == GRAFT_F32; i++) {
        const float value = ((const float *)item->data)[i];

        if (value < 0 && strncmp(item->name, "optimizer.v.", 12) == 0) {
            return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%.80s': element %lld is %g, expected 0 or more",
                           item->name, (long long)i, (double)value);
        }
        if (!isfinite(value)) {
            return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%.80s': element %lld is not finite", item->name,
                           (long long)i);
        }
    }
    return GRAFT_OK;
}

int32_t gr_trainer_state_set(graft_trainer *t, const graft_state_item *item, graft_error *error)
{
    graft_state_item ours = { .size = sizeof ours };
    char             found[64], expected[64];
    int32_t          rc, index = 0;

    if (item->name == NULL || item->data == NULL)
        return gr_fail(error, GRAFT_ERR_ARG, "item.name or item.data is null");
    do {
        rc = gr_trainer_state_item(t, index++, &ours, error);
        if (rc < 0) return gr_fail(error, GRAFT_ERR_NOT_FOUND, "this trainer has no state item '%.80s'", item->name);
    } while (strcmp(ours.name, item->name) != 0);
    if (!same_form(item, &ours)) {
        describe(item, found);
        describe(&ours, expected);
        return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%s' is %s, expected %s", ours.name, found, expected);
    }
    rc = check_values(item, error);
    if (rc < 0) return rc;
    /* The arrays of the state are the trainer's own; only hosts see them as constant. */
    memcpy((void *)(uintptr_t)ours.data, item->data, (uint64_t)elements(&ours) * (ours.dtype == GRAFT_F32 ? 4 : 8));
    t->state_is_set = 1;
    return GRAFT_OK;
}
