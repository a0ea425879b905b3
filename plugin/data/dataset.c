/* Opening a data set: a folder of files, or one Matrix Market file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "data/contents.h"
#include "data/mtx.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* The rows of the graph from its entries. */
static int32_t build_graph(const graft_context *context, struct gr_coo *coo, const struct gr_file *file,
                           graft_data *data, graft_error *error)
{
    int64_t merged = 0;
    int32_t rc = gr_csr_build(context, coo, file->name, &data->graph, &merged, error);

    if (rc < 0) return rc;
    data->set.graph = &data->graph.view;
    data->set.n_vertices = data->graph.view.n_rows;
    if (merged > 0) {
        gr_log(context, GRAFT_LOG_INFO, "%s: merged %lld duplicate edge%s", file->name, (long long)merged,
               merged == 1 ? "" : "s");
    }
    return GRAFT_OK;
}

static int32_t read_mtx(const graft_context *context, const struct gr_file *file, struct gr_vertices *vertices,
                        graft_data *data, graft_error *error)
{
    struct gr_coo coo = { 0 };
    int32_t       rc = gr_mtx_read(context, file, vertices, &coo, error);

    return rc < 0 ? rc : build_graph(context, &coo, file, data, error);
}

static int32_t read_edges(const graft_context *context, const struct gr_part_file *part, struct gr_vertices *vertices,
                          graft_data *data, graft_error *error)
{
    struct gr_coo coo = { 0 };
    int32_t       rc = gr_edges_read(context, part, vertices, &coo, error);

    return rc < 0 ? rc : build_graph(context, &coo, &part->file, data, error);
}

static int32_t read_folder(const graft_context *context, int fd, const char *path, graft_data *data, graft_error *error)
{
    struct gr_folder folder = { 0 };
    int32_t          rc;

    GR_TRY(gr_folder_open(&folder, fd, path, error));
    if (gr_folder_has(&folder, GR_PART_EDGES)) {
        GR_TRY(read_edges(context, &folder.part[GR_PART_EDGES], &folder.vertices, data, error));
    } else {
        GR_TRY(read_mtx(context, &folder.part[GR_PART_GRAPH].file, &folder.vertices, data, error));
    }
    GR_TRY(gr_features_read_dense(context, &folder, data, error));
    GR_TRY(gr_features_read_sparse(context, &folder, data, error));
    GR_TRY(gr_labels_read(context, &folder, data, error));
    GR_TRY(gr_split_read(context, &folder, data, error));
done:
    gr_folder_close(&folder);
    return rc;
}

static int32_t read_file(const graft_context *context, const char *path, graft_data *data, graft_error *error)
{
    struct gr_vertices vertices = { .count = -1 };
    struct gr_file     file = { .fd = -1 };
    char               shown[GR_FILE_NAME];
    int32_t            rc;

    gr_file_show(shown, path, NULL);
    GR_TRY(gr_file_open(&file, AT_FDCWD, path, shown, error));
    GR_TRY(read_mtx(context, &file, &vertices, data, error));
done:
    gr_file_close(&file);
    return rc;
}

/* A folder if it can be opened as one, else a file. */
static int32_t read_path(const graft_context *context, const char *path, graft_data *data, graft_error *error)
{
    int     fd;
    int32_t rc;

    do {
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0 && errno == ENOTDIR) return read_file(context, path, data, error);
    if (fd < 0) {
        const int code = errno;

        return gr_fail_native(error, code == ENOENT ? GRAFT_ERR_NOT_FOUND : GRAFT_ERR_IO, code,
                              "data set '%.300s' cannot be opened: %s", path, gr_file_errno_text(code));
    }
    rc = read_folder(context, fd, path, data, error);
    close(fd);
    return rc;
}

int32_t gr_data_open(graft_context *context, const char *path, graft_data **data, graft_error *error)
{
    graft_data *made = NULL;
    int32_t     rc;

    GR_TRY(GR_NEW(context, made, 1, error));
    made->set.size = sizeof made->set;
    GR_TRY(read_path(context, path, made, error));
    *data = made;
    made = NULL;
done:
    gr_data_close(context, made);
    return rc;
}

const graft_dataset *gr_data_view(const graft_data *data)
{
    return data != NULL ? &data->set : NULL;
}

void gr_data_close(graft_context *context, graft_data *data)
{
    if (data == NULL) return;
    gr_csr_fini(context, &data->graph);
    gr_csr_fini(context, &data->sparse);
    gr_free(context, data->dense.data);
    gr_free(context, data->labels);
    gr_free(context, data->targets);
    gr_free(context, data->split);
    gr_free(context, data);
}
