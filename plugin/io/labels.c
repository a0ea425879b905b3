/* Labels, targets, float targets and split.
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/contents.h"

#include <math.h>

enum { CLASSES_ALWAYS = 65536 };

/* One class per vertex, or -1. At most as many classes as vertices, or 65536, are legal: a file with other contents
 * must not lead to gigabytes of logits. */
static int32_t read_labels(const graft_context *context, const struct gr_part_file *part, graft_data *data,
                           graft_error *error)
{
    const int64_t first = data->set.first_vertex, n = data->set.n_slice, all = part->npy.count;
    const int64_t limit = all > CLASSES_ALWAYS ? all : CLASSES_ALWAYS;
    int64_t       largest = -1;
    int32_t       rc;

    GR_TRY_DONE(GR_NEW(context, data->labels, n, error));
    GR_TRY_DONE(gr_io_npy_read(&part->file, &part->npy, first, n, data->labels, error));
    for (int64_t i = 0; i < n; i++) {
        const int32_t label = data->labels[i];

        if (label < -1 || label >= limit) {
            return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': vertex %lld has label %d, expected -1 (none) or 0 to %lld",
                           part->file.name, (long long)(first + i), label, (long long)(limit - 1));
        }
        if (label > largest) largest = label;
    }
    data->set.labels = data->labels;
    data->set.n_classes = largest + 1;
done:
    return rc;
}

/* Values of one byte from 0 to `high`, one or more for each vertex. */
static int32_t read_bytes(const graft_context *context, const struct gr_part_file *part, const graft_data *data,
                          int high, const char *expected, uint8_t **bytes, graft_error *error)
{
    const int64_t width = part->npy.n_dims == 2 ? part->npy.shape[1] : 1;
    const int64_t first = data->set.first_vertex, count = data->set.n_slice * width;
    uint8_t      *made = NULL;
    int32_t       rc;

    GR_TRY_DONE(GR_NEW(context, made, count, error));
    GR_TRY_DONE(gr_io_npy_read(&part->file, &part->npy, first * width, count, made, error));
    for (int64_t i = 0; i < count; i++) {
        if (made[i] <= high) continue;
        rc = gr_fail(error, GRAFT_ERR_FORMAT, "'%s': vertex %lld, column %lld is %d, expected %s", part->file.name,
                     (long long)(first + i / width), (long long)(i % width), made[i], expected);
        goto done;
    }
    *bytes = made;
    made = NULL;
done:
    gr_free(context, made);
    return rc;
}

static int32_t read_targets(const graft_context *context, const struct gr_part_file *part, graft_data *data,
                            graft_error *error)
{
    const int32_t rc = read_bytes(context, part, data, 1, "0 or 1", &data->targets, error);

    if (rc < 0) return rc;
    data->set.targets = data->targets;
    data->set.n_classes = part->npy.shape[1];
    return GRAFT_OK;
}

/* The vertex with the largest label, and the number of labelled vertices, over all ranks. */
static int32_t find_largest(const struct gr_reading *reading, const graft_data *data, int64_t *vertex,
                            int64_t *n_labelled, graft_error *error)
{
    *vertex = -1;
    *n_labelled = 0;
    for (int64_t i = 0; i < data->set.n_slice; i++) {
        *n_labelled += data->labels[i] >= 0;
        if (data->labels[i] == data->set.n_classes - 1) *vertex = data->set.first_vertex + i;
    }
    GR_TRY(gr_comm_max(reading->comm, vertex, 1, error));
    return gr_comm_sum_i64(reading->comm, n_labelled, 1, error);
}

/* A label with a wrong bit would create many classes without other vertices. */
static int32_t warn_of_empty_classes(const struct gr_reading *reading, const struct gr_part_file *part,
                                     const graft_data *data, int64_t vertex, graft_error *error)
{
    const int64_t n = data->set.n_classes;
    int64_t      *used = NULL, empty = 0;
    int32_t       rc = GR_NEW(reading->context, used, n, error);

    GR_TRY_DONE(gr_comm_agree(reading->comm, rc, error));
    for (int64_t i = 0; i < data->set.n_slice; i++)
        if (data->labels[i] >= 0) used[data->labels[i]] = 1;
    GR_TRY_DONE(gr_comm_max(reading->comm, used, n, error));
    for (int64_t c = 0; c < n; c++) empty += used[c] == 0;
    if (empty > n / 2 && reading->comm->rank == 0)
        gr_log(reading->context, GRAFT_LOG_WARNING,
               "'%s': %lld of %lld classes have no vertex; the largest label is %lld, of vertex %lld", part->file.name,
               (long long)empty, (long long)n, (long long)(n - 1), (long long)vertex);
done:
    gr_free(reading->context, used);
    return rc;
}

