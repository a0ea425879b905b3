/* Sends rows of bytes and edges from the slices to the owners, and rows back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/limits.h"
#include "base/memory.h"
#include "dgraph/graph.h"

#include <string.h>

/* Return the bytes of a row that are sent at a time. Rows are sent in strips of columns, so that buffers need less
 * memory than two more copies of all rows. A strip is as wide as GR_MOVE_BUFFER allows on the rank with the most rows,
 * which all ranks know. */
static int64_t strip_bytes(const graft_graph *g, int64_t row_bytes)
{
    int64_t rows = 1, strip;

    for (int32_t p = 0; p < g->comm->n_ranks; p++) {
        if (g->share[p].n_slice > rows) rows = g->share[p].n_slice;
        if (g->share[p].n_owned > rows) rows = g->share[p].n_owned;
    }
    strip = GR_MOVE_BUFFER / rows < GR_MOVE_STRIP_LEAST ? GR_MOVE_STRIP_LEAST : GR_MOVE_BUFFER / rows;
    return strip < row_bytes ? strip : row_bytes;
}

int gr_graph_is_in_place(const graft_graph *g)
{
    for (int32_t p = 0; p < g->comm->n_ranks; p++)
        if (g->share[p].n_moved > 0) return 0;
    return 1;
}

/* Buffers of a packed strip and a received strip; NULL if an array of the library already has this layout. Arrays of
 * the host are never passed to the transport, because it may not be able to cancel a message. */
struct strip {
    int64_t bytes; /* bytes of each row in a strip */
    char   *out, *in;
};

/* Whether the rows of the slice are already in the order in which they are sent. */
static int slice_is_packed(const graft_graph *g)
{
    for (int64_t i = 0; i < g->n_slice; i++)
        if (g->slice.packed[i] != i) return 0;
    return 1;
}

static int32_t strip_init(const graft_graph *g, const graft_redistribution *args, int own, struct strip *s,
                          graft_error *error)
{
    const int to_owners = args->direction == GRAFT_TO_OWNERS;
    int       is_whole, is_packed;

    s->bytes = strip_bytes(g, args->row_bytes);
    is_whole = s->bytes == args->row_bytes;
    is_packed = is_whole && slice_is_packed(g);
    /* The owned rows are in the order in which they are received, so only the rows of the slice are permuted. */
    if (!(own & GR_OWN_FROM) || args->from == NULL || args->from_stride != s->bytes ||
        !(to_owners ? is_packed : is_whole))
        GR_TRY(GR_NEW(g->context, s->out, (to_owners ? g->n_slice : g->n_owned) * s->bytes, error));
    if (!(own & GR_OWN_TO) || args->to == NULL || args->to_stride != s->bytes || !(to_owners ? is_whole : is_packed))
        return GR_NEW(g->context, s->in, (to_owners ? g->n_owned : g->n_slice) * s->bytes, error);
    return GRAFT_OK;
}

/* Redistribute `bytes` of each row from byte `at` on. */
static int32_t redistribute_strip(const graft_graph *g, const graft_redistribution *args, int64_t at, int64_t bytes,
                                  struct strip *s, graft_error *error)
{
    const int         to_owners = args->direction == GRAFT_TO_OWNERS;
    const int64_t     rows_out = to_owners ? g->n_slice : g->n_owned, rows_in = to_owners ? g->n_owned : g->n_slice;
    const char *const out = s->out != NULL ? s->out : args->from;
    char *const       in = s->in != NULL ? s->in : args->to;
    int32_t           rc;

    GR_ASSERT(bytes > 0 && bytes <= s->bytes);
    for (int64_t i = 0; i < rows_out && s->out != NULL; i++)
        memcpy(s->out + (to_owners ? g->slice.packed[i] : i) * bytes,
               (const char *)args->from + i * args->from_stride + at, (uint64_t)bytes);
    rc = to_owners ? gr_comm_route_send(&g->slice.route, out, in, bytes, error)
                   : gr_comm_route_return(&g->slice.route, out, in, bytes, error);
    for (int64_t i = 0; i < rows_in && s->in != NULL && rc == GRAFT_OK; i++)
        memcpy((char *)args->to + i * args->to_stride + at, s->in + (to_owners ? i : g->slice.packed[i]) * bytes,
               (uint64_t)bytes);
    return rc;
}

