/* Covers in files. A rank has a file of its own for each plan, with a head of 64 bytes and two rows of bits:
 *
 *     uint64  "graftHC1"                      uint32  CRC32C of the file with zeros here
 *     uint8   kind of cover                   uint8   of weighted ones: bits; else 0
 *     uint8   0, 0                            int32   rank, ranks
 *     int64   vertices of the halo, targets, cut entries
 *     uint64  digest of what the cover is of  double  of weighted ones: lambda; else 0
 *     uint8   whether each vertex of the halo, and then each target, is in the cover: bit i % 8 of byte i / 8
 *
 * The digest is of where the cut entries are, so that covers of another graph or another partition are told apart. A
 * cover is right if it has an end of every cut entry, whatever else a file says: that is looked at, and so a file can
 * make no wrong sums.
 * SPDX-License-Identifier: Apache-2.0 */
#include "partition/kept.h"
#include "spmm/plan.h"
#include "base/crc.h"
#include "base/memory.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char magic[GR_KEPT_MAGIC] = { 'g', 'r', 'a', 'f', 't', 'H', 'C', '1' };

struct head {
    char     magic[GR_KEPT_MAGIC];
    uint32_t crc;
    uint8_t  kind, bits, zero[2];
    int32_t  rank, n_ranks;
    int64_t  n_halo, n_targets, n_edges;
    uint64_t digest;
    double   lambda;
};
_Static_assert(sizeof(struct head) == GR_KEPT_HEAD, "the head of the file has no padding");

/* Where the cut entries are in the rows of this rank, and whose vertices they lead to. */
static uint64_t digest_of(const struct gr_cuts *c)
{
    const graft_csr      *remote = &c->part->remote;
    const struct gr_halo *halo = &c->part->halo;
    uint32_t              entries, vertices;

    entries = gr_crc(0, remote->row_ptr, (uint64_t)(remote->n_rows + 1) * sizeof *remote->row_ptr);
    entries = gr_crc(entries, remote->col_idx, (uint64_t)c->edge_start[c->n_ranks] * sizeof(int32_t));
    vertices = gr_crc(0, halo->start, (uint64_t)(c->n_ranks + 1) * sizeof *halo->start);
    vertices = gr_crc(vertices, halo->place, (uint64_t)halo->count * sizeof *halo->place);
    return (uint64_t)entries << 32 | vertices;
}

static struct head head_of(const struct gr_cuts *c, int32_t rank, const struct gr_cover_choice *choice)
{
    struct head head = { .kind = (uint8_t)choice->kind,
                         .bits = (uint8_t)choice->bits,
                         .rank = rank,
                         .n_ranks = c->n_ranks,
                         .n_halo = c->part->halo.count,
                         .n_targets = c->target_start[c->n_ranks],
                         .n_edges = c->edge_start[c->n_ranks],
                         .digest = digest_of(c),
                         .lambda = choice->lambda };

    memcpy(head.magic, magic, sizeof magic);
    return head;
}

static int64_t body_bytes(const struct head *head)
{
    return (head->n_halo + 7) / 8 + (head->n_targets + 7) / 8;
}

static void pack(const uint8_t *flags, int64_t count, uint8_t *bits)
{
    for (int64_t i = 0; i < count; i++) bits[i / 8] |= (uint8_t)(flags[i] << i % 8);
}

static void unpack(const uint8_t *bits, int64_t count, uint8_t *flags)
{
    for (int64_t i = 0; i < count; i++) flags[i] = bits[i / 8] >> i % 8 & 1;
}

/* FILE.RANK; where a layer does fewer rows in training, FILE.RANK.LAYER is of these. */
static int32_t path_of(const graft_context *context, int32_t rank, const struct gr_cuts *c, char path[PATH_MAX],
                       graft_error *error)
{
    const char *name = gr_option_text(context, GR_OPTION_HALO_FILE);
    char        layer[16] = "";

    if (c->masked_layer > 0) snprintf(layer, sizeof layer, ".%d", c->masked_layer - 1);
    if (snprintf(path, PATH_MAX, "%s.%d%s", name, rank, layer) < PATH_MAX) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_IO, "option halo.file is longer than a path can be, %d bytes", PATH_MAX);
}

int32_t gr_cuts_write(const graft_context *context, int32_t rank, const struct gr_cover_choice *choice,
                      const struct gr_cuts *c, graft_error *error)
{
    struct head   head = head_of(c, rank, choice);
    const int64_t bytes = body_bytes(&head);
    uint8_t      *body = NULL;
    char          path[PATH_MAX];
    int32_t       rc = GRAFT_OK;

    GR_TRY(path_of(context, rank, c, path, error));
    GR_TRY(GR_NEW(context, body, bytes, error));
    pack(c->source_in, head.n_halo, body);
    pack(c->target_in, head.n_targets, body + (head.n_halo + 7) / 8);
    rc = gr_kept_write(path, &head, body, bytes, error);
done:
    gr_free(context, body);
    return rc;
}

