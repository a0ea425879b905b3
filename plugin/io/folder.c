/* Opens the files of a data set folder, and checks their formats and whether they agree with each other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/folder.h"

#include "base/assert.h"
#include "base/crc.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char        *name;
    struct gr_npy_form form;
} parts[GR_PART_COUNT] = {
    [GR_PART_GRAPH] = { .name = "graph.mtx" },
    [GR_PART_EDGES] = { "edges.npy", { "int32 or int64 [2, edges]", { GRAFT_I32, GRAFT_I64 }, { 2, 2 } } },
    [GR_PART_EDGE_FEATURES] = { "edge_features.npy", { "float32 [edges, features]", { GRAFT_F32 }, { 2 } } },
    [GR_PART_FEATURES] = { "features.npy",
                           { "float32, float16, bfloat16 ('<V2') or uint8 [n, features]",
                             { GRAFT_F32, GRAFT_F16, GRAFT_BF16, GRAFT_U8 },
                             { 2, 2, 2, 2 } } },
    [GR_PART_FEATURE_SCALE] = { "feature_scale.npy", { "float32 [features]", { GRAFT_F32 }, { 1 } } },
    [GR_PART_FEATURE_ZERO] = { "feature_zero.npy", { "float32 [features]", { GRAFT_F32 }, { 1 } } },
    [GR_PART_INDPTR] = { "features_csr_indptr.npy", { "int64 [n + 1]", { GRAFT_I64 }, { 1 } } },
    [GR_PART_INDICES] = { "features_csr_indices.npy", { "int32 [entries]", { GRAFT_I32 }, { 1 } } },
    [GR_PART_VALUES] = { "features_csr_data.npy", { "float32 [entries]", { GRAFT_F32 }, { 1 } } },
    [GR_PART_SHAPE] = { "features_csr_shape.npy", { "int64 [2]", { GRAFT_I64 }, { 1 } } },
    [GR_PART_LABELS] = { "labels.npy", { "int32 [n] or uint8 [n, classes]", { GRAFT_I32, GRAFT_U8 }, { 1, 2 } } },
    [GR_PART_TARGETS] = { "targets.npy", { "float32 [n] or [n, columns]", { GRAFT_F32, GRAFT_F32 }, { 1, 2 } } },
    [GR_PART_SPLIT] = { "split.npy", { "uint8 [n]", { GRAFT_U8 }, { 1 } } },
};

enum { UNBACKED_MAX = 1 << 24, UNBACKED_PER_BYTE = 16 };

/* `file` states `count` vertices. \return OK; ERR_FORMAT (another file states another number; more than INT32_MAX) */
static int32_t vertices_agree(struct gr_vertices *vertices, const struct gr_file *file, int64_t count,
                              graft_error *error)
{
    GR_ASSERT(count >= 0);
    if (count > INT32_MAX) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' has %lld vertices; more than %d are not supported", file->name,
                       (long long)count, INT32_MAX);
    }
    if (vertices->count >= 0 && vertices->count != count) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' has %lld vertices, but '%s' has %lld", file->name,
                       (long long)count, vertices->said_by, (long long)vertices->count);
    }
    if (vertices->count < 0) {
        vertices->count = count;
        vertices->said_by = file->name;
    }
    return GRAFT_OK;
}

int32_t gr_io_vertices_agree_named(struct gr_vertices *vertices, const struct gr_file *file, int64_t count,
                                   graft_error *error)
{
    if (vertices->count < 0 && count > UNBACKED_MAX && count / UNBACKED_PER_BYTE > file->size && count <= INT32_MAX) {
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s' names %lld vertices in %lld bytes; so many (more than %d, and than %d per byte) are "
                       "accepted only if features.npy or labels.npy has a row for each",
                       file->name, (long long)count, (long long)file->size, UNBACKED_MAX, UNBACKED_PER_BYTE);
    }
    return vertices_agree(vertices, file, count, error);
}

/* Whether a part exists. A dangling link counts as existing, so that a part is not silently ignored because a disk is
 * missing. */
