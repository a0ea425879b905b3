/* The graph from edges.npy: two rows of vertices of 32 or 64 bits, read in chunks and stored in 32 bits. Each rank
 * reads an equal range of both rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/limits.h"
#include "io/contents.h"

/* One end of the edges from `first` on. *largest becomes the largest vertex so far. */
static int32_t read_edge_ends(const struct gr_part_file *part, int64_t row, int64_t first, int64_t count,
                              const struct gr_vertices *vertices, int32_t *to, int64_t *largest, graft_error *error)
{
    const int64_t begin = row * part->npy.shape[1] + first, bytes = part->npy.item_bytes;
    const int64_t limit = vertices->count >= 0 ? vertices->count : INT32_MAX;
    union {
        int32_t narrow[GR_EDGES_AT_ONCE];
        int64_t wide[GR_EDGES_AT_ONCE];
    } chunk;

    for (int64_t done = 0; done < count; done += GR_EDGES_AT_ONCE) {
        const int64_t n = count - done < GR_EDGES_AT_ONCE ? count - done : GR_EDGES_AT_ONCE;
        const int32_t rc =
            gr_file_read(&part->file, part->npy.offset + (begin + done) * bytes, &chunk, n * bytes, error);

        if (rc < 0) return rc;
        for (int64_t i = 0; i < n; i++) {
            const int64_t vertex = part->npy.dtype == GRAFT_I32 ? chunk.narrow[i] : chunk.wide[i];

            if (vertex < 0 || vertex >= limit) {
                return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': edge %lld has %s %lld, expected 0 to %lld%s%s%s",
                               part->file.name, (long long)(first + done + i), row == 0 ? "source" : "destination",
                               (long long)vertex, (long long)(limit - 1), vertices->count >= 0 ? " as '" : "",
                               vertices->count >= 0 ? vertices->said_by : "",
                               vertices->count >= 0 ? "' has a row for each" : "");
            }
            to[done + i] = (int32_t)vertex;
            if (vertex > *largest) *largest = vertex;
        }
    }
    return GRAFT_OK;
}

static int32_t read_edge_range(const struct gr_reading *reading, const struct gr_part_file *part, int numbered,
                               const struct gr_vertices *vertices, struct gr_coo *coo, int64_t *largest,
                               graft_error *error)
{
    const int64_t first = gr_io_reading_share(reading, part->npy.shape[1], reading->comm->rank);
    const int64_t count = gr_io_reading_share(reading, part->npy.shape[1], reading->comm->rank + 1) - first;

    GR_TRY(gr_csr_coo_init(reading->context, coo, count, 0, error));
    if (numbered) GR_TRY(GR_NEW(reading->context, coo->number, count, error));
    for (int64_t i = 0; i < count && numbered; i++) coo->number[i] = first + i;
    /* the destination gathers from the source */
    GR_TRY(read_edge_ends(part, 0, first, count, vertices, coo->col, largest, error));
    return read_edge_ends(part, 1, first, count, vertices, coo->row, largest, error);
}

int32_t gr_io_edges_read(const struct gr_reading *reading, const struct gr_part_file *part, int numbered,
                         struct gr_vertices *vertices, struct gr_coo *coo, graft_error *error)
{
    struct gr_coo made = { 0 };
    int64_t       largest = -1;
    int32_t       rc = read_edge_range(reading, part, numbered, vertices, &made, &largest, error);

    GR_TRY_DONE(gr_comm_agree(reading->comm, rc, error));
    GR_TRY_DONE(gr_comm_max(reading->comm, &largest, 1, error));
    if (vertices->count < 0)
        GR_TRY_DONE(
            gr_comm_agree(reading->comm, gr_io_vertices_agree_named(vertices, &part->file, largest + 1, error), error));
    made.n_rows = made.n_cols = vertices->count;
    GR_ASSERT(vertices->count > largest);
    *coo = made;
    made = (struct gr_coo){ 0 };
done:
    gr_csr_coo_fini(reading->context, &made);
    return rc;
}