static int32_t check_classes(const struct gr_reading *reading, const struct gr_part_file *part, const graft_data *data,
                             graft_error *error)
{
    int64_t vertex, n_labelled;

    if (data->set.n_classes == 0) return GRAFT_OK;
    GR_TRY(find_largest(reading, data, &vertex, &n_labelled, error));
    if (data->set.n_classes > n_labelled)
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s': vertex %lld has label %lld, so there are %lld classes, but %lld vertices have labels: "
                       "expected as many as classes, or more",
                       part->file.name, (long long)vertex, (long long)(data->set.n_classes - 1),
                       (long long)data->set.n_classes, (long long)n_labelled);
    return warn_of_empty_classes(reading, part, data, vertex, error);
}

int32_t gr_io_labels_read(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                          graft_error *error)
{
    const struct gr_part_file *part = &folder->part[GR_PART_LABELS];
    int32_t                    rc;

    if (!gr_io_folder_has(folder, GR_PART_LABELS)) return GRAFT_OK;
    if (part->npy.dtype == GRAFT_I32) rc = read_labels(reading->context, part, data, error);
    else rc = read_targets(reading->context, part, data, error);
    GR_TRY_DONE(gr_comm_agree(reading->comm, rc, error));
    GR_TRY_DONE(gr_comm_max(reading->comm, &data->set.n_classes, 1, error));
    if (part->npy.dtype == GRAFT_I32) rc = check_classes(reading, part, data, error);
done:
    return rc;
}

/* Finite numbers, or NaN where they are not known. */
static int32_t read_float_targets(const graft_context *context, const struct gr_part_file *part, graft_data *data,
                                  graft_error *error)
{
    const int64_t width = part->npy.n_dims == 2 ? part->npy.shape[1] : 1, n = data->set.n_slice;
    const int64_t first = data->set.first_vertex;
    float        *values = NULL;
    int32_t       rc;

    GR_TRY_DONE(GR_NEW(context, values, n * width, error));
    GR_TRY_DONE(gr_io_npy_read(&part->file, &part->npy, first * width, n * width, values, error));
    for (int64_t i = 0; i < n * width; i++) {
        if (!isinf(values[i])) continue;
        rc = gr_fail(error, GRAFT_ERR_FORMAT,
                     "'%s': vertex %lld, column %lld is infinite, expected a finite value, or NaN if it is not known",
                     part->file.name, (long long)(first + i / width), (long long)(i % width));
        goto done;
    }
    data->float_targets = (graft_dense){ sizeof(graft_dense), GRAFT_F32, n, width, width, values };
    data->set.float_targets = &data->float_targets;
    data->set.n_classes = width;
    values = NULL;
done:
    gr_free(context, values);
    return rc;
}

int32_t gr_io_float_targets_read(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                                 graft_error *error)
{
    int32_t rc;

    if (!gr_io_folder_has(folder, GR_PART_TARGETS)) return GRAFT_OK;
    rc = read_float_targets(reading->context, &folder->part[GR_PART_TARGETS], data, error);
    return gr_comm_agree(reading->comm, rc, error);
}

int32_t gr_io_split_read(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                         graft_error *error)
{
    int32_t rc;

    if (!gr_io_folder_has(folder, GR_PART_SPLIT)) return GRAFT_OK;
    rc = read_bytes(reading->context, &folder->part[GR_PART_SPLIT], data, GRAFT_SPLIT_TEST,
                    "0 (none), 1 (training), 2 (validation) or 3 (test)", &data->split, error);
    data->set.split = data->split;
    return gr_comm_agree(reading->comm, rc, error);
}
