/* The data set over ranks, from slices to owners; and results of vertices from owners to slices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/dense_view.h"
#include "base/dtype.h"
#include "comm/collective.h"
#include "graph/csr.h"
#include "run/setup.h"

#include <string.h>

/* Rows of `bytes` bytes between slices and owners; `to` has them without gaps. */
static int32_t redistribute_rows(const struct gr_setup *s, int32_t direction, const void *from, int64_t stride,
                                 int64_t bytes, void *to, int own, graft_error *error)
{
    const graft_redistribution args = { .size = sizeof args,
                                        .direction = direction,
                                        .row_bytes = bytes,
                                        .from = from,
                                        .from_stride = stride,
                                        .to = to,
                                        .to_stride = bytes };

    GR_ASSERT(bytes >= 0);
    return gr_graph_redistribute(s->data.over, &args, own, error);
}

int32_t gr_ranks_to_owners(const struct gr_setup *s, const void *from, int64_t stride, int64_t bytes, void *to,
                           graft_error *error)
{
    return redistribute_rows(s, GRAFT_TO_OWNERS, from, stride, bytes, to, GR_OWN_TO, error);
}

/* *array[n_slice] of rows of `bytes` bytes becomes the array of the owned rows. NULL stays NULL if no rank has the
 * array. */
static int32_t take(struct gr_setup *s, enum gr_use use, const void **array, int64_t bytes, int64_t stride,
                    const char *name, graft_error *error)
{
    void   *owned = NULL;
    int     given = *array != NULL;
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_strategy_any(s->run.strategy, &given, error));
    if (!given) return GRAFT_OK;
    if (*array == NULL && s->data.over->n_slice > 0)
        rc = gr_fail(error, GRAFT_ERR_ARG, "%s are not given, and other ranks give them", name);
    else if ((owned = gr_budget_new(&s->budget, use, s->data.over->n_owned * bytes, 1, name, error)) == NULL)
        rc = GRAFT_ERR_NOMEM;
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    GR_TRY(gr_ranks_to_owners(s, *array, stride, bytes, owned, error));
    *array = owned;
done:
    return rc;
}

/* The rows of a sparse slice in transit to their owners. */
struct parcel {
    struct gr_route edges;
    int64_t        *length; /* [n_slice] */
    char           *packed;
};

static int32_t parcel_init(struct gr_setup *s, const graft_csr *rows, struct parcel *p, graft_error *error)
{
    const graft_graph *g = s->data.over;
    const int64_t      entries = g->n_slice > 0 ? gr_csr_entries(rows) : 0;
    int32_t            rc = GRAFT_OK;

    GR_TRY(gr_route_init(&p->edges, g->comm, error));
    GR_TRY(GR_NEW(s->context, p->length, g->n_slice, error));
    GR_TRY(GR_NEW(s->context, p->packed, entries * (int64_t)sizeof(int64_t), error));
    for (int64_t i = 0; i < g->n_slice; i++) p->length[i] = rows->row_ptr[i + 1] - rows->row_ptr[i];
done:
    return rc;
}

static void parcel_fini(const struct gr_setup *s, struct parcel *p)
{
    gr_route_fini(&p->edges);
    gr_free(s->context, p->length);
    gr_free(s->context, p->packed);
}

/* Memory that stays with the setup, or is freed by gr_csr_fini(). */
static void *new_rows(struct gr_setup *s, int stays, int64_t bytes, const char *name, graft_error *error)
{
    char *memory = NULL;

    if (stays) return gr_budget_new(&s->budget, GR_USE_FEATURES, bytes, 1, name, error);
    return GR_NEW(s->context, memory, bytes, error) < 0 ? NULL : memory;
}

