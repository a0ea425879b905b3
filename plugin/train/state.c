/* The state of a trainer as named arrays, to be read and written one by one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/train.h"

#include <math.h>
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

int gr_train_state_is_table(const graft_state_item *item)
{
    return strncmp(item->name, GR_STATE_HISTORY, strlen(GR_STATE_HISTORY)) == 0 ||
           strncmp(item->name, GR_STATE_CACHES, strlen(GR_STATE_CACHES)) == 0;
}

int32_t gr_train_state_item(const struct gr_state *state, int32_t index, graft_state_item *item, graft_error *error)
{
    const int32_t n = state->model->parameters.count, n_trained = state->model->parameters.n_trained;
    const int32_t count = state->copies == 1 ? n : 2 * (n + n_trained);
    const int32_t copy = index < 2 * n ? index / n : 2 + (index - 2 * n) / n_trained;
    const int32_t progress = state->copies < GR_STATE_COPIES ? 0 : state->n_progress;
    const int32_t tables = state->copies < GR_STATE_COPIES ? 0 : state->n_tables;
    const int32_t all = count + progress + tables;

    if (index < 0 || index >= all) return gr_fail(error, GRAFT_ERR_NOT_FOUND, "state item %d of %d", index, all);
    if (index >= count + progress) {
        const struct gr_state_table *table = &state->tables[index - count - progress];

        item->dtype = GRAFT_I64;
        item->name = table->name;
        item->n_dims = 1;
        item->shape[0] = table->words;
        item->data = table->data;
        return GRAFT_OK;
    }
    if (index >= count) {
        progress_item(state->progress, index - count, item);
        return GRAFT_OK;
    }
    gr_nn_item(&state->model->parameters, copy < 2 ? index % n : (index - 2 * n) % n_trained, (enum gr_copy)copy, item);
    return GRAFT_OK;
}

static struct gr_state state_of(const graft_trainer *t, int has_tables, int32_t n_progress)
{
    const struct gr_batch_strategy *batches = has_tables && t->batches != NULL ? t->batches->strategy : NULL;

    return (struct gr_state){ .model = &t->setup.model,
                              .progress = &t->progress,
                              .copies = GR_STATE_COPIES,
                              .n_progress = n_progress,
                              .n_tables = batches != NULL ? batches->n_tables : 0,
                              .tables = batches != NULL ? batches->table : NULL };
}

struct gr_state gr_trainer_state(const graft_trainer *t)
{
    const struct gr_progress *p = &t->progress;

    return state_of(t, t->batches != NULL && gr_train_batch_tables_hold(t->batches, t->state_is_set),
                    p->n_batches > 0 || p->batch > 0 ? GR_PROGRESS_BATCHES : GR_PROGRESS_WHOLE);
}

int32_t gr_trainer_state_item(graft_trainer *t, int32_t index, graft_state_item *item, graft_error *error)
{
    const struct gr_state state = gr_trainer_state(t);

    return gr_train_state_item(&state, index, item, error);
}

/* Whether a number is legal in the item of this name: an accuracy, or -1 before the first evaluation; a factor of the
 * learning rate; a mean loss. */
static int number_can_be(const char *name, double number)
{
    if (strcmp(name, "progress.best_accuracy") == 0) return number == -1 || (number >= 0 && number <= 1);
    if (strcmp(name, "progress.rate_factor") == 0) return number > 0 && number <= 1;
    return number >= 0 && isfinite(number);
}

/* Whether the item of this name contains variances or second moments. */
static int has_squares(const struct gr_model *model, const char *name)
{
    for (int32_t i = 0; i < model->parameters.count; i++) {
        const struct gr_parameter *p = &model->parameters.list[i];
        const int                  is_variance = p->statistic == GR_RUNNING_VARIANCE;

        if (strcmp(name, gr_nn_name(p, GR_COPY_V)) == 0) return 1;
        if (is_variance &&
            (strcmp(name, gr_nn_name(p, GR_COPY_VALUE)) == 0 || strcmp(name, gr_nn_name(p, GR_COPY_BEST)) == 0))
            return 1;
    }
    return 0;
}