/* Copy the rows, if every rank owns exactly the rows of its slice. */
static void copy_unmoved_rows(const graft_redistribution *args, int64_t rows)
{
    if (args->from_stride == args->row_bytes && args->to_stride == args->row_bytes && rows > 0) {
        memcpy(args->to, args->from, (uint64_t)(rows * args->row_bytes));
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        memcpy((char *)args->to + i * args->to_stride, (const char *)args->from + i * args->from_stride,
               (uint64_t)args->row_bytes);
}

/* Check that `data` can be an array of `rows` rows of this stride. */
static int32_t check_redistributed_rows(const graft_redistribution *args, const void *data, int64_t stride,
                                        int64_t rows, const char *name, graft_error *error)
{
    int64_t bytes;

    if (stride < args->row_bytes || __builtin_mul_overflow(stride, rows, &bytes))
        return gr_fail(
            error, GRAFT_ERR_ARG,
            "redistribute: %s_stride is %lld bytes, expected at least %lld, and an array of less than 2^63 bytes", name,
            (long long)stride, (long long)args->row_bytes);
    if (data == NULL && rows > 0 && args->row_bytes > 0)
        return gr_fail(error, GRAFT_ERR_ARG, "redistribute: %s is null", name);
    return GRAFT_OK;
}

static int rows_overlap(const graft_redistribution *m, int64_t rows_from, int64_t rows_to)
{
    const uintptr_t from = (uintptr_t)m->from, to = (uintptr_t)m->to;

    if (rows_from == 0 || rows_to == 0 || m->row_bytes == 0) return 0;
    return from < to + (uintptr_t)((rows_to - 1) * m->to_stride + m->row_bytes) &&
           to < from + (uintptr_t)((rows_from - 1) * m->from_stride + m->row_bytes);
}

static int32_t check_redistribution(const graft_graph *g, const graft_redistribution *m, graft_error *error)
{
    const int to_owners = m->direction == GRAFT_TO_OWNERS;

    if (m->direction != GRAFT_TO_OWNERS && m->direction != GRAFT_TO_SLICES)
        return gr_fail(error, GRAFT_ERR_ARG, "redistribute: direction is %d, expected 1 (to owners) or 2 (to slices)",
                       m->direction);
    if (m->row_bytes < 0)
        return gr_fail(error, GRAFT_ERR_ARG, "redistribute: row_bytes is %lld, expected at least 0",
                       (long long)m->row_bytes);
    GR_TRY(check_redistributed_rows(m, m->from, m->from_stride, to_owners ? g->n_slice : g->n_owned, "from", error));
    GR_TRY(check_redistributed_rows(m, m->to, m->to_stride, to_owners ? g->n_owned : g->n_slice, "to", error));
    if (rows_overlap(m, to_owners ? g->n_slice : g->n_owned, to_owners ? g->n_owned : g->n_slice))
        return gr_fail(error, GRAFT_ERR_ARG, "redistribute: from and to overlap in memory");
    return GRAFT_OK;
}

int32_t gr_graph_redistribute(graft_graph *g, const graft_redistribution *args, int own, graft_error *error)
{
    static const char *const names[] = { "direction of a redistribution", "row_bytes of a redistribution" };
    const uint64_t           values[] = { (uint64_t)args->direction, (uint64_t)args->row_bytes };
    struct strip             strip = { 0 };
    int32_t                  rc = GRAFT_OK;

    GR_TRY_DONE(gr_comm_agree(g->comm, check_redistribution(g, args, error), error));
    GR_TRY_DONE(gr_comm_compare(g->comm, names, values, 2, error));
    if (gr_graph_is_in_place(g)) {
        copy_unmoved_rows(args, args->row_bytes > 0 ? g->n_owned : 0);
        return GRAFT_OK;
    }
    GR_TRY_DONE(gr_comm_agree(g->comm, strip_init(g, args, own, &strip, error), error));
    for (int64_t at = 0; at < args->row_bytes; at += strip.bytes) {
        const int64_t left = args->row_bytes - at;

        GR_TRY_DONE(redistribute_strip(g, args, at, left < strip.bytes ? left : strip.bytes, &strip, error));
    }
done:
    gr_free(g->context, strip.out);
    gr_free(g->context, strip.in);
    return rc;
}

int32_t gr_graph_route_edges(const graft_graph *g, const int64_t *row_ptr, struct gr_route *edges, graft_error *error)
{
    for (int64_t i = 0; i < g->n_slice; i++) edges->out[g->slice.owner[i] + 1] += row_ptr[i + 1] - row_ptr[i];
    return gr_comm_route_plan(edges, error);
}

int32_t gr_graph_send_edges(const graft_graph *g, const int64_t *row_ptr, struct gr_route *edges, const void *elements,
                            int64_t bytes, void *packed, void *received, graft_error *error)
{
    for (int64_t i = 0; i < g->n_slice; i++) {
        const int64_t begin = row_ptr[i], count = row_ptr[i + 1] - begin;
        const int64_t place = gr_comm_route_take(edges, g->slice.owner[i], count);

        if (count > 0)
            memcpy((char *)packed + place * bytes, (const char *)elements + begin * bytes, (uint64_t)(count * bytes));
    }
    gr_comm_route_rewind(edges);
    return gr_comm_route_send(edges, packed, received, bytes, error);
}
