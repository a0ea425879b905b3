/* Partitions in files.
 * SPDX-License-Identifier: Apache-2.0 */
#include "partition/owners.h"

#include "base/memory.h"
#include "partition/kept.h"

#include <string.h>

static const char magic[GR_KEPT_MAGIC] = { 'g', 'r', 'a', 'f', 't', 'P', 'F', '1' };

struct head {
    char     magic[8];
    uint32_t crc;
    int32_t  parts;
    int64_t  n_vertices, n_entries;
    uint64_t fingerprint;
    int64_t  reserved[3];
};
_Static_assert(sizeof(struct head) == GR_KEPT_HEAD, "the head of the file has no padding");

static int32_t check_parts(const struct gr_graph_identity *graph, int32_t parts, graft_error *error)
{
    if (parts <= graph->n_vertices) return GRAFT_OK;
    return gr_fail(
        error, GRAFT_ERR_ARG,
        "option partition.file: a partition of %lld vertices in %d parts is not kept, as some are empty; leave "
        "option partition.file out, or take %lld ranks at most",
        (long long)graph->n_vertices, parts, (long long)graph->n_vertices);
}

int32_t gr_owners_write(const char *path, const struct gr_graph_identity *graph, int32_t parts, const int32_t *owner,
                        graft_error *error)
{
    struct head head = { .parts = parts,
                         .n_vertices = graph->n_vertices,
                         .n_entries = graph->n_entries,
                         .fingerprint = graph->fingerprint };

    if (check_parts(graph, parts, error) < 0) return GRAFT_ERR_ARG;
    memcpy(head.magic, magic, sizeof magic);
    return gr_kept_write(path, &head, owner, graph->n_vertices * (int64_t)sizeof *owner, error);
}

int32_t gr_owners_check_place(const char *path, const struct gr_graph_identity *graph, int32_t parts,
                              graft_error *error)
{
    if (check_parts(graph, parts, error) < 0) return GRAFT_ERR_ARG;
    return gr_kept_check_place(path, error);
}

/* What the head says, before there is memory for the rest. */
static int32_t check_head(const struct gr_file *file, const struct head *head, graft_error *error)
{
    const int64_t room = (file->size - (int64_t)sizeof *head) / (int64_t)sizeof(int32_t);

    if (head->n_vertices != room || file->size != (int64_t)sizeof *head + room * (int64_t)sizeof(int32_t))
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s' has %lld bytes, but is said to have the owners of %lld vertices, 64 bytes and 4 for each",
                       file->name, (long long)file->size, (long long)head->n_vertices);
    return GRAFT_OK;
}

static int32_t check_graph(const struct gr_file *file, const struct head *head, const struct gr_graph_identity *graph,
                           int32_t parts, graft_error *error)
{
    if (head->n_vertices != graph->n_vertices || head->n_entries != graph->n_entries ||
        head->fingerprint != graph->fingerprint)
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s' is a partition of another graph: of %lld vertices and %lld entries with fingerprint "
                       "%016llx, expected %lld, %lld and %016llx",
                       file->name, (long long)head->n_vertices, (long long)head->n_entries,
                       (unsigned long long)head->fingerprint, (long long)graph->n_vertices, (long long)graph->n_entries,
                       (unsigned long long)graph->fingerprint);
    if (head->parts < 1 || head->parts > head->n_vertices)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' has %d parts of %lld vertices, expected 1 to as many as vertices",
                       file->name, head->parts, (long long)head->n_vertices);
    if (head->parts != parts)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' is a partition in %d parts, expected %d", file->name, head->parts,
                       parts);
    return GRAFT_OK;
}

static int32_t check_owners(const struct gr_file *file, const struct head *head, const int32_t *owner,
                            graft_error *error)
{
    for (int64_t v = 0; v < head->n_vertices; v++) {
        if (owner[v] >= 0 && owner[v] < head->parts) continue;
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': vertex %lld is in part %d, but parts go from 0 to %d",
                       file->name, (long long)v, owner[v], head->parts - 1);
    }
    return GRAFT_OK;
}

int32_t gr_owners_read(const graft_context *context, const char *path, const struct gr_graph_identity *graph,
                       int32_t parts, int32_t *owner, graft_error *error)
{
    struct gr_file file;
    struct head    head;
    int32_t       *read = NULL, rc;

    GR_TRY(gr_kept_open(&file, path, "a partition", magic, &head, error));
    GR_TRY(check_head(&file, &head, error));
    GR_TRY(GR_NEW(context, read, head.n_vertices, error));
    GR_TRY(gr_kept_read(&file, &head, read, error));
    GR_TRY(check_graph(&file, &head, graph, parts, error));
    GR_TRY(check_owners(&file, &head, read, error));
    memcpy(owner, read, (size_t)head.n_vertices * sizeof *owner);
done:
    gr_file_close(&file);
    gr_free(context, read);
    return rc;
}
