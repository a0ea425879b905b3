/* Agreement of the files on the number of vertices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/vertices.h"

#include "base/assert.h"

enum { UNBACKED_MAX = 1 << 24, UNBACKED_PER_BYTE = 16 };

int32_t gr_vertices_agree(struct gr_vertices *vertices, const struct gr_file *file, int64_t count, graft_error *error)
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

int32_t gr_vertices_named(struct gr_vertices *vertices, const struct gr_file *file, int64_t count, graft_error *error)
{
    if (vertices->count < 0 && count > UNBACKED_MAX && count / UNBACKED_PER_BYTE > file->size && count <= INT32_MAX) {
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s' names %lld vertices in %lld bytes; so many (more than %d, and than %d per byte) are "
                       "accepted only if features.npy or labels.npy has a row for each",
                       file->name, (long long)count, (long long)file->size, UNBACKED_MAX, UNBACKED_PER_BYTE);
    }
    return gr_vertices_agree(vertices, file, count, error);
}
