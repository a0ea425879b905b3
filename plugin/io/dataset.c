/* Opens a data set, or this rank's slice of it. A single process is treated as one rank.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/options.h"
#include "io/contents.h"

#include <string.h>
#include <sys/mman.h>

/* The average number of bytes of a vertex in the files and row pointers, without its edges. */
static double vertex_bytes(const struct gr_folder *folder, int64_t n)
{
    double bytes = sizeof(int64_t);

    for (int i = GR_PART_FEATURES; i < GR_PART_COUNT; i++)
        if (gr_io_folder_has(folder, i)) bytes += (double)folder->part[i].file.size / (double)(n > 0 ? n : 1);
    return bytes;
}

/* Read this rank's range of the edges, choose the slices, and send each edge to the rank with its slice. */
static int32_t read_slice_edges(struct gr_reading *reading, struct gr_folder *folder, struct gr_coo *coo,
                                graft_error *error)
{
    int32_t rc;

    if (gr_io_folder_has(folder, GR_PART_EDGES))
        rc = gr_io_edges_read(reading, &folder->part[GR_PART_EDGES], gr_io_folder_has(folder, GR_PART_EDGE_FEATURES),
                              &folder->vertices, coo, error);
    else rc = gr_io_mtx_read(reading, &folder->part[GR_PART_GRAPH].file, &folder->vertices, coo, error);
    GR_TRY(rc);
    GR_TRY(gr_io_reading_choose(reading, coo, vertex_bytes(folder, coo->n_rows), error));
    return gr_io_reading_send(reading, coo, error);
}

/* Copy the edges and their indices, if edges have features, because building the graph frees them. */
static int32_t keep_edges(const struct gr_reading *reading, struct gr_coo *coo, struct gr_coo *kept, graft_error *error)
{
    if (coo->number == NULL) return GRAFT_OK;
    GR_TRY(gr_csr_coo_init(reading->context, kept, coo->count, 0, error));
    memcpy(kept->row, coo->row, (uint64_t)coo->count * sizeof *kept->row);
    memcpy(kept->col, coo->col, (uint64_t)coo->count * sizeof *kept->col);
    kept->number = coo->number;
    coo->number = NULL;
    return GRAFT_OK;
}

static int32_t read_graph(struct gr_reading *reading, struct gr_folder *folder, graft_data *data, graft_error *error)
{
    const enum gr_part part = gr_io_folder_has(folder, GR_PART_EDGES) ? GR_PART_EDGES : GR_PART_GRAPH;
    const char        *name = folder->part[part].file.name;
    struct gr_coo      coo = { 0 }, kept = { 0 };
    int64_t            merged = 0;
    int32_t            rc;

    GR_TRY_DONE(read_slice_edges(reading, folder, &coo, error));
    rc = keep_edges(reading, &coo, &kept, error);
    if (rc == GRAFT_OK) rc = gr_csr_build(reading->context, &coo, name, &data->graph, &merged, error);
    GR_TRY_DONE(gr_comm_agree(reading->comm, rc, error));
    data->set.graph = &data->graph.view;
    data->set.n_vertices = data->graph.view.n_cols;
    data->set.n_slice = data->graph.view.n_rows;
    data->set.first_vertex = reading->first[reading->comm->rank];
    if (reading->comm->n_ranks > 1) data->set.flags = GRAFT_DATASET_SLICE;
    if (merged > 0) {
        gr_log(reading->context, GRAFT_LOG_INFO, "%s: merged %lld duplicate edge%s", name, (long long)merged,
               merged == 1 ? "" : "s");
    }
    rc = gr_io_edge_features_read(reading, folder, &kept, data, error);
done:
    gr_csr_coo_fini(reading->context, &coo);
    gr_csr_coo_fini(reading->context, &kept);
    return rc;
}

static int32_t read_folder(struct gr_reading *reading, const char *path, graft_data *data, graft_error *error)
{
    struct gr_folder folder = { 0 };
    int32_t          rc = gr_io_folder_open(&folder, path, error);

    GR_TRY_DONE(gr_comm_agree(reading->comm, rc, error));
    GR_TRY_DONE(gr_io_folder_compare(&folder, reading->comm, error));
    GR_TRY_DONE(read_graph(reading, &folder, data, error));
    rc = gr_io_columns_read(reading, &folder, data, error);
done:
    gr_io_folder_close(&folder);
    return rc;
}

static int32_t allocate_data(graft_context *context, const char *path, graft_data **data, graft_error *error)
{
    if (path == NULL || data == NULL)
        return gr_fail(error, GRAFT_ERR_ARG, "%s is null", path == NULL ? "path" : "data");
    return GR_NEW(context, *data, 1, error);
}

int32_t gr_io_data_open_slice(graft_context *context, const graft_transport *transport, const char *path, int maps,
                              graft_data **data, graft_error *error)
{
    struct gr_reading reading = { 0 };
    struct gr_comm   *comm = NULL;
    graft_data       *made = NULL;
    int32_t           rc;

    GR_TRY_DONE(gr_comm_create(context, transport, gr_comm_options(context)->timeout, &comm, error));
    rc = allocate_data(context, path, data != NULL ? &made : NULL, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    GR_TRY_DONE(gr_io_reading_init(&reading, comm, error));
    reading.maps = maps;
    made->set.size = sizeof made->set;
    GR_TRY_DONE(read_folder(&reading, path, made, error));
    *data = made;
    made = NULL;
done:
    gr_io_data_close(context, made);
    gr_io_reading_fini(&reading);
    gr_comm_destroy(comm);
    return rc;
}

const graft_dataset *gr_io_data_view(const graft_data *data)
{
    return data != NULL ? &data->set : NULL;
}

void gr_io_data_close(graft_context *context, graft_data *data)
{
    if (data == NULL) return;
    gr_csr_fini(context, &data->graph);
    if (data->map != NULL) munmap(data->map, (size_t)data->map_bytes);
    for (int i = 0; i < GR_PART_COUNT; i++) gr_free(context, data->part[i]);
    gr_free(context, data);
}
