/* Exchange of the rows of a data set over ranks, from slices to owners and back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/dense_view.h"
#include "base/dtype.h"
#include "comm/collective.h"
#include "dataset/dataset.h"
#include "graph/csr.h"

#include <string.h>

/* Send rows of `bytes` bytes between slices and owners; in `to` they follow each other without gaps. */
static int32_t redistribute_rows(const struct gr_dataset *d, int32_t direction, const void *from, int64_t stride,
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
    return gr_graph_redistribute(d->over, &args, own, error);
}

int32_t gr_dataset_send_rows(const struct gr_dataset *d, const void *from, int64_t stride, int64_t bytes, void *to,
                             graft_error *error)
{
    return redistribute_rows(d, GRAFT_TO_OWNERS, from, stride, bytes, to, GR_OWN_TO, error);
}

int32_t gr_dataset_return_rows(const struct gr_dataset *d, const void *from, int64_t bytes, void *to,
                               graft_error *error)
{
    return redistribute_rows(d, GRAFT_TO_SLICES, from, bytes, bytes, to, GR_OWN_FROM | GR_OWN_TO, error);
}

/* *here becomes 1 if it is not 0 on any rank. Collective. */
static int32_t any_rank(const struct gr_dataset *d, int *here, graft_error *error)
{
    double        count = *here != 0;
    const int32_t rc = gr_dataset_sum(d, &count, 1, error);

    if (rc == GRAFT_OK) *here = count > 0;
    return rc;
}

/* Replace a target array of the slice by that of the owned rows, unless no rank has this array. */
static int32_t take(struct gr_dataset *d, struct gr_targets *targets, int i, graft_error *error)
{
    const struct gr_target_array a = gr_dataset_target_array(targets, i);
    void                        *owned = NULL;
    int                          given = a.data != NULL;
    int32_t                      rc = GRAFT_OK;

    GR_TRY(any_rank(d, &given, error));
    if (!given) return GRAFT_OK;
    if (a.data == NULL && d->over->n_slice > 0)
        rc = gr_fail(error, GRAFT_ERR_ARG, "%s are not given, and other ranks give them", a.name);
    else if ((owned = gr_budget_new(d->budget, GR_USE_GRAPH, d->over->n_owned * a.bytes, 1, a.name, error)) == NULL)
        rc = GRAFT_ERR_NOMEM;
    GR_TRY(gr_dataset_agree(d, rc, error));
    GR_TRY(gr_dataset_send_rows(d, a.data, a.stride, a.bytes, owned, error));
    gr_dataset_set_target_array(targets, i, owned, a.bytes);
    return GRAFT_OK;
}

/* The memory and the route for sending the rows of a sparse slice to their owners. */
struct parcel {
    struct gr_route edges;
    int64_t        *length; /* [n_slice] number of entries of each row */
    char           *packed;
};

static int32_t parcel_init(struct gr_dataset *d, const graft_csr *rows, struct parcel *p, graft_error *error)
{
    const graft_graph *g = d->over;
    const int64_t      entries = g->n_slice > 0 ? gr_csr_entries(rows) : 0;

    GR_TRY(gr_comm_route_init(&p->edges, g->comm, error));
    GR_TRY(GR_NEW(d->context, p->length, g->n_slice, error));
    GR_TRY(GR_NEW(d->context, p->packed, entries * (int64_t)sizeof(int64_t), error));
    for (int64_t i = 0; i < g->n_slice; i++) p->length[i] = rows->row_ptr[i + 1] - rows->row_ptr[i];
    return GRAFT_OK;
}

static void parcel_fini(const struct gr_dataset *d, struct parcel *p)
{
    gr_comm_route_fini(&p->edges);
    gr_free(d->context, p->length);
    gr_free(d->context, p->packed);
}

/* Allocate memory: with `stays` from the budget, which frees it; else for gr_csr_fini(). */
static void *new_rows(struct gr_dataset *d, int stays, int64_t bytes, const char *name, graft_error *error)
{
    char *memory = NULL;

    if (stays) return gr_budget_new(d->budget, GR_USE_FEATURES, bytes, 1, name, error);
    return GR_NEW(d->context, memory, bytes, error) < 0 ? NULL : memory;
}

