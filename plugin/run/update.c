/* Arrays of the data set that change while the setup lives: they are checked and put into use, and results computed
 * from the old arrays are dropped.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "comm/collective.h"
#include "graph/csr.h"
#include "run/setup.h"

#include <string.h>

enum {
    ALL_TARGETS = GRAFT_UPDATE_LABELS | GRAFT_UPDATE_TARGETS | GRAFT_UPDATE_SPLIT,
    ALL = GRAFT_UPDATE_FEATURES | ALL_TARGETS | GRAFT_UPDATE_EDGE_VALUES | GRAFT_UPDATE_EDGE_FEATURES,
    ARRAYS = 3
};

/* The replaced arrays, and the new arrays. */
struct update {
    uint32_t           what;
    graft_dataset      data; /* of the host, like the next two */
    struct gr_features features;
    void              *owned; /* features over ranks, if the trainer has a copy of them in another form */
    float             *scale; /* and their scale and zero, or NULL */
    graft_dense        float_targets, edge_features;
    graft_csr          sparse, lent_sparse; /* with row pointers of 64 bits; as given by the host */
    int64_t           *row_ptr;             /* of 64 bits, if the host's are shorter */
    struct gr_targets  given;               /* arrays of the host; NULL: not replaced */
    struct gr_targets  next;                /* all arrays, in the order of the setup */
    void              *made[ARRAYS];        /* arrays of `next` that are copies, and not in use yet */
    double            *class_weight;        /* of `next`, likewise */
    float             *edges;               /* [entries x features] new features of edges */
};

/* One array of gr_targets. */
struct array {
    uint32_t    what;
    const char *name;
    int64_t     bytes;  /* of a row */
    int64_t     stride; /* of rows of the host, in bytes */
    const void *given, *now;
};

/* Float targets use the array number of class targets. */
static struct array array_at(const struct gr_setup *s, const struct update *u, int i)
{
    const struct gr_targets *now = &s->run.targets;
    const int64_t            classes = now->n_classes, one = sizeof *now->values;

    switch (i) {
    case 0: return (struct array){ GRAFT_UPDATE_LABELS, "labels", 4, 4, u->data.labels, now->labels };
    case 1:
        if (gr_is_regression(&s->model.config))
            return (struct array){ GRAFT_UPDATE_TARGETS,          "float_targets",       classes * one,
                                   u->float_targets.stride * one, u->float_targets.data, now->values };
        return (struct array){ GRAFT_UPDATE_TARGETS, "targets", classes, classes, u->data.targets, now->targets };
    default: return (struct array){ GRAFT_UPDATE_SPLIT, "a split", 1, 1, u->data.split, now->split };
    }
}

static void set_array(const struct gr_setup *s, struct gr_targets *targets, int i, const void *array, int64_t stride)
{
    if (i == 0) targets->labels = array;
    else if (i == 2) targets->split = array;
    else if (!gr_is_regression(&s->model.config)) targets->targets = array;
    else {
        targets->values = array;
        targets->stride = stride / (int64_t)sizeof *targets->values;
    }
}

/* Whether arrays of the trainer are copies of the host's arrays. */
static int has_copies(const struct gr_setup *s)
{
    return s->data.over != NULL || s->derived.row != NULL;
}

static int32_t update_check_sparse(const struct gr_setup *s, struct update *u, graft_error *error)
{
    const graft_csr *x = &u->sparse;
    int32_t          rc = GRAFT_OK;

    if (u->data.sparse_features == NULL && gr_rows_of_host(s) == 0) return GRAFT_OK;
    if (u->data.sparse_features == NULL)
        return gr_fail(error, GRAFT_ERR_ARG, "sparse features are to be replaced, and are null");
    GR_TRY(gr_struct_read(&u->sparse, sizeof u->sparse, u->data.sparse_features, "dataset.sparse_features", error));
    if (x->n_rows != gr_rows_of_host(s) || x->n_cols != s->data.given.n_features)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "sparse features are %lld x %lld; the trainer was created with %lld x %lld",
                       (long long)x->n_rows, (long long)x->n_cols, (long long)gr_rows_of_host(s),
                       (long long)s->data.given.n_features);
    u->lent_sparse = u->sparse;
    GR_TRY(gr_csr_widen(s->context, &u->sparse, "sparse_features", &u->row_ptr, error));
    rc = gr_csr_check(x, "sparse_features", 0, s->run.threads, error);
done:
    return rc;
}

