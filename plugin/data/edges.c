/* The graph from edges.npy: two rows of vertices, 32 or 64 bits wide, taken in chunks and kept in 32.
 * SPDX-License-Identifier: Apache-2.0 */
#include "data/contents.h"

enum { CHUNK = 2048 };

/* One end of every edge. *largest rises to the largest vertex. */
static int32_t read_row(const struct gr_part_file *part, int64_t row, const struct gr_vertices *vertices, int32_t *to,
                        int64_t *largest, graft_error *error)
{
    const int64_t count = part->npy.shape[1], bytes = part->npy.item_bytes;
    const int64_t limit = vertices->count >= 0 ? vertices->count : INT32_MAX;
    union {
        int32_t narrow[CHUNK];
        int64_t wide[CHUNK];
    } chunk;

    for (int64_t begin = 0; begin < count; begin += CHUNK) {
        const int64_t n = count - begin < CHUNK ? count - begin : CHUNK;
        const int32_t rc =
            gr_file_read(&part->file, part->npy.offset + (row * count + begin) * bytes, &chunk, n * bytes, error);

        if (rc < 0) return rc;
        for (int64_t i = 0; i < n; i++) {
            const int64_t vertex = part->npy.dtype == GRAFT_I32 ? chunk.narrow[i] : chunk.wide[i];

            if (vertex < 0 || vertex >= limit) {
                return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': edge %lld has %s %lld, expected 0 to %lld%s%s%s",
                               part->file.name, (long long)(begin + i), row == 0 ? "source" : "destination",
                               (long long)vertex, (long long)(limit - 1), vertices->count >= 0 ? " as '" : "",
                               vertices->count >= 0 ? vertices->said_by : "",
                               vertices->count >= 0 ? "' has a row for each" : "");
            }
            to[begin + i] = (int32_t)vertex;
            if (vertex > *largest) *largest = vertex;
        }
    }
    return GRAFT_OK;
}

int32_t gr_edges_read(const graft_context *context, const struct gr_part_file *part, struct gr_vertices *vertices,
                      struct gr_coo *coo, graft_error *error)
{
    struct gr_coo made = { 0 };
    int64_t       largest = -1;
    int32_t       rc;

    GR_TRY(gr_coo_init(context, &made, part->npy.shape[1], 0, error));
    GR_TRY(read_row(part, 0, vertices, made.col, &largest, error)); /* the destination gathers from the source */
    GR_TRY(read_row(part, 1, vertices, made.row, &largest, error));
    if (vertices->count < 0) GR_TRY(gr_vertices_named(vertices, &part->file, largest + 1, error));
    made.n_rows = made.n_cols = vertices->count;
    *coo = made;
    made = (struct gr_coo){ 0 };
done:
    gr_coo_fini(context, &made);
    return rc;
}
