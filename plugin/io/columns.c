/* The parts of a data set with a row for each vertex: features, dense or sparse, labels, targets and split. Each rank
 * reads the rows of its slice, and checks every value.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/finite.h"
#include "io/contents.h"

#include <math.h>
#include <stdio.h>
#include <sys/mman.h>

enum { CLASSES_ALWAYS = 65536 };

/* Read elements of a file into memory of the data set. */
static int32_t read_part(const struct gr_reading *reading, const struct gr_folder *folder, enum gr_part which,
                         int64_t first, int64_t count, graft_data *data, graft_error *error)
{
    const struct gr_part_file *part = &folder->part[which];

    data->part[which] = gr_new(reading->context, count, (uint64_t)part->npy.item_bytes, part->file.name, error);
    if (data->part[which] == NULL) return GRAFT_ERR_NOMEM;
    return gr_io_npy_read(&part->file, &part->npy, first, count, data->part[which], error);
}

static int64_t width_of(const struct gr_part_file *part)
{
    return part->npy.n_dims == 2 ? part->npy.shape[1] : 1;
}

/* Read the rows of the slice. */
static int32_t read_rows(const struct gr_reading *reading, const struct gr_folder *folder, enum gr_part which,
                         graft_data *data, graft_error *error)
{
    const int64_t width = width_of(&folder->part[which]);

    return read_part(reading, folder, which, data->set.first_vertex * width, data->set.n_slice * width, data, error);
}

static int32_t refuse_element(const struct gr_part_file *part, const graft_data *data, int64_t at, const char *is,
                              graft_error *error)
{
    const int64_t width = width_of(part);

    return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': vertex %lld, column %lld is %s", part->file.name,
                   (long long)(data->set.first_vertex + at / width), (long long)(at % width), is);
}

/* The index of the first element that is not finite, or count. */
static int64_t find_not_finite(const graft_dense *x, int64_t count)
{
    const uint16_t  exponent = x->dtype == GRAFT_F16 ? 0x7C00 : 0x7F80; /* all ones in infinities and NaNs */
    const uint16_t *half = x->data;
    int64_t         at = 0;

    if (x->dtype == GRAFT_U8) return count;
    if (x->dtype == GRAFT_F32) return gr_first_not_finite(x->data, count);
    while (at < count && (half[at] & exponent) != exponent) at++;
    return at;
}

/* Map the file of dense features. \return 0: it is not mapped, and must be read */
static int map_dense(const struct gr_reading *reading, const struct gr_part_file *part, graft_data *data)
{
    const int64_t first = data->set.first_vertex * part->npy.shape[1];
    void         *map;

    if (!reading->maps) return 0;
    if (part->npy.count == 0 || part->npy.offset % part->npy.item_bytes != 0) return 0;
    map = mmap(NULL, (size_t)part->file.size, PROT_READ, MAP_SHARED, part->file.fd, 0);
    if (map == MAP_FAILED) return 0;
    data->map = map;
    data->map_bytes = part->file.size;
    data->dense.data = (char *)map + part->npy.offset + first * part->npy.item_bytes;
    return 1;
}

static int32_t read_dense_rows(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                               graft_error *error)
{
    const struct gr_part_file *part = &folder->part[GR_PART_FEATURES];
    const int64_t              first = data->set.first_vertex, width = part->npy.shape[1];
    const int64_t              count = data->set.n_slice * width;
    int64_t                    bad;

    GR_TRY(read_rows(reading, folder, GR_PART_FEATURES, data, error));
    data->dense.data = data->part[GR_PART_FEATURES];
    bad = find_not_finite(&data->dense, count);
    if (bad == count) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': row %lld, column %lld is %g, expected a finite number",
                   part->file.name, (long long)(first + bad / width), (long long)(bad % width),
                   data->dense.dtype == GRAFT_F32 ? (double)((const float *)data->dense.data)[bad] : (double)NAN);
}

static int32_t read_dense(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                          graft_error *error)
{
    const struct gr_part_file *part = &folder->part[GR_PART_FEATURES];
    const int64_t              width = part->npy.shape[1];

    data->dense = (graft_dense){ sizeof data->dense, part->npy.dtype, data->set.n_slice, width, width, NULL };
    if (!map_dense(reading, part, data)) GR_TRY(read_dense_rows(reading, folder, data, error));
    data->set.features = &data->dense;
    data->set.n_features = width;
    if (data->dense.dtype != GRAFT_U8) return GRAFT_OK;
    GR_TRY(read_part(reading, folder, GR_PART_FEATURE_SCALE, 0, width, data, error));
    GR_TRY(read_part(reading, folder, GR_PART_FEATURE_ZERO, 0, width, data, error));
    data->set.feature_scale = data->part[GR_PART_FEATURE_SCALE];
    data->set.feature_zero = data->part[GR_PART_FEATURE_ZERO];
    return GRAFT_OK;
}

static const char SPARSE_FILES[] = "features_csr_*.npy";

