/* Writes partitions to files, and reads them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "partition/owners.h"

#include "base/assert.h"
#include "base/crc.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char magic[8] = { 'g', 'r', 'a', 'f', 't', 'P', 'F', '1' };

struct head {
    char     magic[8];
    uint32_t crc;
    int32_t  parts;
    int64_t  n_vertices, n_edges;
    uint64_t fingerprint;
    int64_t  reserved[3];
};
_Static_assert(sizeof(struct head) == 64, "the head of the file has no padding");

/* Compute the CRC of the file with zeros in place of the CRC. */
static uint32_t crc_of(struct head head, const int32_t *owner)
{
    head.crc = 0;
    return gr_crc(gr_crc(0, &head, sizeof head), owner, (uint64_t)head.n_vertices * sizeof *owner);
}

static int32_t write_owners(struct gr_output *output, const struct head *head, const int32_t *owner, graft_error *error)
{
    GR_TRY(gr_output_write(output, head, sizeof *head, error));
    GR_TRY(gr_output_write(output, owner, head->n_vertices * (int64_t)sizeof *owner, error));
    return gr_output_end(output, NULL, error);
}

static int32_t check_parts(const struct gr_graph_identity *graph, int32_t parts, graft_error *error)
{
    if (parts <= graph->n_vertices) return GRAFT_OK;
    return gr_fail(
        error, GRAFT_ERR_ARG,
        "option partition.file: a partition of %lld vertices in %d parts is not kept, as some are empty; leave "
        "option partition.file out, or take %lld ranks at most",
        (long long)graph->n_vertices, parts, (long long)graph->n_vertices);
}

int32_t gr_partition_owners_write(const char *path, const struct gr_graph_identity *graph, int32_t parts,
                                  const int32_t *owner, graft_error *error)
{
    struct head head = {
        .parts = parts, .n_vertices = graph->n_vertices, .n_edges = graph->n_edges, .fingerprint = graph->fingerprint
    };
    struct gr_output output;
    int32_t          rc;

    GR_ASSERT(parts > 0);
    if (check_parts(graph, parts, error) < 0) return GRAFT_ERR_ARG;
    memcpy(head.magic, magic, sizeof magic);
    head.crc = crc_of(head, owner);
    rc = gr_output_begin(&output, path, (int64_t)sizeof head + head.n_vertices * (int64_t)sizeof *owner, error);
    if (rc == GRAFT_OK) rc = write_owners(&output, &head, owner, error);
    gr_output_abort(&output);
    return rc;
}

int32_t gr_partition_owners_check_place(const char *path, const struct gr_graph_identity *graph, int32_t parts,
                                        graft_error *error)
{
    char folder[PATH_MAX];

    if (check_parts(graph, parts, error) < 0) return GRAFT_ERR_ARG;
    gr_output_folder(folder, path);
    return access(folder, W_OK | X_OK) == 0 ? GRAFT_OK : gr_output_failed(path, errno, error);
}

/* Open a file and read its head. Always call gr_file_close(). */
static int32_t open_owners(struct gr_file *file, const char *path, struct head *head, graft_error *error)
{
    char shown[GR_FILE_NAME], quoted[GR_FILE_QUOTE], expected[GR_FILE_QUOTE];

    gr_file_show_path(shown, path);
    GR_TRY(gr_file_open(file, AT_FDCWD, path, shown, error));
    if (file->size < (int64_t)sizeof *head)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' has %lld bytes, and a partition has %d at least", file->name,
                       (long long)file->size, (int)sizeof *head);
    GR_TRY(gr_file_read(file, 0, head, sizeof *head, error));
    if (memcmp(head->magic, magic, sizeof magic) != 0)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' is not a partition: it begins with '%s', expected '%s'",
                       file->name, gr_file_quote(quoted, head->magic, sizeof magic),
                       gr_file_quote(expected, magic, sizeof magic));
    return GRAFT_OK;
}

/* Check the head before memory for the rest is allocated. */
static int32_t check_head(const struct gr_file *file, const struct head *head, graft_error *error)
{
    const int64_t room = (file->size - (int64_t)sizeof *head) / (int64_t)sizeof(int32_t);

    if (head->n_vertices != room || file->size != (int64_t)sizeof *head + room * (int64_t)sizeof(int32_t))
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s' has %lld bytes, but is said to have the owners of %lld vertices, 64 bytes and 4 for each",
                       file->name, (long long)file->size, (long long)head->n_vertices);
    return GRAFT_OK;
}

static int32_t read_owners(const struct gr_file *file, const struct head *head, int32_t *owner, graft_error *error)
{
    const int64_t bytes = head->n_vertices * (int64_t)sizeof *owner;
    uint32_t      found;

    GR_TRY(gr_file_read(file, sizeof *head, owner, bytes, error));
    found = crc_of(*head, owner);
    if (found == head->crc) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' is damaged: its CRC32C is %08x, expected %08x", file->name, found,
                   head->crc);
}

static int32_t check_same_graph(const struct gr_file *file, const struct head *head,
                                const struct gr_graph_identity *graph, int32_t parts, graft_error *error)
{
    if (head->n_vertices != graph->n_vertices || head->n_edges != graph->n_edges ||
        head->fingerprint != graph->fingerprint)
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s' is a partition of another graph: of %lld vertices and %lld entries with fingerprint "
                       "%016llx, expected %lld, %lld and %016llx",
                       file->name, (long long)head->n_vertices, (long long)head->n_edges,
                       (unsigned long long)head->fingerprint, (long long)graph->n_vertices, (long long)graph->n_edges,
                       (unsigned long long)graph->fingerprint);
    if (head->parts < 1 || head->parts > head->n_vertices)
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s' has %d part%s of %lld vertices, expected 1 to as many as vertices", file->name,
                       head->parts, head->parts == 1 ? "" : "s", (long long)head->n_vertices);
    if (head->parts != parts)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' is a partition in %d part%s, expected %d", file->name,
                       head->parts, head->parts == 1 ? "" : "s", parts);
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

int32_t gr_partition_owners_read(const graft_context *context, const char *path, const struct gr_graph_identity *graph,
                                 int32_t parts, int32_t *owner, graft_error *error)
{
    struct gr_file file;
    struct head    head;
    int32_t       *read = NULL, rc;

    GR_TRY_DONE(open_owners(&file, path, &head, error));
    GR_TRY_DONE(check_head(&file, &head, error));
    GR_TRY_DONE(GR_NEW(context, read, head.n_vertices, error));
    GR_TRY_DONE(read_owners(&file, &head, read, error));
    GR_TRY_DONE(check_same_graph(&file, &head, graph, parts, error));
    GR_TRY_DONE(check_owners(&file, &head, read, error));
    memcpy(owner, read, (size_t)head.n_vertices * sizeof *owner);
done:
    gr_file_close(&file);
    gr_free(context, read);
    return rc;
}