static int32_t check_features(const struct gr_setup *s, struct update *u, graft_error *error)
{
    const graft_dataset *data = &u->data;
    const graft_dense   *x = &u->features.x;
    int32_t              rc = GRAFT_OK;

    if (s->data.given.sparse_features != NULL) return update_check_sparse(s, u, error);
    u->features.x.stride = s->data.given.n_features;
    if (data->features == NULL && gr_rows_of_host(s) == 0) return GRAFT_OK;
    if (data->features == NULL) return gr_fail(error, GRAFT_ERR_ARG, "features are to be replaced, and are null");
    GR_TRY(gr_features_view(data, &u->features, error));
    if (x->n_rows != gr_rows_of_host(s) || x->n_cols != s->data.given.n_features || x->dtype != s->data.feature_type)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "features are %lld x %lld of dtype %d; the trainer was created with %lld x %lld of dtype %d",
                       (long long)x->n_rows, (long long)x->n_cols, x->dtype, (long long)gr_rows_of_host(s),
                       (long long)s->data.given.n_features, s->data.feature_type);
    rc = gr_features_check(x, s->data.over != NULL ? s->data.over->first[s->data.over->comm->rank] : 0, s->run.threads,
                           error);
done:
    return rc;
}

/* Read the struct of float targets; u->float_targets.data stays NULL without it. */
static int32_t update_float_targets(const struct gr_setup *s, struct update *u, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if ((u->what & GRAFT_UPDATE_TARGETS) == 0 || !gr_is_regression(&s->model.config)) return GRAFT_OK;
    u->float_targets.stride = s->data.given.n_classes;
    if (u->data.float_targets == NULL) return GRAFT_OK;
    GR_TRY(gr_struct_read(&u->float_targets, sizeof u->float_targets, u->data.float_targets, "dataset.float_targets",
                          error));
    rc = gr_float_targets_check(&u->float_targets, gr_rows_of_host(s), s->data.given.n_classes, error);
done:
    return rc;
}

static int32_t check_arrays(const struct gr_setup *s, struct update *u, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(update_float_targets(s, u, error));
    u->given = (struct gr_targets){ .n = gr_rows_of_host(s), .n_classes = s->run.targets.n_classes };
    for (int i = 0; i < ARRAYS; i++) {
        const struct array array = array_at(s, u, i);

        if ((u->what & array.what) == 0) continue;
        if (array.now == NULL)
            return gr_fail(error, GRAFT_ERR_STATE,
                           "this trainer was created without %s, or does not use them: they "
                           "cannot be replaced",
                           array.name);
        if (array.given == NULL && u->given.n > 0)
            return gr_fail(error, GRAFT_ERR_ARG, "%s: to be replaced, and null", array.name);
        set_array(s, &u->given, i, array.given, array.stride);
    }
    rc = gr_targets_check(&u->given, s->data.over != NULL ? s->data.over->first[s->data.over->comm->rank] : 0, error);
done:
    return rc;
}

static int32_t update_check_edges(const struct gr_setup *s, struct update *u, graft_error *error)
{
    const int64_t rows = s->data.over != NULL ? -1 : gr_csr_entries(&s->data.graph);
    int32_t       rc = GRAFT_OK;

    if (!s->model.config.edge_array)
        return gr_fail(error, GRAFT_ERR_STATE,
                       "this trainer was created without edge_features, or does not use them: they cannot be replaced");
    if (u->data.edge_features == NULL)
        return gr_fail(error, GRAFT_ERR_ARG, "edge_features are to be replaced, and are null");
    GR_TRY(gr_struct_read(&u->edge_features, sizeof u->edge_features, u->data.edge_features, "dataset.edge_features",
                          error));
    GR_TRY(gr_edge_features_check(&u->edge_features, rows, s->run.threads, error));
    if (u->edge_features.n_cols != s->model.config.edge_features)
        rc = gr_fail(error, GRAFT_ERR_ARG, "edge_features have %lld columns; the trainer was created with %lld",
                     (long long)u->edge_features.n_cols, (long long)s->model.config.edge_features);
done:
    return rc;
}

static int32_t check_update(const struct gr_setup *s, struct update *u, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (u->what == 0 || (u->what & ~(uint32_t)ALL) != 0)
        return gr_fail(error, GRAFT_ERR_ARG, "what is 0x%x, expected some of GRAFT_UPDATE_... (0x%x)", u->what, ALL);
    if (u->what & GRAFT_UPDATE_FEATURES) GR_TRY(check_features(s, u, error));
    if (u->what & GRAFT_UPDATE_EDGE_FEATURES) GR_TRY(update_check_edges(s, u, error));
    rc = check_arrays(s, u, error);
done:
    return rc;
}

