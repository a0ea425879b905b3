/* Features, dense or sparse. Every one must be finite.
 * SPDX-License-Identifier: Apache-2.0 */
#include "data/contents.h"

#include <math.h>

/* The first value that is not finite, or count. */
static int64_t find_not_finite(const float *values, int64_t count)
{
    int64_t i = 0;

    while (i < count && isfinite(values[i])) i++;
    return i;
}

int32_t gr_features_read_dense(const graft_context *context, const struct gr_folder *folder, graft_data *data,
                               graft_error *error)
{
    const struct gr_part_file *part = &folder->part[GR_PART_FEATURES];
    const int64_t              count = part->npy.count, width = part->npy.shape[1];
    float                     *features = NULL;
    int64_t                    bad;
    int32_t                    rc = GRAFT_OK;

    if (!gr_folder_has(folder, GR_PART_FEATURES)) return GRAFT_OK;
    GR_TRY(GR_NEW(context, features, count, error));
    data->dense = (graft_dense){ sizeof data->dense, GRAFT_F32, part->npy.shape[0], width, width, features };
    GR_TRY(gr_npy_read(&part->file, &part->npy, features, error));
    bad = find_not_finite(features, count);
    if (bad < count) {
        rc = gr_fail(error, GRAFT_ERR_FORMAT, "'%s': row %lld, column %lld is %g, expected a finite number",
                     part->file.name, (long long)(bad / width), (long long)(bad % width), (double)features[bad]);
        goto done;
    }
    data->set.features = &data->dense;
    data->set.n_features = width;
done:
    return rc;
}

/* That the row pointers end where the entries do lets the rest of them be followed. */
static int32_t check_sparse(const struct gr_folder *folder, const struct gr_csr *sparse, graft_error *error)
{
    const struct gr_file *indptr = &folder->part[GR_PART_INDPTR].file, *indices = &folder->part[GR_PART_INDICES].file;
    const int64_t         end = gr_csr_entries(&sparse->view), entries = folder->part[GR_PART_INDICES].npy.count;
    char                  name[GR_FILE_NAME];

    if (end != entries) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' ends with %lld, expected the %lld entries of '%s'", indptr->name,
                       (long long)end, (long long)entries, indices->name);
    }
    gr_file_show(name, folder->path, "features_csr_*.npy");
    return gr_csr_check(&sparse->view, name, 0, 1, error);
}

int32_t gr_features_read_sparse(const graft_context *context, const struct gr_folder *folder, graft_data *data,
                                graft_error *error)
{
    static const float         some_value = 1;
    const struct gr_part_file *indptr = &folder->part[GR_PART_INDPTR];
    const struct gr_part_file *indices = &folder->part[GR_PART_INDICES], *values = &folder->part[GR_PART_VALUES];
    const graft_csr            like = {
                   .size = sizeof like, .index_type = GRAFT_I32, .value_type = GRAFT_F32, .values = &some_value
    };
    struct gr_csr *sparse = &data->sparse;
    int32_t        rc;

    if (!gr_folder_has(folder, GR_PART_INDPTR)) return GRAFT_OK;
    GR_TRY(gr_csr_init(context, sparse, &like, indptr->npy.count - 1, folder->n_sparse_features, indices->npy.count,
                       error));
    GR_TRY(gr_npy_read(&indptr->file, &indptr->npy, sparse->row_ptr, error));
    GR_TRY(gr_npy_read(&indices->file, &indices->npy, sparse->col_idx, error));
    GR_TRY(gr_npy_read(&values->file, &values->npy, sparse->values, error));
    GR_TRY(check_sparse(folder, sparse, error));
    data->set.sparse_features = &sparse->view;
    data->set.n_features = folder->n_sparse_features;
done:
    return rc;
}
