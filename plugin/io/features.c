/* Features, dense or sparse. All values must be finite.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/finite.h"
#include "io/contents.h"

#include <sys/mman.h>

/* The first element that is not finite, or count. */
static int64_t find_not_finite(const graft_dense *x, int64_t count)
{
    const uint16_t  exponent = x->dtype == GRAFT_F16 ? 0x7C00 : 0x7F80; /* all ones */
    const uint16_t *half = x->data;
    int64_t         at = 0;

    if (x->dtype == GRAFT_U8) return count;
    if (x->dtype == GRAFT_F32) return gr_first_not_finite(x->data, count);
    while (at < count && (half[at] & exponent) != exponent) at++;
    return at;
}

/* If the file cannot be mapped it is read. */
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

static int32_t read_scales(const graft_context *context, const struct gr_folder *folder, graft_data *data,
                           graft_error *error)
{
    const struct gr_part_file *scale = &folder->part[GR_PART_FEATURE_SCALE];
    const struct gr_part_file *zero = &folder->part[GR_PART_FEATURE_ZERO];

    if (data->dense.dtype != GRAFT_U8) return GRAFT_OK;
    GR_TRY(GR_NEW(context, data->feature_scale, data->dense.n_cols, error));
    GR_TRY(GR_NEW(context, data->feature_zero, data->dense.n_cols, error));
    GR_TRY(gr_io_npy_read(&scale->file, &scale->npy, 0, data->dense.n_cols, data->feature_scale, error));
    GR_TRY(gr_io_npy_read(&zero->file, &zero->npy, 0, data->dense.n_cols, data->feature_zero, error));
    data->set.feature_scale = data->feature_scale;
    data->set.feature_zero = data->feature_zero;
    return GRAFT_OK;
}

static int32_t read_rows(const graft_context *context, const struct gr_part_file *part, graft_data *data,
                         graft_error *error)
{
    const int64_t first = data->set.first_vertex, n = data->set.n_slice, width = part->npy.shape[1];
    char         *elements = NULL;
    int64_t       bad;

    GR_TRY(GR_NEW(context, elements, n * width * part->npy.item_bytes, error));
    data->dense.data = elements;
    GR_TRY(gr_io_npy_read(&part->file, &part->npy, first * width, n * width, elements, error));
    bad = find_not_finite(&data->dense, n * width);
    if (bad == n * width) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': row %lld, column %lld is %g, expected a finite number",
                   part->file.name, (long long)(first + bad / width), (long long)(bad % width),
                   data->dense.dtype == GRAFT_F32 ? (double)((const float *)data->dense.data)[bad] : (double)NAN);
}

static int32_t read_dense(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                          graft_error *error)
{
    const struct gr_part_file *part = &folder->part[GR_PART_FEATURES];
    const int64_t              n = data->set.n_slice, width = part->npy.shape[1];

    data->dense = (graft_dense){ sizeof data->dense, part->npy.dtype, n, width, width, NULL };
    if (!map_dense(reading, part, data)) GR_TRY(read_rows(reading->context, part, data, error));
    data->set.features = &data->dense;
    data->set.n_features = width;
    return read_scales(reading->context, folder, data, error);
}

/* Row pointers that begin at 0, end at the number of entries and fall on no rank can be followed safely. */
static int32_t check_pointers(const struct gr_folder *folder, const struct gr_csr *sparse, int64_t first,
                              const char *name, graft_error *error)
{
    const struct gr_part_file *indptr = &folder->part[GR_PART_INDPTR], *indices = &folder->part[GR_PART_INDICES];
    const int64_t              entries = indices->npy.count;
    int64_t                    end;
    int32_t                    rc = gr_io_npy_read(&indptr->file, &indptr->npy, indptr->npy.count - 1, 1, &end, error);

    if (rc < 0) return rc;
    if (end != entries) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' ends with %lld, expected the %lld entries of '%s'",
                       indptr->file.name, (long long)end, (long long)entries, indices->file.name);
    }
    if (first == 0 && sparse->row_ptr[0] != 0) return gr_csr_check(&sparse->view, name, 1, 1, error);
    return gr_csr_check_pointers(&sparse->view, name, first, error);
}

static int32_t read_pointers(const graft_context *context, const struct gr_folder *folder, graft_data *data,
                             const char *name, graft_error *error)
{
    const struct gr_part_file *indptr = &folder->part[GR_PART_INDPTR];
    const int64_t              n = data->set.n_slice, first = data->set.first_vertex;
    struct gr_csr             *sparse = &data->sparse;

    GR_TRY(GR_NEW(context, sparse->row_ptr, n + 1, error));
    sparse->view = (graft_csr){ .size = sizeof sparse->view,
                                .n_rows = n,
                                .n_cols = folder->n_sparse_features,
                                .index_type = GRAFT_I32,
                                .value_type = GRAFT_F32,
                                .row_ptr = sparse->row_ptr };
    GR_TRY(gr_io_npy_read(&indptr->file, &indptr->npy, first, n + 1, sparse->row_ptr, error));
    return check_pointers(folder, sparse, first, name, error);
}

/* The entries of the rows of the slice. */
static int32_t read_sparse(const graft_context *context, const struct gr_folder *folder, graft_data *data,
                           const char *name, graft_error *error)
{
    const struct gr_part_file *indices = &folder->part[GR_PART_INDICES], *values = &folder->part[GR_PART_VALUES];
    struct gr_csr             *sparse = &data->sparse;
    const int64_t              n = data->set.n_slice, begin = sparse->row_ptr[0], count = sparse->row_ptr[n] - begin;
    int32_t                   *col_idx;
    float                     *value;
    int32_t                    rc;

    for (int64_t row = 0; row <= n; row++) sparse->row_ptr[row] -= begin;
    GR_TRY_DONE(GR_NEW(context, col_idx, count, error));
    sparse->view.col_idx = sparse->col_idx = col_idx;
    GR_TRY_DONE(GR_NEW(context, value, count, error));
    sparse->view.values = sparse->values = value;
    GR_TRY_DONE(gr_io_npy_read(&indices->file, &indices->npy, begin, count, col_idx, error));
    GR_TRY_DONE(gr_io_npy_read(&values->file, &values->npy, begin, count, value, error));
    GR_TRY_DONE(gr_csr_check_entries(&sparse->view, name, data->set.first_vertex, begin, 1, error));
    data->set.sparse_features = &sparse->view;
    data->set.n_features = folder->n_sparse_features;
done:
    return rc;
}

int32_t gr_io_features_read(const struct gr_reading *reading, const struct gr_folder *folder, graft_data *data,
                            graft_error *error)
{
    const graft_context *context = reading->context;
    char                 name[GR_FILE_NAME];
    int32_t              rc = GRAFT_OK;

    if (gr_io_folder_has(folder, GR_PART_FEATURES)) {
        rc = read_dense(reading, folder, data, error);
        GR_TRY_DONE(gr_comm_agree(reading->comm, rc, error));
    }
    if (gr_io_folder_has(folder, GR_PART_INDPTR)) {
        gr_file_show(name, folder->path, "features_csr_*.npy");
        rc = read_pointers(context, folder, data, name, error);
        GR_TRY_DONE(gr_comm_agree(reading->comm, rc, error));
        rc = read_sparse(context, folder, data, name, error);
        GR_TRY_DONE(gr_comm_agree(reading->comm, rc, error));
    }
done:
    return rc;
}
