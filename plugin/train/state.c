/* The state of a trainer as named arrays, to be read and written one by one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/train.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void progress_item(const struct gr_progress *p, int32_t index, graft_state_item *item)
{
    const struct {
        const char *name;
        graft_dtype dtype;
        int64_t     count;
        const void *data;
    } items[GR_PROGRESS_BATCHES] = { { "progress.epoch", GRAFT_I64, 1, &p->epoch },
                                     { "progress.best_epoch", GRAFT_I64, 1, &p->best_epoch },
                                     { "progress.best_accuracy", GRAFT_F64, 1, &p->best_accuracy },
                                     { "progress.best_loss", GRAFT_F64, 1, &p->best_loss },
                                     { "progress.rate_factor", GRAFT_F64, 1, &p->rate_factor },
                                     { "progress.batch", GRAFT_I64, 1, &p->batch },
                                     { "progress.batch_loss", GRAFT_F64, 1, &p->loss },
                                     { "progress.batch_weight", GRAFT_F64, 1, &p->weight },
                                     { "progress.batches", GRAFT_I64, sizeof p->batches / 8, &p->batches } };

    item->dtype = items[index].dtype;
    item->name = items[index].name;
    item->n_dims = 1;
    item->shape[0] = items[index].count;
    item->data = items[index].data;
}

static void table_item(const struct gr_state_table *table, graft_state_item *item)
{
    item->dtype = GRAFT_I64;
    item->name = table->name;
    item->n_dims = 1;
    item->shape[0] = table->words;
    item->data = table->data;
}

int gr_state_is_table(const graft_state_item *item)
{
    return strncmp(item->name, GR_STATE_HISTORY, strlen(GR_STATE_HISTORY)) == 0 ||
           strncmp(item->name, GR_STATE_CACHES, strlen(GR_STATE_CACHES)) == 0;
}

int32_t gr_state_item(const struct gr_state *state, int32_t index, graft_state_item *item, graft_error *error)
{
    const int32_t              n = state->model->parameters.count, n_trained = state->model->parameters.n_trained;
    const int32_t              count = state->copies == 1 ? n : 2 * (n + n_trained);
    const int32_t              copy = index < 2 * n ? index / n : 2 + (index - 2 * n) / n_trained;
    const int32_t              progress = state->copies < GR_STATE_COPIES ? 0 : state->n_progress;
    const int32_t              tables = state->copies < GR_STATE_COPIES ? 0 : state->n_tables;
    const int32_t              all = count + progress + tables;
    const struct gr_parameter *p;

    if (index < 0 || index >= all) return gr_fail(error, GRAFT_ERR_NOT_FOUND, "state item %d of %d", index, all);
    if (index >= count + progress) {
        table_item(&state->tables[index - count - progress], item);
        return GRAFT_OK;
    }
    if (index >= count) {
        progress_item(state->progress, index - count, item);
        return GRAFT_OK;
    }
    p = &state->model->parameters.list[copy < 2 ? index % n : (index - 2 * n) % n_trained];
    item->dtype = GRAFT_F32;
    item->name = p->name[copy];
    item->n_dims = p->n_dims;
    item->shape[0] = p->n_dims == 2 ? p->rows : p->cols;
    item->shape[1] = p->n_dims == 2 ? p->cols : 0;
    item->data = (const float *const[GR_STATE_COPIES]){ p->value, p->best, p->m, p->v }[copy];
    return GRAFT_OK;
}

static struct gr_state state_of(const graft_trainer *t, int has_tables, int32_t n_progress)
{
    const struct gr_minibatches *m = has_tables ? t->batches : NULL;

    return (struct gr_state){ .model = &t->setup.model,
                              .progress = &t->progress,
                              .copies = GR_STATE_COPIES,
                              .n_progress = n_progress,
                              .n_tables = m != NULL ? m->n_tables : 0,
                              .tables = m != NULL ? m->tables : NULL };
}

struct gr_state gr_trainer_state(const graft_trainer *t)
{
    const struct gr_progress *p = &t->progress;

    return state_of(t, t->batches != NULL && gr_batch_tables_hold(t->batches, t->state_is_set),
                    p->n_batches > 0 || p->batch > 0 ? GR_PROGRESS_BATCHES : GR_PROGRESS_WHOLE);
}

int32_t gr_trainer_state_item(graft_trainer *t, int32_t index, graft_state_item *item, graft_error *error)
{
    const struct gr_state state = gr_trainer_state(t);

    return gr_state_item(&state, index, item, error);
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

/* Whether a number is legal in the item of this name: an accuracy, or -1 before the first; a factor of the learning
 * rate; a mean loss. */
static int number_can_be(const char *name, double number)
{
    if (strcmp(name, "progress.best_accuracy") == 0) return number == -1 || (number >= 0 && number <= 1);
    if (strcmp(name, "progress.rate_factor") == 0) return number > 0 && number <= 1;
    return number >= 0 && isfinite(number);
}