int32_t gr_ranks_take_sparse(struct gr_setup *s, const graft_csr *sparse, int stays, struct gr_csr *made,
                             graft_error *error)
{
    const graft_graph   *g = s->data.over;
    int64_t              index, entries;
    struct parcel        p = { 0 };
    int                  valued = sparse->values != NULL, wide = sparse->index_type == GRAFT_I64;
    graft_redistribution args = {
        .size = sizeof args, .direction = GRAFT_TO_OWNERS, .row_bytes = 8, .from_stride = 8, .to_stride = 8
    };
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_strategy_any(s->run.strategy, &valued, error));
    GR_TRY(gr_strategy_any(s->run.strategy, &wide, error));
    if (g->n_slice > 0 && (wide != (sparse->index_type == GRAFT_I64) || valued != (sparse->values != NULL)))
        rc =
            gr_fail(error, GRAFT_ERR_ARG, "sparse features are of another kind (index type, values) than other ranks'");
    if (rc == GRAFT_OK) rc = parcel_init(s, sparse, &p, error);
    made->row_ptr = rc < 0 ? NULL : new_rows(s, stays, 8 * (g->n_owned + 1), "rows of sparse features", error);
    if (rc == GRAFT_OK && made->row_ptr == NULL) rc = GRAFT_ERR_NOMEM;
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    index = wide ? 8 : 4;
    args.from = p.length;
    args.to = made->row_ptr + 1;
    GR_TRY(gr_graph_redistribute(s->data.over, &args, GR_OWN_FROM | GR_OWN_TO, error));
    GR_TRY(gr_graph_route_edges(g, sparse->row_ptr, &p.edges, error));
    for (int64_t i = 0; i < g->n_owned; i++) made->row_ptr[i + 1] += made->row_ptr[i];
    entries = made->row_ptr[g->n_owned];
    made->col_idx = new_rows(s, stays, entries * index, "columns of sparse features", error);
    if (valued && made->col_idx != NULL)
        made->values = new_rows(s, stays, entries * 4, "values of sparse features", error);
    rc = made->col_idx == NULL || (valued && made->values == NULL) ? GRAFT_ERR_NOMEM : GRAFT_OK;
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    GR_TRY(gr_graph_send_edges(g, sparse->row_ptr, &p.edges, sparse->col_idx, index, p.packed, made->col_idx, error));
    if (valued)
        GR_TRY(gr_graph_send_edges(g, sparse->row_ptr, &p.edges, sparse->values, 4, p.packed, made->values, error));
    made->view = *sparse;
    made->view.n_rows = g->n_owned;
    made->view.index_type = wide ? GRAFT_I64 : GRAFT_I32;
    made->view.row_ptr = made->row_ptr;
    made->view.col_idx = made->col_idx;
    made->view.values = made->values;
done:
    parcel_fini(s, &p);
    return rc;
}

/* Replace the sparse features of the slice by the features of the owned vertices. */
static int32_t take_sparse(struct gr_setup *s, graft_error *error)
{
    struct gr_csr made = { 0 };
    const int32_t rc = gr_ranks_take_sparse(s, &s->data.sparse_features, 1, &made, error);

    if (rc == GRAFT_OK) s->data.sparse_features = made.view;
    return rc;
}

/* The lowest rank whose slice has rows. */
static int32_t find_first_with_rows(const struct gr_setup *s, int64_t *rank, graft_error *error)
{
    *rank = s->data.over->n_slice > 0 ? s->data.over->comm->rank : s->data.over->comm->n_ranks;
    return gr_comm_min(s->data.over->comm, rank, 1, error);
}

int32_t gr_ranks_share_scale(const struct gr_setup *s, const struct gr_features *given, float **scale,
                             graft_error *error)
{
    const int64_t  width = s->data.given.n_features;
    const uint64_t bytes = (uint64_t)width * sizeof **scale;
    int64_t        first;
    int32_t        rc = GRAFT_OK;

    GR_TRY(gr_strategy_agree(s->run.strategy, GR_NEW(s->context, *scale, 2 * width, error), error));
    GR_TRY(find_first_with_rows(s, &first, error));
    if (first == s->data.over->comm->rank) {
        memcpy(*scale, given->scale, bytes);
        memcpy(*scale + width, given->zero, bytes);
    }
    GR_TRY(gr_comm_broadcast(s->data.over->comm, (int32_t)first, *scale, 2 * bytes, error));
    if (s->data.over->n_slice > 0 &&
        (memcmp(*scale, given->scale, bytes) != 0 || memcmp(*scale + width, given->zero, bytes) != 0))
        rc = gr_fail(error, GRAFT_ERR_ARG, "feature_scale or feature_zero differs from rank %lld; expected equal ones",
                     (long long)first);
    rc = gr_strategy_agree(s->run.strategy, rc, error);
done:
    return rc;
}

