/* Replaces arrays of the data set during the life of the setup. New arrays are checked and put into use, and results
 * computed from the old ones are dropped.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/input.h"
#include "run/loss.h"

#include <string.h>

enum { ALL_TARGETS = GRAFT_UPDATE_LABELS | GRAFT_UPDATE_TARGETS | GRAFT_UPDATE_SPLIT };

/* The new arrays, and arrays made from them, before they are in use. */
struct update {
    struct gr_new_data   data;
    struct gr_targets    next;         /* all targets with the new ones, in the order of the setup */
    double              *class_weight; /* class weights of `next` */
    struct gr_new_edges *edges;
    void                *sums;          /* what the strategy makes of the edges */
    float               *edge_features; /* [entries x features] new features of edges */
};

/* Count the training vertices, and refuse new ones whose rows a step does not compute: it computes the rows on which
 * the training vertices of create() depend. */
static int32_t count_trained(const struct gr_setup *s, struct update *u, graft_error *error)
{
    double outside = 0; /* the count is exact to 2^53 */

    for (int64_t v = s->derived.reach[s->model.config.n_layers]; v < s->data.n; v++)
        outside += gr_is_trained(&u->next, v);
    if (u->next.class_weight != NULL) {
        const int32_t rc = GR_NEW(s->context, u->class_weight, u->next.n_classes, error);

        GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
        u->next.class_weight = u->class_weight;
    }
    GR_TRY(gr_run_targets_count(&u->next, s->run.strategy, error));
    GR_TRY(gr_strategy_sum(s->run.strategy, &outside, 1, error));
    if (outside > 0)
        return gr_fail(error, GRAFT_ERR_STATE,
                       "%.0f of %lld training vertices are new: they were not in the training set when the trainer was "
                       "created, and its steps do not compute their rows; create it with option 'row_masks' = no",
                       outside, (long long)u->next.n_train);
    if (u->next.n_train > 0 || s->run.targets.n_train == 0) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT,
                   "of %lld vertices none is in the training set and has a %s; a trainer needs one",
                   (long long)s->data.given.n_vertices, s->data.regresses ? "known target" : "label");
}

/* Do all that can fail, before anything is replaced. */
static int32_t prepare(struct gr_setup *s, struct update *u, const struct gr_update_dependent *dependent,
                       graft_error *error)
{
    const uint32_t what = u->data.what;

    GR_TRY(gr_strategy_agree(s->run.strategy, gr_dataset_check_new(&s->data, &s->run.targets, &u->data, error), error));
    GR_TRY(gr_dataset_prepare_new(&s->data, gr_setup_copies_features(s), &u->data, error));
    u->next = s->run.targets;
    GR_TRY(gr_dataset_arrange_new(&s->data, s->derived.row, &u->data, &u->next, error));
    if (what & ALL_TARGETS) GR_TRY(count_trained(s, u, error));
    if (what & GRAFT_UPDATE_EDGE_VALUES) GR_TRY(gr_derived_new_edges(&s->derived, &u->data.given, &u->edges, error));
    if (u->edges != NULL && s->derived.wish.uses_values)
        GR_TRY(gr_strategy_values_begin(s->strategy, &u->edges->copy.part, &u->sums, error));
    if (what & GRAFT_UPDATE_EDGE_FEATURES)
        GR_TRY(gr_derived_new_edge_features(&s->derived, &u->data.edge_features, &u->edge_features, error));
    if (dependent != NULL) return dependent->prepare(dependent->arg, &u->next, u->edges, error);
    return GRAFT_OK;
}

static int32_t replace_features(struct gr_setup *s, struct update *u, graft_error *error)
{
    if (s->data.given.sparse_features != NULL) {
        GR_TRY(gr_setup_sparse_refresh(s, &u->data.sparse, error));
        gr_dataset_take_sparse(&s->data, &u->data);
    } else {
        GR_TRY(gr_dataset_take_features(&s->data, &u->data, error));
        gr_setup_features_refresh(s);
    }
    return GRAFT_OK;
}

static void replace_targets(struct gr_setup *s, const struct update *u)
{
    struct gr_targets *now = &s->run.targets;

    now->n_train = u->next.n_train;
    now->loss_weight = u->next.loss_weight;
    if (u->class_weight != NULL)
        memcpy(now->class_weight, u->class_weight, (uint64_t)u->next.n_classes * sizeof *u->class_weight);
    gr_dataset_take_targets(&s->data, &u->data, now);
}

/* Drop cached sums of features and stale rows of other ranks, which belong to the old data. */
static void forget(struct gr_setup *s)
{
    for (int32_t l = 0; l < s->model.config.n_layers; l++) s->run.layers[l].gathered_of = NULL;
    gr_strategy_forget(s->run.strategy, 0);
}

/* Check that all ranks replace the same arrays. */
static int32_t compare(const struct gr_setup *s, uint32_t what, graft_error *error)
{
    static const char *const names[] = { "the arrays that update() replaces" };
    const uint64_t           values[] = { what };

    return s->data.over != NULL ? gr_comm_compare(s->data.over->comm, names, values, 1, error) : GRAFT_OK;
}

int32_t gr_setup_check_loans(struct gr_setup *s, uint32_t what, graft_error *error)
{
    static const char *const calls[] = { "update(GRAFT_UPDATE_FEATURES)", "update(GRAFT_UPDATE_LABELS)",
                                         "update(GRAFT_UPDATE_TARGETS)", "update(GRAFT_UPDATE_SPLIT)",
                                         "update(GRAFT_UPDATE_EDGE_VALUES)" };

    if (gr_base_options(s->context)->check != GR_CHECK_FULL) return GRAFT_OK;
    return gr_strategy_agree(s->run.strategy,
                             gr_loans_check(&s->data.loans, s->context, what, "the data set", calls, error), error);
}

int32_t gr_setup_update(struct gr_setup *s, uint32_t what, const graft_dataset *data,
                        const struct gr_update_dependent *dependent, graft_error *error)
{
    struct update u = { .data = { .what = what, .given = *data } };
    int32_t       rc = GRAFT_OK;

    GR_TRY_DONE(compare(s, what, error));
    GR_TRY_DONE(prepare(s, &u, dependent, error));
    if (what & GRAFT_UPDATE_FEATURES) GR_TRY_DONE(replace_features(s, &u, error));
    if (u.edges != NULL) {
        gr_derived_take_edges(&s->derived, u.edges);
        if (s->derived.wish.uses_values) gr_strategy_values_end(s->strategy, u.sums, 1);
        u.sums = NULL;
    }
    if (u.edge_features != NULL) gr_derived_take_edge_features(&s->derived, u.edge_features);
    replace_targets(s, &u);
    forget(s);
done:
    gr_dataset_new_fini(&s->data, &u.data);
    gr_free(s->context, u.class_weight);
    gr_free(s->context, u.edge_features);
    if (u.sums != NULL) gr_strategy_values_end(s->strategy, u.sums, 0);
    gr_derived_new_edges_fini(&s->derived, u.edges);
    return rc;
}
