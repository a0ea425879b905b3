/* "graft.edge/1": reads the host's structs, checks them, and calls edge/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "edge/edge.h"
#include "kernel/kernel.h"

/* Copies of the host's dense operands, and what error messages call them. */
struct dense_operands {
    graft_dense        dense[3];
    const graft_dense *theirs[3];
    const char        *name[3];
};

static int32_t read_operands(struct dense_operands *o, graft_error *error)
{
    for (int i = 0; i < 3 && o->name[i] != NULL; i++) {
        const int32_t rc = gr_struct_read(&o->dense[i], sizeof o->dense[i], o->theirs[i], o->name[i], error);

        if (rc < 0) return rc;
    }
    return GRAFT_OK;
}

/* Read the operands of an operator on the entries of a matrix. */
static int32_t read_with_matrix(const graft_context *context, const graft_matrix *a, struct dense_operands *o,
                                graft_error *error)
{
    const int32_t rc = gr_matrix_check(context, a, "a", 1, error);

    return rc < 0 ? rc : read_operands(o, error);
}

static struct gr_team team_of(const graft_context *context, int32_t threads)
{
    return (struct gr_team){ .threads = gr_context_threads(context, threads) };
}

static int32_t edge_gather_rows(graft_context *context, const graft_dense *x, const graft_index *index,
                                const graft_dense *out, int32_t threads, graft_error *error)
{
    struct gr_call        call;
    struct dense_operands o = { .theirs = { x, out }, .name = { "x", "out" } };
    graft_index           ours;
    int32_t               rc = gr_call_begin(&call, context, GRAFT_EDGE_ID " gather_rows", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(gr_struct_read(&ours, sizeof ours, index, "index", &call.error));
    GR_TRY_DONE(read_operands(&o, &call.error));
    threads = gr_context_threads(context, threads);
    GR_TRY_DONE(gr_edge_check_gather_rows(&o.dense[0], &ours, &o.dense[1], threads, &call.error));
    gr_edge_gather_rows(&o.dense[0], &ours, &o.dense[1], threads);
done:
    return gr_call_end(&call, rc);
}

static int32_t edge_index_add(graft_context *context, const graft_dense *x, const graft_index *index,
                              const graft_dense *out, int32_t threads, graft_error *error)
{
    struct gr_call        call;
    struct dense_operands o = { .theirs = { x, out }, .name = { "x", "out" } };
    graft_index           ours;
    int32_t               rc = gr_call_begin(&call, context, GRAFT_EDGE_ID " index_add", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(gr_struct_read(&ours, sizeof ours, index, "index", &call.error));
    GR_TRY_DONE(read_operands(&o, &call.error));
    threads = gr_context_threads(context, threads);
    GR_TRY_DONE(gr_edge_check_index_add(&o.dense[0], &ours, &o.dense[1], threads, &call.error));
    gr_edge_index_add(context, &o.dense[0], &ours, &o.dense[1], threads);
done:
    return gr_call_end(&call, rc);
}

static int32_t edge_sddmm(graft_context *context, graft_matrix *a, const graft_dense *x, const graft_dense *y,
                          const graft_dense *out, int32_t threads, graft_error *error)
{
    struct gr_call        call;
    struct dense_operands o = { .theirs = { x, y, out }, .name = { "x", "y", "out" } };
    int32_t               rc = gr_call_begin(&call, context, GRAFT_EDGE_ID " sddmm", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(read_with_matrix(context, a, &o, &call.error));
    GR_TRY_DONE(gr_edge_check_sddmm(&a->csr, &o.dense[0], &o.dense[1], &o.dense[2], &call.error));
    gr_edge_sddmm(&a->csr, &o.dense[0], &o.dense[1], &o.dense[2], NULL, team_of(context, threads));
done:
    return gr_call_end(&call, rc);
}

static int32_t edge_softmax(graft_context *context, graft_matrix *a, const graft_dense *s, const graft_dense *p,
                            int32_t threads, graft_error *error)
{
    struct gr_call        call;
    struct dense_operands o = { .theirs = { s, p }, .name = { "s", "p" } };
    int32_t               rc = gr_call_begin(&call, context, GRAFT_EDGE_ID " softmax", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(read_with_matrix(context, a, &o, &call.error));
    GR_TRY_DONE(gr_edge_check_softmax(&a->csr, &o.dense[0], &o.dense[1], &call.error));
    gr_edge_softmax(&a->csr, &o.dense[0], &o.dense[1], NULL, team_of(context, threads));
done:
    return gr_call_end(&call, rc);
}

static int32_t edge_softmax_backward(graft_context *context, graft_matrix *a, const graft_dense *p,
                                     const graft_dense *dp, const graft_dense *ds, int32_t threads, graft_error *error)
{
    struct gr_call        call;
    struct dense_operands o = { .theirs = { p, dp, ds }, .name = { "p", "dp", "ds" } };
    int32_t               rc = gr_call_begin(&call, context, GRAFT_EDGE_ID " softmax_backward", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(read_with_matrix(context, a, &o, &call.error));
    GR_TRY_DONE(gr_edge_check_softmax_backward(&a->csr, &o.dense[0], &o.dense[1], &o.dense[2], &call.error));
    gr_edge_softmax_backward(&a->csr, &o.dense[0], &o.dense[1], &o.dense[2], NULL, team_of(context, threads));
done:
    return gr_call_end(&call, rc);
}

static int32_t edge_mxm(graft_context *context, graft_matrix *a, uint32_t flags, const graft_dense *w,
                        const graft_dense *y, const graft_dense *out, int32_t threads, graft_error *error)
{
    struct gr_call            call;
    struct dense_operands     o = { .theirs = { w, out, y }, .name = { "w", "out", y != NULL ? "y" : NULL } };
    const graft_dense *const  ours = y != NULL ? &o.dense[2] : NULL;
    const struct gr_edge_map *map = NULL;
    int32_t                   rc = gr_call_begin(&call, context, GRAFT_EDGE_ID " mxm", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(read_with_matrix(context, a, &o, &call.error));
    GR_TRY_DONE(gr_edge_check_mxm(&a->csr, flags, &o.dense[0], ours, &o.dense[1], &call.error));
    if (flags & GRAFT_EDGE_TRANSPOSE) GR_TRY_DONE(gr_edge_map(a, &map, &call.error));
    gr_edge_mxm(&a->csr, map, &o.dense[0], ours, &o.dense[1], NULL, team_of(context, threads));
done:
    return gr_call_end(&call, rc);
}

static int32_t edge_index_matrix(graft_context *context, const graft_index *index, int64_t n, graft_matrix **matrix,
                                 graft_error *error)
{
    struct gr_call call;
    struct gr_csr  csr = { 0 };
    graft_index    ours;
    int32_t        rc = gr_call_begin(&call, context, GRAFT_EDGE_ID " index_matrix", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(gr_struct_read(&ours, sizeof ours, index, "index", &call.error));
    if (matrix == NULL) GR_TRY_DONE(gr_fail(&call.error, GRAFT_ERR_ARG, "matrix is null"));
    GR_TRY_DONE(gr_edge_check_index(&ours, n, gr_context_threads(context, 0), &call.error));
    rc = gr_edge_sort_index(context, &ours, n, gr_context_threads(context, 0), &csr, &call.error);
    rc = gr_entry_take_csr(context, &csr, rc, matrix, &call.error);
done:
    return gr_call_end(&call, rc);
}

const graft_edge_api gr_interface_edge = {
    .size = sizeof(graft_edge_api),
    .gather_rows = edge_gather_rows,
    .index_add = edge_index_add,
    .sddmm = edge_sddmm,
    .softmax = edge_softmax,
    .softmax_backward = edge_softmax_backward,
    .mxm = edge_mxm,
    .index_matrix = edge_index_matrix,
};