/* All ranks have dense features of one type; a rank without rows takes the type and scale of the others. */
static int32_t agree_on_type(struct gr_setup *s, graft_error *error)
{
    struct gr_features *f = &s->data.features;
    const int64_t       width = s->data.given.n_features;
    float              *scale = NULL;
    int64_t             first, type = f->x.dtype;
    int32_t             rc = GRAFT_OK;

    GR_TRY(find_first_with_rows(s, &first, error));
    GR_TRY(gr_comm_broadcast(s->data.over->comm, (int32_t)first, &type, sizeof type, error));
    if (s->data.over->n_slice > 0 && f->x.dtype != type)
        rc = gr_fail(error, GRAFT_ERR_ARG, "features have dtype %d; expected %lld, which rank %lld has", f->x.dtype,
                     (long long)type, (long long)first);
    else if (type == GRAFT_U8 && s->data.feature_scale == NULL)
        rc = GR_BUDGET_NEW(&s->budget, GR_USE_FEATURES, s->data.feature_scale, 2 * width, error);
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    f->x.dtype = (graft_dtype)type;
    if (type != GRAFT_U8) return GRAFT_OK;
    GR_TRY(gr_ranks_share_scale(s, f, &scale, error));
    memcpy(s->data.feature_scale, scale, 2 * (uint64_t)width * sizeof *scale);
    f->scale = s->data.feature_scale;
    f->zero = s->data.feature_scale + width;
done:
    gr_free(s->context, scale);
    return rc;
}

int32_t gr_ranks_new_features(struct gr_setup *s, void **owned, graft_error *error)
{
    const int64_t bytes = s->data.over->n_owned * s->data.given.n_features * gr_dtype_bytes(s->data.features.x.dtype);
    char         *memory = NULL;
    int32_t       rc = GRAFT_OK;

    GR_TRY(gr_budget_check(&s->budget, (double)gr_block_bytes(bytes, 1), "features (of the owned vertices)", error));
    GR_TRY(GR_NEW(s->context, memory, bytes, error));
    gr_budget_charge(&s->budget, GR_USE_FEATURES, gr_bytes(memory));
    *owned = memory;
done:
    return rc;
}

void gr_ranks_drop_features(struct gr_setup *s, void **owned)
{
    gr_budget_charge(&s->budget, GR_USE_FEATURES, -gr_bytes(*owned));
    gr_free(s->context, *owned);
    *owned = s->data.features.x.data = NULL;
}

int32_t gr_ranks_send_features(const struct gr_setup *s, const graft_dense *slice, void *owned, graft_error *error)
{
    const int64_t element = gr_dtype_bytes(s->data.features.x.dtype);

    return gr_ranks_to_owners(s, slice->data, slice->stride * element, s->data.given.n_features * element, owned,
                              error);
}

static int32_t take_dense(struct gr_setup *s, graft_error *error)
{
    graft_dense *f = &s->data.features.x;
    int32_t      rc = GRAFT_OK;

    GR_TRY(agree_on_type(s, error));
    GR_TRY(gr_strategy_agree(s->run.strategy, gr_ranks_new_features(s, &s->data.owned, error), error));
    GR_TRY(gr_ranks_send_features(s, f, s->data.owned, error));
    *f = gr_dense_view(s->data.owned, f->dtype, s->data.over->n_owned, f->n_cols, f->n_cols);
done:
    return rc;
}

int32_t gr_ranks_take(struct gr_setup *s, graft_error *error)
{
    struct gr_targets *now = &s->run.targets;
    const void        *labels = now->labels, *targets = now->targets, *split = now->split, *values = now->values;
    const int64_t      row = now->n_classes * (int64_t)sizeof *now->values;
    int                sparse = s->data.given.sparse_features != NULL;
    int32_t            rc = GRAFT_OK;

    if (s->data.over == NULL) return GRAFT_OK;
    GR_TRY(gr_strategy_any(s->run.strategy, &sparse, error));
    if (sparse != (s->data.given.sparse_features != NULL))
        rc = gr_fail(error, GRAFT_ERR_ARG, "features are dense, but sparse on other ranks");
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    GR_TRY(sparse ? take_sparse(s, error) : take_dense(s, error));
    GR_TRY(take(s, GR_USE_GRAPH, &labels, 4, 4, "labels", error));
    GR_TRY(take(s, GR_USE_GRAPH, &targets, s->data.given.n_classes, s->data.given.n_classes, "targets", error));
    GR_TRY(take(s, GR_USE_GRAPH, &split, 1, 1, "split", error));
    GR_TRY(take(s, GR_USE_GRAPH, &values, row, now->stride * (int64_t)sizeof *now->values, "float_targets", error));
    now->labels = labels;
    now->targets = targets;
    now->split = split;
    now->values = values;
    now->stride = now->n_classes;
    s->data.n = s->data.over->n_owned;
    s->data.first = 0;
done:
    return rc;
}