/* Check the row pointers of sparse features, so that they can be followed safely: they begin at 0, ascend on every
 * rank, and end at the number of entries. */
static int32_t check_pointers(const struct gr_folder *folder, const graft_data *data, graft_error *error)
{
    const struct gr_part_file *indptr = &folder->part[GR_PART_INDPTR], *indices = &folder->part[GR_PART_INDICES];
    const int64_t              entries = indices->npy.count, first = data->set.first_vertex;
    char                       name[GR_FILE_NAME];
    int64_t                    end;

    gr_file_show(name, folder->path, SPARSE_FILES);
    GR_TRY(gr_io_npy_read(&indptr->file, &indptr->npy, indptr->npy.count - 1, 1, &end, error));
    if (end != entries) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' ends with %lld, expected the %lld entries of '%s'",
                       indptr->file.name, (long long)end, (long long)entries, indices->file.name);
    }
    if (first == 0 && data->sparse.row_ptr[0] != 0) return gr_csr_check(&data->sparse, name, 1, 1, error);
    return gr_csr_check_pointers(&data->sparse, name, first, error);
}

static int32_t read_pointers(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                             graft_error *error)
{
    const int64_t n = data->set.n_slice;

    GR_TRY(read_part(reading, folder, GR_PART_INDPTR, data->set.first_vertex, n + 1, data, error));
    data->sparse = (graft_csr){ .size = sizeof data->sparse,
                                .n_rows = n,
                                .n_cols = folder->n_sparse_features,
                                .index_type = GRAFT_I32,
                                .value_type = GRAFT_F32,
                                .row_ptr = data->part[GR_PART_INDPTR] };
    return check_pointers(folder, data, error);
}

/* Read the entries in the rows of the slice, after the row pointers of all ranks were checked. */
static int32_t read_entries(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                            graft_error *error)
{
    const int64_t n = data->set.n_slice;
    int64_t      *row_ptr = data->part[GR_PART_INDPTR], begin = row_ptr[0];
    char          name[GR_FILE_NAME];

    for (int64_t row = 0; row <= n; row++) row_ptr[row] -= begin;
    GR_TRY(read_part(reading, folder, GR_PART_INDICES, begin, row_ptr[n], data, error));
    GR_TRY(read_part(reading, folder, GR_PART_VALUES, begin, row_ptr[n], data, error));
    data->sparse.col_idx = data->part[GR_PART_INDICES];
    data->sparse.values = data->part[GR_PART_VALUES];
    gr_file_show(name, folder->path, SPARSE_FILES);
    GR_TRY(gr_csr_check_entries(&data->sparse, name, data->set.first_vertex, begin, 1, error));
    data->set.sparse_features = &data->sparse;
    data->set.n_features = folder->n_sparse_features;
    return GRAFT_OK;
}

/* Read values of one byte from 0 to `high`. */
static int32_t read_bytes(const struct gr_reading *reading, const struct gr_folder *folder, enum gr_part which,
                          int high, const char *expected, graft_data *data, graft_error *error)
{
    const struct gr_part_file *part = &folder->part[which];
    const uint8_t             *x;
    char                       is[96];

    GR_TRY(read_rows(reading, folder, which, data, error));
    x = data->part[which];
    for (int64_t i = 0; i < data->set.n_slice * width_of(part); i++) {
        if (x[i] <= high) continue;
        snprintf(is, sizeof is, "%d, expected %s", x[i], expected);
        return refuse_element(part, data, i, is, error);
    }
    return GRAFT_OK;
}

/* Read one class per vertex, or -1. The number of classes may be at most the number of vertices, or 65536 if this is
 * more, so that a file with other contents does not cause gigabytes of logits. */
static int32_t read_classes(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                            graft_error *error)
{
    const struct gr_part_file *part = &folder->part[GR_PART_LABELS];
    const int64_t              all = part->npy.count, limit = all > CLASSES_ALWAYS ? all : CLASSES_ALWAYS;
    int64_t                    largest = -1;

    GR_TRY(read_rows(reading, folder, GR_PART_LABELS, data, error));
    data->set.labels = data->part[GR_PART_LABELS];
    for (int64_t i = 0; i < data->set.n_slice; i++) {
        const int32_t label = data->set.labels[i];

        if (label < -1 || label >= limit)
            return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': vertex %lld has label %d, expected -1 (none) or 0 to %lld",
                           part->file.name, (long long)(data->set.first_vertex + i), label, (long long)(limit - 1));
        if (label > largest) largest = label;
    }
    data->set.n_classes = largest + 1;
    return GRAFT_OK;
}

static int32_t read_labels(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                           graft_error *error)
{
    const struct gr_part_file *part = &folder->part[GR_PART_LABELS];

    if (part->npy.dtype == GRAFT_I32) return read_classes(reading, folder, data, error);
    GR_TRY(read_bytes(reading, folder, GR_PART_LABELS, 1, "0 or 1", data, error));
    data->set.targets = data->part[GR_PART_LABELS];
    data->set.n_classes = part->npy.shape[1];
    return GRAFT_OK;
}

