/* Features of edges from edge_features.npy, whose row i belongs to edge i of edges.npy. All values must be finite.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/finite.h"
#include "base/sort.h"
#include "io/contents.h"

#include <string.h>

enum { AT_ONCE = 1 << 20 }; /* bytes of the file */

/* Rows of the file that are in memory. */
struct file_rows {
    const struct gr_part_file *part;
    int64_t                    width, most; /* number of columns; rows read at once */
    int64_t                    first, count;
    float                     *at;
};

/* Row `number`, where numbers fall from call to call. */
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

/* The entry with this column in a row of the graph, which is sorted by column. */
static int64_t entry_of(const struct gr_csr *graph, int64_t row, int32_t column)
{
    const int64_t begin = graph->row_ptr[row];

    return begin + gr_sorted_index_32((const int32_t *)graph->col_idx + begin, graph->row_ptr[row + 1] - begin, column);
}

/* Edges are visited from the last to the first, so that the first of repeated edges stays. */
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
    int32_t rc;

    if (!gr_io_folder_has(folder, GR_PART_EDGE_FEATURES)) return GRAFT_OK;
    rc = read_edge_rows(reading->context, &folder->part[GR_PART_EDGE_FEATURES], edges, data, error);
    return gr_comm_agree(reading->comm, rc, error);
}