/* Counters and squares must not be negative; weights must be finite, because otherwise no evaluation is possible. */
int32_t gr_train_state_check(const struct gr_model *model, const graft_state_item *item, graft_error *error)
{
    const int is_count = item->dtype == GRAFT_I64;

    if (gr_train_state_is_table(item)) return GRAFT_OK; /* values depend on the trainer */
    if (item->dtype == GRAFT_F64 && !number_can_be(item->name, *(const double *)item->data)) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%.80s' cannot be %g", item->name,
                       *(const double *)item->data);
    }
    if (item->dtype == GRAFT_F64) return GRAFT_OK;
    return gr_nn_check_values(item, is_count || has_squares(model, item->name) ? GR_NN_NOT_NEGATIVE : GR_NN_FINITE,
                              error);
}

int32_t gr_trainer_state_find(graft_trainer *t, const graft_state_item *like, graft_state_item *ours,
                              graft_error *error)
{
    const struct gr_state state = state_of(t, 1, GR_PROGRESS_BATCHES); /* includes the items of batches in any case */
    int32_t               index = 0;

    do {
        if (gr_train_state_item(&state, index++, ours, error) < 0)
            return gr_fail(error, GRAFT_ERR_NOT_FOUND, "this trainer has no state item '%.80s'", like->name);
    } while (strcmp(ours->name, like->name) != 0);
    return gr_nn_check_form(like, ours, error);
}

/* Return the index of the table that is this item of the trainer; -1: the item is not a table. */
static int32_t table_of(const graft_trainer *t, const graft_state_item *ours)
{
    const struct gr_batch_strategy *strategy = t->batches != NULL ? t->batches->strategy : NULL;

    for (int32_t i = 0; strategy != NULL && i < strategy->n_tables; i++)
        if (strategy->table[i].name == ours->name) return i;
    return -1;
}

int32_t gr_trainer_state_check(const graft_trainer *t, const graft_state_item *item, const graft_state_item *ours,
                               graft_error *error)
{
    const int32_t table = table_of(t, ours);

    if (table < 0) return gr_train_state_check(&t->setup.model, item, error);
    return t->batches->strategy->ops->check_table(t->batches->strategy, table, item->data, error);
}

/* The arrays of the state are the trainer's own; only hosts see them as constant. */
void gr_trainer_state_copy(graft_trainer *t, const graft_state_item *item, const graft_state_item *ours)
{
    const int32_t table = table_of(t, ours);

    if (t->batches != NULL && !t->state_is_set) gr_train_batch_tables_unset(t->batches);
    memcpy((void *)(uintptr_t)ours->data, item->data, (uint64_t)gr_nn_item_bytes(ours));
    if (table >= 0) t->batches->strategy->table[table].is_set = 1;
    t->state_is_set = 1;
    t->has_previous = t->is_measured = 0;
}

int32_t gr_trainer_state_set(graft_trainer *t, const graft_state_item *item, graft_error *error)
{
    graft_state_item ours = { .size = sizeof ours };

    if (item->name == NULL || item->data == NULL)
        return gr_fail(error, GRAFT_ERR_ARG, "item.name or item.data is null");
    GR_TRY(gr_trainer_state_find(t, item, &ours, error));
    GR_TRY(gr_trainer_state_check(t, item, &ours, error));
    gr_trainer_state_copy(t, item, &ours);
    return GRAFT_OK;
}

int gr_train_batch_tables_hold(const struct gr_minibatches *m, int is_set)
{
    const struct gr_batch_strategy *strategy = m->strategy;
    int                             all = strategy != NULL && strategy->n_tables > 0;

    if (!is_set) return all && strategy->is_filled;
    for (int32_t i = 0; all && i < strategy->n_tables; i++) all &= strategy->table[i].is_set;
    return all;
}

void gr_train_batch_tables_take(struct gr_minibatches *m, int64_t now)
{
    if (gr_train_batch_tables_hold(m, 1)) m->strategy->ops->adopt(m->strategy, now);
    else if (m->strategy != NULL) gr_strategy_forget(&m->strategy->base, 0);
    gr_train_batch_tables_unset(m);
}

void gr_train_batch_tables_unset(struct gr_minibatches *m)
{
    for (int32_t i = 0; m->strategy != NULL && i < m->strategy->n_tables; i++) m->strategy->table[i].is_set = 0;
}