static int part_exists(int fd, const char *name)
{
    struct stat status;

    return fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

static int32_t open_parts(struct gr_folder *folder, int fd, graft_error *error)
{
    char shown[GR_FILE_NAME];

    for (int i = 0; i < GR_PART_COUNT; i++) {
        if (!part_exists(fd, parts[i].name)) continue;
        gr_file_show(shown, folder->path, parts[i].name);
        GR_TRY(gr_file_open(&folder->part[i].file, fd, parts[i].name, shown, error));
    }
    return GRAFT_OK;
}

static int32_t check_presence(const struct gr_folder *folder, graft_error *error)
{
    char shown[GR_FILE_NAME];
    int  sparse = 0, missing = 0;

    gr_file_show(shown, folder->path, NULL);
    if (!gr_io_folder_has(folder, GR_PART_EDGES) && !gr_io_folder_has(folder, GR_PART_GRAPH)) {
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "folder '%s' has no graph: neither edges.npy nor graph.mtx is in it",
                       shown);
    }
    if (gr_io_folder_has(folder, GR_PART_EDGES) && gr_io_folder_has(folder, GR_PART_GRAPH)) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "folder '%s' has two graphs, edges.npy and graph.mtx; expected one",
                       shown);
    }
    if (gr_io_folder_has(folder, GR_PART_EDGE_FEATURES) && !gr_io_folder_has(folder, GR_PART_EDGES)) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "folder '%s' has %s but no %s, whose edges have its rows", shown,
                       parts[GR_PART_EDGE_FEATURES].name, parts[GR_PART_EDGES].name);
    }
    for (int i = GR_PART_INDPTR; i <= GR_PART_SHAPE; i++) {
        if (gr_io_folder_has(folder, i)) sparse = i;
        else missing = i;
    }
    if (sparse && missing) {
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "folder '%s' has %s but no %s", shown, parts[sparse].name,
                       parts[missing].name);
    }
    if (sparse && gr_io_folder_has(folder, GR_PART_FEATURES)) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "folder '%s' has features twice, dense in %s and sparse in %s", shown,
                       parts[GR_PART_FEATURES].name, parts[sparse].name);
    }
    if (gr_io_folder_has(folder, GR_PART_LABELS) && gr_io_folder_has(folder, GR_PART_TARGETS)) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "folder '%s' has %s and %s; expected classes or numbers to learn",
                       shown, parts[GR_PART_LABELS].name, parts[GR_PART_TARGETS].name);
    }
    return GRAFT_OK;
}

static int32_t read_headers(struct gr_folder *folder, graft_error *error)
{
    for (int i = 0; i < GR_PART_COUNT; i++) {
        struct gr_part_file *part = &folder->part[i];

        if (i == GR_PART_GRAPH || part->file.fd < 0) continue;
        GR_TRY(gr_io_npy_begin(&part->file, &parts[i].form, &part->npy, error));
    }
    return GRAFT_OK;
}

/* Check the shape [n, d] of sparse features against the lengths of the other three files. */
static int32_t check_sparse(struct gr_folder *folder, graft_error *error)
{
    const struct gr_part_file *shape = &folder->part[GR_PART_SHAPE];
    const struct gr_part_file *indptr = &folder->part[GR_PART_INDPTR];
    const struct gr_part_file *indices = &folder->part[GR_PART_INDICES], *values = &folder->part[GR_PART_VALUES];
    int64_t                    n_d[2];

    if (shape->npy.count != 2) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' has %lld elements, expected 2: vertices and features",
                       shape->file.name, (long long)shape->npy.count);
    }
    GR_TRY(gr_io_npy_read(&shape->file, &shape->npy, 0, 2, n_d, error));
    if (n_d[0] < 0 || n_d[0] != indptr->npy.count - 1) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' has %lld elements, expected one more than the %lld rows of '%s'",
                       indptr->file.name, (long long)indptr->npy.count, (long long)n_d[0], shape->file.name);
    }
    if (n_d[1] < 1 || n_d[1] > INT32_MAX) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' states %lld features, expected 1 to %d", shape->file.name,
                       (long long)n_d[1], INT32_MAX);
    }
    if (indices->npy.count != values->npy.count) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' has %lld elements, but '%s' has %lld", indices->file.name,
                       (long long)indices->npy.count, values->file.name, (long long)values->npy.count);
    }
    folder->n_sparse_features = n_d[1];
    return vertices_agree(&folder->vertices, &shape->file, n_d[0], error);
}

