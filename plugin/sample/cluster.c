/* Batches of parts of a partition (Chiang et al. 2019, algorithm 1): the parts with seeds are shuffled and dealt to the
 * batches of an epoch, and a batch is the subgraph of its parts, including the edges between them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sample/kind.h"

#include "base/context.h"
#include "base/random.h"
#include "base/sort.h"
#include "partition/choose.h"
#include "sample/options.h"

#include <string.h>

enum { PARTS_OF_BATCH = 10 };

struct clusters {
    int64_t  n_parts, n_drawn, n_batches; /* n_drawn: parts with seeds */
    int32_t *part;                        /* [n] part of each vertex */
    int64_t *first, *member;              /* [n_parts + 1] offsets of the vertices of each part in member[n] */
    int64_t *first_seed, *seed;           /* [n_parts + 1] offsets of the seeds of each part in seed[n_seeds] */
    int64_t *drawn;                       /* [n_drawn] the parts that have seeds */
    int64_t *order;                       /* [n_drawn] the same parts in the order of an epoch */
    int      is_metis;
};

static int32_t listen_for_cancel(void *context, graft_error *error)
{
    return gr_context_check_cancel(context, error);
}

/* Partition by METIS, or, if that is not possible, by a method that needs no program. */
static int32_t partition(const struct gr_kind_source *source, struct clusters *c, graft_error *error)
{
    const struct gr_slice           slice = { .rows = source->graph };
    const struct gr_meanwhile       meanwhile = { listen_for_cancel, source->context };
    const struct gr_partition_input input = {
        .context = source->context, .slice = &slice, .parts = (int32_t)c->n_parts, .meanwhile = &meanwhile
    };
    int32_t rc = GRAFT_OK;

    if (c->n_parts == 1) return GRAFT_OK;
    rc = gr_partition_run(GR_PARTITION_METIS, &input, c->part, error);
    c->is_metis = rc == GRAFT_OK;
    if (!gr_partition_goes_on(rc)) return rc;
    GR_TRY(gr_context_check_cancel(source->context, error));
    return gr_partition_run(GR_PARTITION_STREAM, &input, c->part, error);
}

/* Copy a partition of the same graph into the same number of parts, if there is one. */
static int copy_partition(const struct gr_kind_source *source, struct clusters *c)
{
    const struct clusters *like = source->like;

    if (like == NULL || like->n_parts != c->n_parts) return 0;
    memcpy(c->part, like->part, (uint64_t)source->graph->n_rows * sizeof *c->part);
    c->is_metis = like->is_metis;
    return 1;
}

/* Sort the vertices of `list`, or all if it is NULL, by part; vertices of a part keep their order. */
static void sort_by_part(const struct clusters *c, const int64_t *list, int64_t count, int64_t *first, int64_t *sorted)
{
    for (int64_t p = 0; p <= c->n_parts; p++) first[p] = 0;
    for (int64_t i = 0; i < count; i++) first[c->part[list != NULL ? list[i] : i] + 1]++;
    for (int64_t p = 0; p < c->n_parts; p++) first[p + 1] += first[p];
    for (int64_t i = 0; i < count; i++) {
        const int64_t v = list != NULL ? list[i] : i;
        sorted[first[c->part[v]]++] = v;
    }
    for (int64_t p = c->n_parts; p > 0; p--) first[p] = first[p - 1];
    first[0] = 0;
}