int64_t gr_state_bytes(const graft_state_item *item)
{
    return elements(item) * (item->dtype == GRAFT_F32 ? 4 : 8);
}

/* Whether an element is not finite, or negative where it must not be. */
static int has_bad_float(const float *values, int64_t count, float least)
{
    int bad = 0;

    for (int64_t i = 0; i < count; i++) bad |= !(values[i] >= least && values[i] <= FLT_MAX);
    return bad;
}

/* Whether the item holds variances or second moments. */
static int has_squares(const struct gr_model *model, const char *name)
{
    for (int32_t i = 0; i < model->parameters.count; i++) {
        const struct gr_parameter *p = &model->parameters.list[i];
        const int                  is_variance = p->statistic == GR_RUNNING_VARIANCE;

        if (strcmp(name, p->name[3]) == 0) return 1;
        if (is_variance && (strcmp(name, p->name[0]) == 0 || strcmp(name, p->name[1]) == 0)) return 1;
    }
    return 0;
}

/* Counters cannot be negative, nor squares; weights must be finite, or no evaluation could follow. */
int32_t gr_state_check(const struct gr_model *model, const graft_state_item *item, graft_error *error)
{
    int squares;

    if (gr_state_is_table(item)) return GRAFT_OK; /* values depend on the trainer */
    for (int64_t i = 0; item->dtype == GRAFT_I64 && i < elements(item); i++) {
        const int64_t value = ((const int64_t *)item->data)[i];

        if (value < 0)
            return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%.80s' is %lld, expected 0 or more", item->name,
                           (long long)value);
    }
    if (item->dtype == GRAFT_F64 && !number_can_be(item->name, *(const double *)item->data)) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%.80s' cannot be %g", item->name,
                       *(const double *)item->data);
    }
    if (item->dtype != GRAFT_F32) return GRAFT_OK;
    squares = has_squares(model, item->name);
    if (!has_bad_float(item->data, elements(item), squares ? 0 : -FLT_MAX)) return GRAFT_OK;
    for (int64_t i = 0; i < elements(item); i++) {
        const float value = ((const float *)item->data)[i];

        if (value < 0 && squares) {
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

int32_t gr_trainer_state_find(graft_trainer *t, const graft_state_item *like, graft_state_item *ours,
                              graft_error *error)
{
    const struct gr_state state = state_of(t, 1, GR_PROGRESS_BATCHES); /* a trainer without batches finds theirs */
    char                  found[64], expected[64];
    int32_t               index = 0;

    do {
        if (gr_state_item(&state, index++, ours, error) < 0)
            return gr_fail(error, GRAFT_ERR_NOT_FOUND, "this trainer has no state item '%.80s'", like->name);
    } while (strcmp(ours->name, like->name) != 0);
    if (same_form(like, ours)) return GRAFT_OK;
    describe(like, found);
    describe(ours, expected);
    return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%s' is %s, expected %s", ours->name, found, expected);
}

/* The table of an item of the trainer, or NULL. */
static struct gr_state_table *table_of(const graft_trainer *t, const graft_state_item *ours)
{
    for (int32_t i = 0; t->batches != NULL && i < t->batches->n_tables; i++)
        if (t->batches->tables[i].name == ours->name) return &t->batches->tables[i];
    return NULL;
}

int32_t gr_trainer_state_check(const graft_trainer *t, const graft_state_item *item, const graft_state_item *ours,
                               graft_error *error)
{
    const struct gr_state_table *table = table_of(t, ours);

    if (table != NULL) return gr_batch_table_check(t->batches, table, item->data, error);
    return gr_state_check(&t->setup.model, item, error);
}

/* The arrays of the state are the trainer's own; only hosts see them as constant. */
void gr_trainer_state_copy(graft_trainer *t, const graft_state_item *item, const graft_state_item *ours)
{
    struct gr_state_table *table = table_of(t, ours);

    if (t->batches != NULL && !t->state_is_set) gr_batch_tables_unset(t->batches);
    memcpy((void *)(uintptr_t)ours->data, item->data, (uint64_t)gr_state_bytes(ours));
    if (table != NULL) table->is_set = 1;
    t->state_is_set = 1;
    t->has_previous = t->is_measured = 0;
}

int32_t gr_trainer_state_set(graft_trainer *t, const graft_state_item *item, graft_error *error)
{
    graft_state_item ours = { .size = sizeof ours };
    int32_t          rc = GRAFT_OK;

    if (item->name == NULL || item->data == NULL)
        return gr_fail(error, GRAFT_ERR_ARG, "item.name or item.data is null");
    GR_TRY(gr_trainer_state_find(t, item, &ours, error));
    GR_TRY(gr_trainer_state_check(t, item, &ours, error));
    gr_trainer_state_copy(t, item, &ours);
done:
    return rc;
}