/* Rows of `bytes` bytes from the order of owners to the order of slices; both arrays belong to the library. */
static int32_t give(struct gr_setup *s, const void *from, int64_t bytes, void *to, graft_error *error)
{
    return redistribute_rows(s, GRAFT_TO_SLICES, from, bytes, bytes, to, GR_OWN_FROM | GR_OWN_TO, error);
}

/* Predictions of this rank, and predictions that are sent to slices and received. */
struct prediction {
    int32_t *mine, *slice; /* labels; outputs are written when nothing can fail afterwards */
    float   *logits;       /* [n x classes] in the order of owners, if the setup has another order */
    float   *rows;
};

static int32_t prediction_init(const struct gr_setup *s, struct prediction *p, int labels, int logits,
                               graft_error *error)
{
    const int64_t classes = s->data.given.n_classes, n_slice = s->data.over->n_slice;
    int32_t       rc = GRAFT_OK;

    if (labels) GR_TRY(GR_NEW(s->context, p->mine, s->data.n, error));
    if (labels) GR_TRY(GR_NEW(s->context, p->slice, n_slice, error));
    if (logits) GR_TRY(GR_NEW(s->context, p->rows, n_slice * classes, error));
    if (logits && s->derived.row != NULL) rc = GR_NEW(s->context, p->logits, s->data.n * classes, error);
done:
    return rc;
}

/* Fill labels and logits in the order of rows of the owner, from the vertices of the setup. */
static void fill_prediction(const struct gr_setup *s, const float *logits, struct prediction *p)
{
    const int64_t classes = s->data.given.n_classes;

    for (int64_t v = 0; v < s->data.n; v++) {
        const int64_t row = gr_vertex(s->derived.row, v);

        if (p->mine != NULL) p->mine[row] = (int32_t)gr_argmax(logits + v * classes, classes);
        if (p->logits != NULL)
            memcpy(p->logits + row * classes, logits + v * classes, (uint64_t)classes * sizeof *logits);
    }
}

static void prediction_fini(const struct gr_setup *s, struct prediction *p)
{
    gr_free(s->context, p->mine);
    gr_free(s->context, p->slice);
    gr_free(s->context, p->logits);
    gr_free(s->context, p->rows);
}

int32_t gr_ranks_give(struct gr_setup *s, const float *logits, const struct gr_outputs *o, graft_error *error)
{
    const int64_t     classes = s->data.given.n_classes, first = s->data.over->first[s->data.over->comm->rank];
    int               wants_labels = o->labels != NULL, wants_logits = o->logits != NULL || o->probabilities != NULL;
    struct prediction p = { 0 };
    int32_t           rc = GRAFT_OK;

    GR_ASSERT(s->data.n == s->data.over->n_owned);
    GR_TRY(gr_strategy_any(s->run.strategy, &wants_labels, error));
    GR_TRY(gr_strategy_any(s->run.strategy, &wants_logits, error));
    GR_TRY(gr_strategy_agree(s->run.strategy, prediction_init(s, &p, wants_labels, wants_logits, error), error));
    fill_prediction(s, logits, &p);
    if (wants_labels) GR_TRY(give(s, p.mine, 4, p.slice, error));
    if (wants_logits) GR_TRY(give(s, p.logits != NULL ? p.logits : logits, classes * 4, p.rows, error));
    for (int64_t i = 0; i < gr_setup_output_rows(s, o); i++) {
        const int64_t row = o->vertices != NULL ? o->vertices[i] - first : i;

        if (o->labels != NULL) o->labels[i] = p.slice[row];
        if (wants_logits) gr_setup_put_row(s, o, i, p.rows + row * classes);
    }
done:
    prediction_fini(s, &p);
    return rc;
}