/* *made[n] becomes the rows of the array in the order of the setup. */
static int32_t arrange(const struct gr_setup *s, const struct array *array, void **made, graft_error *error)
{
    const int64_t bytes = array->bytes, stride = s->data.over != NULL ? bytes : array->stride;
    const char   *from = array->given;
    char         *owned = NULL, *out = NULL;
    int32_t       rc = GR_NEW(s->context, out, s->data.n * bytes, error);

    if (rc == GRAFT_OK && s->data.over != NULL && s->derived.row != NULL)
        rc = GR_NEW(s->context, owned, s->data.n * bytes, error);
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    if (s->data.over != NULL)
        GR_TRY(gr_ranks_to_owners(s, from, array->stride, bytes, owned != NULL ? owned : out, error));
    for (int64_t v = 0; v < s->data.n && s->derived.row != NULL; v++)
        memcpy(out + v * bytes, (owned != NULL ? owned : from) + s->derived.row[v] * stride, (uint64_t)bytes);
    *made = out;
    out = NULL;
done:
    gr_free(s->context, owned);
    gr_free(s->context, out);
    return rc;
}

/* A step computes only the rows on which the training vertices of create() depend. */
static int32_t update_count_trained(const struct gr_setup *s, struct update *u, graft_error *error)
{
    double  outside = 0; /* exact to 2^53 */
    int32_t rc = GRAFT_OK;

    for (int64_t v = s->derived.reach[s->model.config.n_layers]; v < s->data.n; v++)
        outside += gr_is_trained(&u->next, v);
    if (u->next.class_weight != NULL) {
        rc = GR_NEW(s->context, u->class_weight, u->next.n_classes, error);
        GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
        u->next.class_weight = u->class_weight;
    }
    GR_TRY(gr_targets_count(&u->next, s->run.strategy, error));
    GR_TRY(gr_strategy_sum(s->run.strategy, &outside, 1, error));
    if (outside > 0)
        return gr_fail(error, GRAFT_ERR_STATE,
                       "%.0f of %lld training vertices are new: they were not in the training set when the trainer was "
                       "created, and its steps do not compute their rows; create it with option 'row_masks' = no",
                       outside, (long long)u->next.n_train);
    if (u->next.n_train > 0 || s->run.targets.n_train == 0) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT,
                   "of %lld vertices none is in the training set and has a %s; a trainer needs one",
                   (long long)s->data.given.n_vertices, gr_is_regression(&s->model.config) ? "known target" : "label");
done:
    return rc;
}

static int32_t make_targets(const struct gr_setup *s, struct update *u, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    u->next = s->run.targets;
    for (int i = 0; i < ARRAYS; i++) {
        const struct array array = array_at(s, u, i);

        if ((u->what & array.what) == 0) continue;
        if (!has_copies(s)) {
            set_array(s, &u->next, i, array.given, array.stride);
        } else {
            GR_TRY(arrange(s, &array, &u->made[i], error));
            set_array(s, &u->next, i, u->made[i], array.bytes);
        }
    }
    if (u->what & ALL_TARGETS) rc = update_count_trained(s, u, error);
done:
    return rc;
}

static int32_t replace_sparse(struct gr_setup *s, struct update *u, graft_error *error)
{
    int64_t *const before = s->data.row_ptr[1];
    int32_t        rc = GRAFT_OK;

    GR_TRY(gr_setup_sparse_refresh(s, &u->sparse, error));
    gr_setup_lend_sparse(s, &u->lent_sparse);
    if (s->data.over != NULL) return GRAFT_OK;
    s->data.row_ptr[1] = u->row_ptr;
    u->row_ptr = before;
    gr_budget_charge(&s->budget, GR_USE_FEATURES, gr_bytes(s->data.row_ptr[1]) - gr_bytes(before));
done:
    return rc;
}

/* Replace values by values of the same type. */
static void take_scale(struct gr_setup *s, const float *scale, const float *zero)
{
    const int64_t width = s->data.given.n_features;

    if (scale == NULL) return;
    memcpy(s->data.feature_scale, scale, (uint64_t)width * sizeof *scale);
    memcpy(s->data.feature_scale + width, zero, (uint64_t)width * sizeof *zero);
}