/* Check that features of 8 bits have a scale and a zero for each column. */
static int32_t check_scales(const struct gr_folder *folder, graft_error *error)
{
    const struct gr_part_file *features = &folder->part[GR_PART_FEATURES];
    const int has_bytes = gr_io_folder_has(folder, GR_PART_FEATURES) && features->npy.dtype == GRAFT_U8;
    char      shown[GR_FILE_NAME];

    gr_file_show(shown, folder->path, NULL);
    for (int i = GR_PART_FEATURE_SCALE; i <= GR_PART_FEATURE_ZERO; i++) {
        const struct gr_part_file *part = &folder->part[i];

        if (gr_io_folder_has(folder, i) != has_bytes)
            return gr_fail(error, has_bytes ? GRAFT_ERR_NOT_FOUND : GRAFT_ERR_FORMAT,
                           has_bytes ? "folder '%s' has %s of uint8 but no %s"
                                     : "folder '%s' has no %s of uint8, but has %s",
                           shown, parts[GR_PART_FEATURES].name, parts[i].name);
        if (has_bytes && part->npy.count != features->npy.shape[1])
            return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' has %lld elements, but '%s' has %lld columns",
                           part->file.name, (long long)part->npy.count, features->file.name,
                           (long long)features->npy.shape[1]);
    }
    return GRAFT_OK;
}

static int32_t check_columns(const struct gr_part_file *part, graft_error *error)
{
    if (part->npy.n_dims < 2 || (part->npy.shape[1] >= 1 && part->npy.shape[1] <= INT32_MAX)) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' has %lld columns, expected 1 to %d", part->file.name,
                   (long long)part->npy.shape[1], INT32_MAX);
}

/* Check that features, labels and split have one row for each vertex. */
static int32_t check_rows(struct gr_folder *folder, enum gr_part which, graft_error *error)
{
    const struct gr_part_file *part = &folder->part[which];

    if (!gr_io_folder_has(folder, which)) return GRAFT_OK;
    GR_TRY(check_columns(part, error));
    return vertices_agree(&folder->vertices, &part->file, part->npy.shape[0], error);
}

/* Check that edge features have one row for each edge. */
static int32_t check_edge_rows(const struct gr_folder *folder, graft_error *error)
{
    const struct gr_part_file *edges = &folder->part[GR_PART_EDGES], *part = &folder->part[GR_PART_EDGE_FEATURES];

    if (!gr_io_folder_has(folder, GR_PART_EDGE_FEATURES)) return GRAFT_OK;
    GR_TRY(check_columns(part, error));
    if (part->npy.shape[0] == edges->npy.shape[1]) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' has %lld rows, but '%s' has %lld edges; expected a row for each",
                   part->file.name, (long long)part->npy.shape[0], edges->file.name, (long long)edges->npy.shape[1]);
}

static int32_t check_file_shapes(struct gr_folder *folder, graft_error *error)
{
    const struct gr_part_file *edges = &folder->part[GR_PART_EDGES];

    if (gr_io_folder_has(folder, GR_PART_EDGES) && edges->npy.shape[0] != 2) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' has %lld rows, expected 2: sources and destinations",
                       edges->file.name, (long long)edges->npy.shape[0]);
    }
    GR_TRY(check_edge_rows(folder, error));
    GR_TRY(check_rows(folder, GR_PART_FEATURES, error));
    GR_TRY(check_scales(folder, error));
    if (gr_io_folder_has(folder, GR_PART_SHAPE)) GR_TRY(check_sparse(folder, error));
    GR_TRY(check_rows(folder, GR_PART_LABELS, error));
    GR_TRY(check_rows(folder, GR_PART_TARGETS, error));
    return check_rows(folder, GR_PART_SPLIT, error);
}

static int32_t open_folder(struct gr_folder *folder, int fd, graft_error *error)
{
    GR_TRY(open_parts(folder, fd, error));
    GR_TRY(check_presence(folder, error));
    GR_TRY(read_headers(folder, error));
    return check_file_shapes(folder, error);
}