/* What the head says of the body, before there is memory for it. */
static int32_t check_size(const struct gr_file *file, const struct head *head, graft_error *error)
{
    const int64_t most = INT64_MAX / 16;

    if (head->n_halo >= 0 && head->n_halo < most && head->n_targets >= 0 && head->n_targets < most &&
        file->size == GR_KEPT_HEAD + body_bytes(head))
        return GRAFT_OK;
    return gr_fail(
        error, GRAFT_ERR_FORMAT,
        "'%s' has %lld bytes, but is said to have a cover of %lld vertices of others and %lld rows, %d bytes "
        "and a bit for each",
        file->name, (long long)file->size, (long long)head->n_halo, (long long)head->n_targets, GR_KEPT_HEAD);
}

/* Whether the file is the one that this rank would write, as far as its head says. */
static int32_t check_head(const struct gr_file *file, const struct head *found, const struct head *wanted,
                          graft_error *error)
{
    if (found->rank != wanted->rank || found->n_ranks != wanted->n_ranks)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' has the covers of rank %d of %d, expected rank %d of %d",
                       file->name, found->rank, found->n_ranks, wanted->rank, wanted->n_ranks);
    if (found->kind != wanted->kind)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' has covers of the kind '%s', and option halo.cover is '%s'",
                       file->name, gr_cover_name(found->kind), gr_cover_name(wanted->kind));
    if (found->bits != wanted->bits || !(found->lambda == wanted->lambda))
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s' has weighted covers for %d bits and halo.cover_lambda %g, expected %d and %g", file->name,
                       found->bits, found->lambda, wanted->bits, wanted->lambda);
    if (found->n_halo == wanted->n_halo && found->n_targets == wanted->n_targets && found->n_edges == wanted->n_edges &&
        found->digest == wanted->digest)
        return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT,
                   "'%s' has covers of another graph or partition: of %lld cut entries, %lld vertices of others and "
                   "%lld rows with digest %016llx, expected %lld, %lld, %lld and %016llx",
                   file->name, (long long)found->n_edges, (long long)found->n_halo, (long long)found->n_targets,
                   (unsigned long long)found->digest, (long long)wanted->n_edges, (long long)wanted->n_halo,
                   (long long)wanted->n_targets, (unsigned long long)wanted->digest);
}

static int32_t check_covered(const struct gr_file *file, struct gr_cuts *c, graft_error *error)
{
    const graft_csr *remote = &c->part->remote;

    gr_cut_walk(c);
    for (int64_t row = 0; row < remote->n_rows; row++) {
        for (int64_t e = remote->row_ptr[row]; e < remote->row_ptr[row + 1]; e++) {
            const struct gr_cut_edge edge = gr_cut_step(c, row, e);

            if (c->source_in[edge.source] || c->target_in[edge.target]) continue;
            return gr_fail(error, GRAFT_ERR_FORMAT,
                           "'%s' has no cover: neither row %lld nor vertex %lld of the halo is in it, and an entry "
                           "joins them",
                           file->name, (long long)row, (long long)edge.source);
        }
    }
    return GRAFT_OK;
}

int32_t gr_cuts_read(const graft_context *context, int32_t rank, const struct gr_cover_choice *choice,
                     struct gr_cuts *c, graft_error *error)
{
    struct gr_file file = { .fd = -1 };
    struct head    head, wanted;
    uint8_t       *body = NULL;
    char           path[PATH_MAX];
    int32_t        rc = GRAFT_OK;

    GR_TRY(path_of(context, rank, c, path, error));
    rc = gr_kept_open(&file, path, "a file of covers", magic, &head, error);
    if (rc == GRAFT_ERR_NOT_FOUND && gr_kept_check_place(path, error) < 0) rc = GRAFT_ERR_IO;
    GR_TRY(rc);
    GR_TRY(check_size(&file, &head, error));
    GR_TRY(GR_NEW(context, body, file.size - GR_KEPT_HEAD, error));
    GR_TRY(gr_kept_read(&file, &head, body, error));
    wanted = head_of(c, rank, choice);
    GR_TRY(check_head(&file, &head, &wanted, error));
    unpack(body, wanted.n_halo, c->source_in);
    unpack(body + (wanted.n_halo + 7) / 8, wanted.n_targets, c->target_in);
    rc = check_covered(&file, c, error);
done:
    gr_file_close(&file);
    gr_free(context, body);
    return rc;
}