int32_t gr_dataset_send_sparse(struct gr_dataset *d, const graft_csr *sparse, int stays, struct gr_csr *made,
                               graft_error *error)
{
    const graft_graph   *g = d->over;
    int64_t              index, entries;
    struct parcel        p = { 0 };
    int                  valued = sparse->values != NULL, wide = sparse->index_type == GRAFT_I64;
    graft_redistribution args = {
        .size = sizeof args, .direction = GRAFT_TO_OWNERS, .row_bytes = 8, .from_stride = 8, .to_stride = 8
    };
    int32_t rc = GRAFT_OK;

    GR_TRY_DONE(any_rank(d, &valued, error));
    GR_TRY_DONE(any_rank(d, &wide, error));
    if (g->n_slice > 0 && (wide != (sparse->index_type == GRAFT_I64) || valued != (sparse->values != NULL)))
        rc =
            gr_fail(error, GRAFT_ERR_ARG, "sparse features are of another kind (index type, values) than other ranks'");
    if (rc == GRAFT_OK) rc = parcel_init(d, sparse, &p, error);
    made->row_ptr = rc < 0 ? NULL : new_rows(d, stays, 8 * (g->n_owned + 1), "rows of sparse features", error);
    if (rc == GRAFT_OK && made->row_ptr == NULL) rc = GRAFT_ERR_NOMEM;
    GR_TRY_DONE(gr_dataset_agree(d, rc, error));
    index = wide ? 8 : 4;
    args.from = p.length;
    args.to = made->row_ptr + 1;
    GR_TRY_DONE(gr_graph_redistribute(d->over, &args, GR_OWN_FROM | GR_OWN_TO, error));
    GR_TRY_DONE(gr_graph_route_edges(g, sparse->row_ptr, &p.edges, error));
    for (int64_t i = 0; i < g->n_owned; i++) made->row_ptr[i + 1] += made->row_ptr[i];
    entries = made->row_ptr[g->n_owned];
    made->col_idx = new_rows(d, stays, entries * index, "columns of sparse features", error);
    if (valued && made->col_idx != NULL)
        made->values = new_rows(d, stays, entries * 4, "values of sparse features", error);
    rc = made->col_idx == NULL || (valued && made->values == NULL) ? GRAFT_ERR_NOMEM : GRAFT_OK;
    GR_TRY_DONE(gr_dataset_agree(d, rc, error));
    GR_TRY_DONE(
        gr_graph_send_edges(g, sparse->row_ptr, &p.edges, sparse->col_idx, index, p.packed, made->col_idx, error));
    if (valued)
        GR_TRY_DONE(
            gr_graph_send_edges(g, sparse->row_ptr, &p.edges, sparse->values, 4, p.packed, made->values, error));
    made->view = *sparse;
    made->view.n_rows = g->n_owned;
    made->view.index_type = wide ? GRAFT_I64 : GRAFT_I32;
    made->view.row_ptr = made->row_ptr;
    made->view.col_idx = made->col_idx;
    made->view.values = made->values;
done:
    parcel_fini(d, &p);
    return rc;
}

/* Replace the sparse features of the slice by the features of the owned vertices. */
static int32_t take_sparse(struct gr_dataset *d, graft_error *error)
{
    struct gr_csr made = { 0 };
    const int32_t rc = gr_dataset_send_sparse(d, &d->sparse_features, 1, &made, error);

    if (rc == GRAFT_OK) d->sparse_features = made.view;
    return rc;
}

/* Find the lowest rank whose slice has rows. */
static int32_t find_first_with_rows(const struct gr_dataset *d, int64_t *rank, graft_error *error)
{
    *rank = d->over->n_slice > 0 ? d->over->comm->rank : d->over->comm->n_ranks;
    return gr_comm_min(d->over->comm, rank, 1, error);
}

int32_t gr_dataset_share_scale(const struct gr_dataset *d, const struct gr_features *given, float **scale,
                               graft_error *error)
{
    const int64_t  width = d->given.n_features;
    const uint64_t bytes = (uint64_t)width * sizeof **scale;
    int64_t        first;
    int32_t        rc = GRAFT_OK;

    GR_TRY(gr_dataset_agree(d, GR_NEW(d->context, *scale, 2 * width, error), error));
    GR_TRY(find_first_with_rows(d, &first, error));
    if (first == d->over->comm->rank) {
        memcpy(*scale, given->scale, bytes);
        memcpy(*scale + width, given->zero, bytes);
    }
    GR_TRY(gr_comm_broadcast(d->over->comm, (int32_t)first, *scale, 2 * bytes, error));
    if (d->over->n_slice > 0 &&
        (memcmp(*scale, given->scale, bytes) != 0 || memcmp(*scale + width, given->zero, bytes) != 0))
        rc = gr_fail(error, GRAFT_ERR_ARG, "feature_scale or feature_zero differs from rank %lld; expected equal ones",
                     (long long)first);
    return gr_dataset_agree(d, rc, error);
}

