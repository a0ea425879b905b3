/* Reads the graph from edges.npy: two rows of vertices with 32 or 64 bits, which are read in chunks and stored in 32
 * bits. Each rank reads an equal range of both rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/finite.h"
#include "base/limits.h"
#include "base/sort.h"
#include "io/contents.h"

#include <string.h>

/* Read sources or destinations of the edges from `first` on. *largest becomes the largest vertex so far. */
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

        GR_TRY(gr_file_read(&part->file, part->npy.offset + (begin + done) * bytes, &chunk, n * bytes, error));
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
    /* Row 0 has the sources, from which destinations gather. */
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

/* Features of edges are in edge_features.npy, whose row i belongs to edge i of edges.npy. All values must be finite. */
enum { AT_ONCE = 1 << 20 }; /* bytes of the file that are read at once */

/* The rows first .. first + count - 1 of the file, which are in memory. */
struct file_rows {
    const struct gr_part_file *part;
    int64_t                    width, most; /* number of columns; number of rows that are read at once */
    int64_t                    first, count;
    float                     *at;
};

/* Find row `number` of the file, reading the rows up to it if necessary. Numbers descend from call to call. */
static int32_t row_of_file(struct file_rows *r, int64_t number, const float **row, graft_error *error)
{
    int64_t bad;

    if (number < r->first || number >= r->first + r->count) {
        r->first = number + 1 > r->most ? number + 1 - r->most : 0;
        r->count = number + 1 - r->first;
        GR_TRY(gr_io_npy_read(&r->part->file, &r->part->npy, r->first * r->width, r->count * r->width, r->at, error));
    }
    *row = r->at + (number - r->first) * r->width;
    bad = gr_first_not_finite(*row, r->width);
    if (bad < r->width)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': row %lld, column %lld is %g, expected a finite number",
                       r->part->file.name, (long long)number, (long long)bad, (double)(*row)[bad]);
    return GRAFT_OK;
}

/* Find the entry with this column in a row of the graph, in which columns ascend. */
static int64_t entry_of(const struct gr_csr *graph, int64_t row, int32_t column)
{
    const int64_t begin = graph->row_ptr[row];

    return begin + gr_sorted_index_32((const int32_t *)graph->col_idx + begin, graph->row_ptr[row + 1] - begin, column);
}

/* Edges are visited from the last to the first, so the features of repeated edges are those of the first. */
static int32_t fill_features(struct file_rows *rows, const struct gr_coo *edges, const struct gr_csr *graph, float *to,
                             graft_error *error)
{
    const float *row;

    for (int64_t i = edges->count - 1; i >= 0; i--) {
        GR_TRY(row_of_file(rows, edges->number[i], &row, error));
        memcpy(to + entry_of(graph, edges->row[i], edges->col[i]) * rows->width, row,
               (uint64_t)rows->width * sizeof *to);
    }
    return GRAFT_OK;
}

static int32_t read_edge_rows(const graft_context *context, const struct gr_part_file *part, const struct gr_coo *edges,
                              graft_data *data, graft_error *error)
{
    const int64_t    width = part->npy.shape[1], entries = gr_csr_entries(&data->graph.view);
    const int64_t    most = AT_ONCE / (width * (int64_t)sizeof(float));
    struct file_rows rows = { .part = part, .width = width, .most = most > 0 ? most : 1 };
    float           *features = NULL;
    int32_t          rc;

    GR_TRY_DONE(GR_NEW(context, rows.at, rows.most * width, error));
    GR_TRY_DONE(GR_NEW(context, features, entries * width, error));
    data->part[GR_PART_EDGE_FEATURES] = features;
    data->edge_features = (graft_dense){ sizeof(graft_dense), GRAFT_F32, entries, width, width, features };
    data->set.edge_features = &data->edge_features;
    rc = fill_features(&rows, edges, &data->graph, features, error);
done:
    gr_free(context, rows.at);
    return rc;
}

int32_t gr_io_edge_features_read(const struct gr_reading *reading, const struct gr_folder *folder,
                                 const struct gr_coo *edges, graft_data *data, graft_error *error)
{
    const struct gr_part_file *part = &folder->part[GR_PART_EDGE_FEATURES];

    if (!gr_io_folder_has(folder, GR_PART_EDGE_FEATURES)) return GRAFT_OK;
    return gr_comm_agree(reading->comm, read_edge_rows(reading->context, part, edges, data, error), error);
}
