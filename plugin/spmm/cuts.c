/* Groups the cut edges of a rank by the owners of their sources, and finds their covers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/memory.h"
#include "base/team.h"
#include "spmm/plan.h"

void gr_spmm_cuts_walk(struct gr_cuts *c)
{
    for (int32_t q = 0; q < c->n_ranks; q++) {
        c->last_row[q] = -1;
        c->target[q] = c->target_start[q] - 1;
    }
}

struct gr_cut_edge gr_spmm_cuts_step(struct gr_cuts *c, int64_t row, int64_t entry)
{
    const int64_t source = ((const int32_t *)c->part->remote.col_idx)[entry];
    const int32_t q = c->owner[source];
    const int     is_new = c->last_row[q] != row;

    GR_ASSERT(source < c->part->halo.count && c->last_row[q] <= row);
    c->last_row[q] = row;
    c->target[q] += is_new;
    return (struct gr_cut_edge){ row, entry, source, c->target[q], q, is_new };
}

static int32_t allocate_cuts(const graft_context *context, struct gr_cuts *c, graft_error *error)
{
    const int64_t halo = c->part->halo.count;

    GR_TRY(GR_POOL_NEW(context, &c->pool, c->owner, halo, error));
    GR_TRY(GR_POOL_NEW(context, &c->pool, c->source_in, halo, error));
    GR_TRY(GR_POOL_NEW(context, &c->pool, c->edge_start, c->n_ranks + 1, error));
    GR_TRY(GR_POOL_NEW(context, &c->pool, c->target_start, c->n_ranks + 1, error));
    GR_TRY(GR_POOL_NEW(context, &c->pool, c->last_row, c->n_ranks, error));
    GR_TRY(GR_POOL_NEW(context, &c->pool, c->target, c->n_ranks, error));
    for (int32_t q = 0; q < c->n_ranks; q++)
        for (int64_t i = c->part->halo.start[q]; i < c->part->halo.start[q + 1]; i++) c->owner[i] = q;
    return GRAFT_OK;
}

static void count_edges(struct gr_cuts *c)
{
    const graft_csr *remote = &c->part->remote;

    gr_spmm_cuts_walk(c);
    for (int64_t row = 0; row < remote->n_rows; row++) {
        for (int64_t e = remote->row_ptr[row]; e < remote->row_ptr[row + 1]; e++) {
            const struct gr_cut_edge edge = gr_spmm_cuts_step(c, row, e);

            c->n_sources += !c->source_in[edge.source];
            c->source_in[edge.source] = 1; /* here: the source has been counted */
            c->edge_start[edge.rank + 1]++;
            c->target_start[edge.rank + 1] += edge.is_new;
        }
    }
    for (int32_t q = 0; q < c->n_ranks; q++) {
        c->edge_start[q + 1] += c->edge_start[q];
        c->target_start[q + 1] += c->target_start[q];
    }
}

/* Fill row_ptr and source. The edges from rank q are visited target by target, so after each edge the row of its target
 * ends at next[q]. */
static int32_t fill_edges(const graft_context *context, struct gr_cuts *c, graft_error *error)
{
    const graft_csr *remote = &c->part->remote;
    int64_t         *next = NULL;
    int32_t          rc = GRAFT_OK;

    GR_TRY_DONE(GR_NEW(context, next, c->n_ranks, error));
    gr_spmm_cuts_walk(c);
    for (int64_t row = 0; row < remote->n_rows; row++) {
        for (int64_t e = remote->row_ptr[row]; e < remote->row_ptr[row + 1]; e++) {
            const struct gr_cut_edge edge = gr_spmm_cuts_step(c, row, e);
            const int32_t            q = edge.rank;
            GR_ASSERT(next[q] < c->edge_start[q + 1] - c->edge_start[q]);

            c->source[c->edge_start[q] + next[q]++] = (int32_t)(edge.source - c->part->halo.start[q]);
            c->row_ptr[edge.target + q + 1] = next[q];
        }
    }
done:
    gr_free(context, next);
    return rc;
}

static int32_t cover_pair(const graft_context *context, struct gr_cuts *c, int32_t q, enum gr_cover_kind kind,
                          graft_error *error)
{
    const int64_t       source = c->part->halo.start[q], target = c->target_start[q];
    const struct gr_cut cut = { .n_targets = c->target_start[q + 1] - target,
                                .n_sources = c->part->halo.start[q + 1] - source,
                                .row_ptr = c->row_ptr + target + q,
                                .source = c->source + c->edge_start[q] };
    int64_t             size;

    return gr_cover_find(context, &cut, kind, c->source_in + source, c->target_in + target, &size, error);
}

/* Find the covers of the cut edges from all ranks, each in one thread. A search can fail only for lack of memory. */
static int32_t cover_all_pairs(const graft_context *context, struct gr_cuts *c, enum gr_cover_kind kind,
                               graft_error *error)
{
    const int threads = gr_threads_worth(gr_context_threads(context, 0), c->edge_start[c->n_ranks]);
    int32_t   failed = c->n_ranks;

#pragma omp parallel for num_threads(threads) schedule(dynamic, 1) reduction(min : failed) if (threads > 1)
    for (int32_t q = 0; q < c->n_ranks; q++) {
        graft_error own = { .size = sizeof own };

        if (cover_pair(context, c, q, kind, &own) < 0 && q < failed) failed = q;
    }
    if (failed == c->n_ranks) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_NOMEM, "no memory for the cover of %lld cut edges of rank %d",
                   (long long)(c->edge_start[failed + 1] - c->edge_start[failed]), failed);
}

int32_t gr_spmm_cuts_init(const graft_context *context, const struct gr_part *part, int32_t n_ranks, struct gr_cuts *c,
                          graft_error *error)
{
    *c = (struct gr_cuts){ .part = part, .n_ranks = n_ranks };
    GR_TRY(allocate_cuts(context, c, error));
    count_edges(c);
    return GR_POOL_NEW(context, &c->pool, c->target_in, c->target_start[n_ranks], error);
}

int32_t gr_spmm_cuts_find(const graft_context *context, enum gr_cover_kind kind, struct gr_cuts *c, graft_error *error)
{
    struct gr_pool pool = { 0 }; /* owner of row_ptr and source, which only the search for covers needs */
    int32_t        rc = GR_POOL_NEW(context, &pool, c->row_ptr, c->target_start[c->n_ranks] + c->n_ranks, error);

    if (rc == GRAFT_OK) rc = GR_POOL_NEW(context, &pool, c->source, c->edge_start[c->n_ranks], error);
    if (rc == GRAFT_OK) rc = fill_edges(context, c, error);
    if (rc == GRAFT_OK) rc = cover_all_pairs(context, c, kind, error);
    gr_pool_fini(context, &pool);
    c->row_ptr = NULL;
    c->source = NULL;
    return rc;
}