/* Check that all ranks have dense features of one type. A rank without rows takes the type and scale of the others. */
static int32_t agree_on_type(struct gr_dataset *d, graft_error *error)
{
    struct gr_features *f = &d->features;
    const int64_t       width = d->given.n_features;
    float              *scale = NULL;
    int64_t             first, type = f->x.dtype;
    int32_t             rc = GRAFT_OK;

    GR_TRY_DONE(find_first_with_rows(d, &first, error));
    GR_TRY_DONE(gr_comm_broadcast(d->over->comm, (int32_t)first, &type, sizeof type, error));
    if (d->over->n_slice > 0 && f->x.dtype != type)
        rc = gr_fail(error, GRAFT_ERR_ARG, "features have dtype %d; expected %lld, which rank %lld has", f->x.dtype,
                     (long long)type, (long long)first);
    else if (type == GRAFT_U8 && d->feature_scale == NULL)
        rc = GR_BUDGET_NEW(d->budget, GR_USE_FEATURES, d->feature_scale, 2 * width, error);
    GR_TRY_DONE(gr_dataset_agree(d, rc, error));
    f->x.dtype = (graft_dtype)type;
    if (type != GRAFT_U8) return GRAFT_OK;
    GR_TRY_DONE(gr_dataset_share_scale(d, f, &scale, error));
    memcpy(d->feature_scale, scale, 2 * (uint64_t)width * sizeof *scale);
    f->scale = d->feature_scale;
    f->zero = d->feature_scale + width;
done:
    gr_free(d->context, scale);
    return rc;
}

int32_t gr_dataset_new_features(struct gr_dataset *d, void **owned, graft_error *error)
{
    const int64_t bytes = d->over->n_owned * d->given.n_features * gr_dtype_bytes(d->features.x.dtype);
    char         *memory = NULL;

    GR_TRY(
        gr_budget_check(d->budget, (double)gr_memory_block_bytes(bytes, 1), "features (of the owned vertices)", error));
    GR_TRY(GR_NEW(d->context, memory, bytes, error));
    gr_budget_charge(d->budget, GR_USE_FEATURES, gr_memory_bytes(memory));
    *owned = memory;
    return GRAFT_OK;
}

void gr_dataset_drop_features(struct gr_dataset *d, void **owned)
{
    gr_budget_charge(d->budget, GR_USE_FEATURES, -gr_memory_bytes(*owned));
    gr_free(d->context, *owned);
    *owned = d->features.x.data = NULL;
}

int32_t gr_dataset_send_features(const struct gr_dataset *d, const graft_dense *slice, void *owned, graft_error *error)
{
    const int64_t element = gr_dtype_bytes(d->features.x.dtype);

    return gr_dataset_send_rows(d, slice->data, slice->stride * element, d->given.n_features * element, owned, error);
}

static int32_t take_dense(struct gr_dataset *d, graft_error *error)
{
    graft_dense *f = &d->features.x;

    GR_TRY(agree_on_type(d, error));
    GR_TRY(gr_dataset_agree(d, gr_dataset_new_features(d, &d->owned, error), error));
    GR_TRY(gr_dataset_send_features(d, f, d->owned, error));
    *f = gr_dense_view(d->owned, f->dtype, d->over->n_owned, f->n_cols, f->n_cols);
    return GRAFT_OK;
}

int32_t gr_dataset_distribute(struct gr_dataset *d, struct gr_targets *now, graft_error *error)
{
    int     sparse = d->given.sparse_features != NULL;
    int32_t rc = GRAFT_OK;

    if (d->over == NULL) return GRAFT_OK;
    GR_TRY(any_rank(d, &sparse, error));
    if (sparse != (d->given.sparse_features != NULL))
        rc = gr_fail(error, GRAFT_ERR_ARG, "features are dense, but sparse on other ranks");
    GR_TRY(gr_dataset_agree(d, rc, error));
    GR_TRY(sparse ? take_sparse(d, error) : take_dense(d, error));
    for (int i = 0; i < GR_TARGET_ARRAYS; i++) GR_TRY(take(d, now, i, error));
    d->n = now->n = d->over->n_owned;
    return GRAFT_OK;
}