/* Read numbers that are finite, or NaN where they are not known. */
static int32_t read_float_targets(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                                  graft_error *error)
{
    const struct gr_part_file *part = &folder->part[GR_PART_TARGETS];
    const int64_t              width = width_of(part), n = data->set.n_slice;
    float                     *x;

    GR_TRY(read_rows(reading, folder, GR_PART_TARGETS, data, error));
    x = data->part[GR_PART_TARGETS];
    for (int64_t i = 0; i < n * width; i++)
        if (isinf(x[i]))
            return refuse_element(part, data, i, "infinite, expected a finite value, or NaN if it is not known", error);
    data->float_targets = (graft_dense){ sizeof(graft_dense), GRAFT_F32, n, width, width, x };
    data->set.float_targets = &data->float_targets;
    data->set.n_classes = width;
    return GRAFT_OK;
}

static int32_t read_split(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                          graft_error *error)
{
    GR_TRY(read_bytes(reading, folder, GR_PART_SPLIT, GRAFT_SPLIT_TEST,
                      "0 (none), 1 (training), 2 (validation) or 3 (test)", data, error));
    data->set.split = data->part[GR_PART_SPLIT];
    return GRAFT_OK;
}

/* Find the vertex with the largest label, and the number of labelled vertices, over all ranks. */
static int32_t find_largest(const struct gr_reading *reading, const graft_data *data, int64_t *vertex,
                            int64_t *n_labelled, graft_error *error)
{
    *vertex = -1;
    *n_labelled = 0;
    for (int64_t i = 0; i < data->set.n_slice; i++) {
        *n_labelled += data->set.labels[i] >= 0;
        if (data->set.labels[i] == data->set.n_classes - 1) *vertex = data->set.first_vertex + i;
    }
    GR_TRY(gr_comm_max(reading->comm, vertex, 1, error));
    return gr_comm_sum_i64(reading->comm, n_labelled, 1, error);
}

/* Warn if most classes have no vertices, because a label with a flipped bit would create such classes. */
static int32_t warn_of_empty_classes(const struct gr_reading *reading, const char *name, const graft_data *data,
                                     int64_t vertex, graft_error *error)
{
    const int64_t n = data->set.n_classes;
    int64_t      *used = NULL, empty = 0;
    int32_t       rc = GR_NEW(reading->context, used, n, error);

    GR_TRY_DONE(gr_comm_agree(reading->comm, rc, error));
    for (int64_t i = 0; i < data->set.n_slice; i++)
        if (data->set.labels[i] >= 0) used[data->set.labels[i]] = 1;
    GR_TRY_DONE(gr_comm_max(reading->comm, used, n, error));
    for (int64_t c = 0; c < n; c++) empty += used[c] == 0;
    if (empty > n / 2 && reading->comm->rank == 0)
        gr_log(reading->context, GRAFT_LOG_WARNING,
               "'%s': %lld of %lld classes have no vertex; the largest label is %lld, of vertex %lld", name,
               (long long)empty, (long long)n, (long long)(n - 1), (long long)vertex);
done:
    gr_free(reading->context, used);
    return rc;
}

/* Find the number of classes over all ranks, and check it against the number of labelled vertices. */
static int32_t agree_on_classes(const struct gr_reading *reading, const struct gr_part_file *labels, graft_data *data,
                                graft_error *error)
{
    int64_t vertex, n_labelled;

    GR_TRY(gr_comm_max(reading->comm, &data->set.n_classes, 1, error));
    if (labels->npy.dtype != GRAFT_I32 || data->set.n_classes == 0) return GRAFT_OK;
    GR_TRY(find_largest(reading, data, &vertex, &n_labelled, error));
    if (data->set.n_classes > n_labelled)
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s': vertex %lld has label %lld, so there are %lld classes, but %lld vertices have labels: "
                       "expected as many as classes, or more",
                       labels->file.name, (long long)vertex, (long long)(data->set.n_classes - 1),
                       (long long)data->set.n_classes, (long long)n_labelled);
    return warn_of_empty_classes(reading, labels->file.name, data, vertex, error);
}

int32_t gr_io_columns_read(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                           graft_error *error)
{
    static const struct {
        enum gr_part part;
        int32_t (*read)(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                        graft_error *error);
    } columns[] = { { GR_PART_FEATURES, read_dense },        { GR_PART_INDPTR, read_pointers },
                    { GR_PART_INDPTR, read_entries },        { GR_PART_LABELS, read_labels },
                    { GR_PART_TARGETS, read_float_targets }, { GR_PART_SPLIT, read_split } };

    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (gr_io_folder_has(folder, columns[i].part))
            GR_TRY(gr_comm_agree(reading->comm, columns[i].read(reading, folder, data, error), error));
    if (!gr_io_folder_has(folder, GR_PART_LABELS)) return GRAFT_OK;
    return agree_on_classes(reading, &folder->part[GR_PART_LABELS], data, error);
}