static int32_t create_clusters(const struct gr_kind_source *source, void **state, int64_t *n_batches,
                               graft_error *error)
{
    graft_context *const context = source->context;
    const int64_t        n = source->graph->n_rows, wanted = (int64_t)gr_sample_options(context)->sampler.number[0];
    struct clusters     *c = NULL;

    GR_TRY(GR_POOL_NEW(context, source->pool, c, 1, error));
    c->n_parts = gr_smaller(wanted > 0 ? wanted : PARTS_OF_BATCH * source->n_batches, n > 0 ? n : 1);
    c->n_parts = gr_smaller(c->n_parts, INT32_MAX - 1);
    GR_TRY(GR_POOL_NEW(context, source->pool, c->part, n, error));
    GR_TRY(GR_POOL_NEW(context, source->pool, c->first, c->n_parts + 1, error));
    GR_TRY(GR_POOL_NEW(context, source->pool, c->member, n, error));
    GR_TRY(GR_POOL_NEW(context, source->pool, c->first_seed, c->n_parts + 1, error));
    GR_TRY(GR_POOL_NEW(context, source->pool, c->seed, source->n_seeds, error));
    GR_TRY(GR_POOL_NEW(context, source->pool, c->drawn, c->n_parts, error));
    GR_TRY(GR_POOL_NEW(context, source->pool, c->order, c->n_parts, error));
    if (!copy_partition(source, c)) GR_TRY(partition(source, c, error));
    sort_by_part(c, NULL, n, c->first, c->member);
    sort_by_part(c, source->seeds, source->n_seeds, c->first_seed, c->seed);
    for (int64_t p = 0; p < c->n_parts; p++)
        if (c->first_seed[p + 1] > c->first_seed[p]) c->drawn[c->n_drawn++] = p;
    *n_batches = c->n_batches = gr_smaller(source->n_batches, c->n_drawn);
    *state = c;
    return GRAFT_OK;
}

static void order_clusters(const void *state, uint64_t seed, int64_t epoch, int64_t *seeds, int64_t *first)
{
    const struct clusters *c = state;
    int64_t                at = 0;

    for (int64_t i = 0; i < c->n_drawn; i++) c->order[i] = c->drawn[i];
    gr_sample_shuffle(c->order, c->n_drawn, gr_random_key(seed, GR_RANDOM_SHUFFLE, (uint64_t)epoch, 0));
    first[0] = 0;
    for (int64_t b = 0; b < c->n_batches; b++) {
        const int64_t end = gr_sample_deal(c->n_drawn, c->n_batches, b + 1);

        for (int64_t i = gr_sample_deal(c->n_drawn, c->n_batches, b); i < end; i++)
            for (int64_t j = c->first_seed[c->order[i]]; j < c->first_seed[c->order[i] + 1]; j++)
                seeds[at++] = c->seed[j];
        first[b + 1] = at;
    }
}

/* Add all vertices of the parts of the seeds, in the order of the first seed of each part. */
static int32_t add_parts(const struct gr_making *g, graft_error *error)
{
    const struct clusters         *c = g->request->state;
    const struct gr_batch_request *request = g->request;
    uint8_t                       *is_there = NULL; /* a bit for each part */
    int32_t                        rc = GRAFT_OK;

    GR_TRY_DONE(GR_NEW(g->context, is_there, c->n_parts / 8 + 1, error));
    for (int64_t i = 0; i < request->n_seeds; i++) {
        const int32_t p = c->part[request->seeds[i]];
        int64_t       begin = c->first[p], end = c->first[p + 1];

        if (is_there[p / 8] >> p % 8 & 1) continue;
        is_there[p / 8] |= (uint8_t)(1u << p % 8);
        GR_TRY_DONE(gr_sample_making_reserve(g, end - begin, error));
        for (; begin < end; begin++) gr_sample_making_add(g, c->member[begin]);
    }
done:
    gr_free(g->context, is_there);
    return rc;
}

static int32_t make_cluster(const struct gr_making *g, graft_error *error)
{
    GR_TRY(add_parts(g, error));
    return gr_sample_making_induce(g, error);
}

static void explain_clusters(const struct gr_batch_request *request, struct gr_text *text)
{
    const struct clusters *c = request->state;

    gr_text_add(text, "cluster   %lld parts by %s, %lld of them with seeds, %.1f in a batch\n", (long long)c->n_parts,
                c->is_metis ? "metis" : "stream", (long long)c->n_drawn,
                c->n_batches > 0 ? (double)c->n_drawn / (double)c->n_batches : 0.0);
}

const struct gr_sampler_kind gr_sample_cluster = {
    .word = "cluster",
    .deals_evenly = 1,
    .one_process = "its subgraphs are of a graph that one process has",
    .create = create_clusters,
    .order = order_clusters,
    .make = make_cluster,
    .explain = explain_clusters,
};