int32_t gr_io_folder_open(struct gr_folder *folder, const char *path, graft_error *error)
{
    char    shown[GR_FILE_NAME];
    int     fd;
    int32_t rc;

    for (int i = 0; i < GR_PART_COUNT; i++) folder->part[i].file.fd = -1;
    folder->path = path;
    folder->vertices.count = -1;
    do {
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0 && errno == ENOTDIR) {
        gr_file_show(shown, path, NULL);
        return gr_file_open(&folder->part[GR_PART_GRAPH].file, AT_FDCWD, path, shown, error);
    }
    if (fd < 0) {
        const int code = errno;

        return gr_fail_native(error, code == ENOENT ? GRAFT_ERR_NOT_FOUND : GRAFT_ERR_IO, code,
                              "data set '%.300s' cannot be opened: %s", path, gr_file_errno_text(code));
    }
    rc = open_folder(folder, fd, error);
    close(fd);
    return rc;
}

/* Of a file with more than BLOCKS blocks, only BLOCKS are compared, at equal distances from the beginning to the
 * end. */
enum { BLOCK = 1 << 16, BLOCKS = 17 };

static int32_t file_digest(const struct gr_file *file, char *block, uint64_t *crc, graft_error *error)
{
    const int     whole = file->size <= BLOCKS * BLOCK;
    const int64_t blocks = whole ? (file->size + BLOCK - 1) / BLOCK : BLOCKS;
    uint32_t      sum = 0;

    for (int64_t i = 0; i < blocks; i++) {
        const int64_t offset = whole ? i * BLOCK : i * (file->size - BLOCK) / (BLOCKS - 1);
        const int64_t bytes = file->size - offset < BLOCK ? file->size - offset : BLOCK;

        GR_TRY(gr_file_read(file, offset, block, bytes, error));
        sum = gr_crc(sum, block, (uint64_t)bytes);
    }
    *crc = sum;
    return GRAFT_OK;
}

static int32_t folder_digests(const struct gr_folder *folder, const graft_context *context, uint64_t crc[GR_PART_COUNT],
                              graft_error *error)
{
    char   *block = NULL;
    int32_t rc;

    GR_TRY_DONE(GR_NEW(context, block, BLOCK, error));
    for (int i = 0; i < GR_PART_COUNT; i++)
        if (gr_io_folder_has(folder, i)) GR_TRY_DONE(file_digest(&folder->part[i].file, block, &crc[i], error));
done:
    gr_free(context, block);
    return rc;
}

int32_t gr_io_folder_compare(const struct gr_folder *folder, struct gr_comm *comm, graft_error *error)
{
    char        names[2 * GR_PART_COUNT][64];
    const char *name[2 * GR_PART_COUNT + 1];
    uint64_t    value[2 * GR_PART_COUNT + 1] = { 0 };

    if (comm->n_ranks == 1) return GRAFT_OK;
    for (int i = 0; i < GR_PART_COUNT; i++) {
        snprintf(names[i], sizeof names[i], "the size of %s (none: 2^64 - 1)", parts[i].name);
        snprintf(names[GR_PART_COUNT + i], sizeof names[0], "the contents of %s (by CRC32C)", parts[i].name);
        name[i] = names[i];
        name[GR_PART_COUNT + 1 + i] = names[GR_PART_COUNT + i];
        value[i] = gr_io_folder_has(folder, i) ? (uint64_t)folder->part[i].file.size : UINT64_MAX;
    }
    name[GR_PART_COUNT] = "the number of vertices";
    value[GR_PART_COUNT] = (uint64_t)folder->vertices.count;
    GR_TRY(gr_comm_agree(comm, folder_digests(folder, comm->context, value + GR_PART_COUNT + 1, error), error));
    return gr_comm_compare(comm, name, value, 2 * GR_PART_COUNT + 1, error);
}

void gr_io_folder_close(struct gr_folder *folder)
{
    for (int i = 0; i < GR_PART_COUNT; i++) gr_file_close(&folder->part[i].file);
}