/* Over ranks: all that can fail before dense features are sent to their owners. */
static int32_t prepare_features(struct gr_setup *s, struct update *u, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (s->data.over == NULL || (u->what & GRAFT_UPDATE_FEATURES) == 0 || s->data.given.features == NULL)
        return GRAFT_OK;
    if (s->data.features.x.dtype == GRAFT_U8) GR_TRY(gr_ranks_share_scale(s, &u->features, &u->scale, error));
    if (gr_features_are_copied(s)) rc = gr_ranks_new_features(s, &u->owned, error);
    rc = gr_strategy_agree(s->run.strategy, rc, error);
done:
    return rc;
}

static int32_t send_features(struct gr_setup *s, struct update *u, graft_error *error)
{
    void *const owned = u->owned != NULL ? u->owned : s->data.owned;
    int32_t     rc = GRAFT_OK;

    GR_TRY(gr_ranks_send_features(s, &u->features.x, owned, error));
    if (u->scale != NULL) take_scale(s, u->scale, u->scale + s->data.given.n_features);
    s->data.features.x.data = owned;
done:
    return rc;
}

static int32_t replace_features(struct gr_setup *s, struct update *u, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if ((u->what & GRAFT_UPDATE_FEATURES) == 0) return GRAFT_OK;
    if (s->data.given.sparse_features != NULL) return replace_sparse(s, u, error);
    if (s->data.over == NULL) {
        take_scale(s, u->features.scale, u->features.zero);
        s->data.features.x = u->features.x;
    } else {
        GR_TRY(send_features(s, u, error));
    }
    gr_setup_lend_features(s, &u->features.x);
    gr_setup_features_refresh(s);
done:
    return rc;
}

/* From here on nothing can fail. */
static void replace_targets(struct gr_setup *s, const struct update *u)
{
    s->run.targets.n_train = u->next.n_train;
    s->run.targets.loss_weight = u->next.loss_weight;
    if (u->class_weight != NULL)
        memcpy(s->run.targets.class_weight, u->class_weight, (uint64_t)u->next.n_classes * sizeof *u->class_weight);
    for (int i = 0; i < ARRAYS; i++) {
        const struct array array = array_at(s, u, i);

        if ((u->what & array.what) == 0) continue;
        if (u->made[i] == NULL) set_array(s, &s->run.targets, i, array.given, array.stride);
        else memcpy((void *)(uintptr_t)array.now, u->made[i], (uint64_t)(s->data.n * array.bytes));
    }
}

/* Drop cached sums of features, and stale rows: they belong to the old data. */
static void forget(struct gr_setup *s)
{
    for (int32_t l = 0; l < s->model.config.n_layers; l++) s->run.layers[l].gathered_of = NULL;
    gr_strategy_forget(s->run.strategy);
}

/* All ranks replace the same arrays. */
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

    if (s->context->options.library.check != GR_CHECK_FULL) return GRAFT_OK;
    return gr_strategy_agree(s->run.strategy,
                             gr_loans_check(&s->data.loans, s->context, what, "the data set", calls, error), error);
}

int32_t gr_setup_update(struct gr_setup *s, uint32_t what, const graft_dataset *data,
                        const struct gr_update_dependent *dependent, graft_error *error)
{
    struct update        u = { .what = what, .data = *data };
    struct gr_new_edges *edges = NULL;
    int32_t              rc = GRAFT_OK;

    GR_TRY(compare(s, what, error));
    GR_TRY(gr_strategy_agree(s->run.strategy, check_update(s, &u, error), error));
    GR_TRY(prepare_features(s, &u, error));
    GR_TRY(make_targets(s, &u, error));
    if (what & GRAFT_UPDATE_EDGE_VALUES) GR_TRY(gr_new_edges_begin(s, data, &edges, error));
    if (what & GRAFT_UPDATE_EDGE_FEATURES) GR_TRY(gr_new_edge_features(s, &u.edge_features, &u.edges, error));
    if (dependent != NULL) GR_TRY(dependent->prepare(dependent->arg, &u.next, edges, error));
    GR_TRY(replace_features(s, &u, error));
    if (edges != NULL) gr_new_edges_end(s, edges);
    if (u.edges != NULL) gr_edge_features_take(s, u.edges);
    replace_targets(s, &u);
    gr_setup_lend_targets(s, what, data, &u.float_targets);
    forget(s);
done:
    for (int i = 0; i < ARRAYS; i++) gr_free(s->context, u.made[i]);
    gr_free(s->context, u.class_weight);
    gr_free(s->context, u.edges);
    gr_free(s->context, u.scale);
    if (u.owned != NULL) gr_ranks_drop_features(s, &u.owned);
    gr_free(s->context, u.row_ptr);
    gr_new_edges_fini(s, edges);
    return rc;
}
