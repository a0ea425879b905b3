/* "graft.sample/1": reads the host's structs, checks them, and calls sample/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "kernel/kernel.h"
#include "nn/options.h"
#include "sample/sample.h"

#include <errno.h>

/* Check that there are not more seeds than vertices, because seeds must be distinct. */
static int32_t check_count(const graft_matrix *graph, int64_t n, const char *name, graft_error *error)
{
    if (n <= graph->csr.n_rows) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG, "%s is %lld, but the graph has %lld vertices, of which each is a seed once",
                   name, (long long)n, (long long)graph->csr.n_rows);
}

static int32_t sample_create(graft_context *context, graft_matrix *graph, const int64_t *seeds, int64_t n_seeds,
                             graft_sampler **sampler, graft_error *error)
{
    struct gr_call           call;
    struct gr_sampler_source source = { .seeds = seeds, .n_seeds = n_seeds };
    graft_sampler           *made = NULL;
    int32_t                  rc = gr_call_begin(&call, context, GRAFT_SAMPLE_ID " create", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(gr_matrix_check(context, graph, "graph", 1, &call.error));
    if (sampler == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "sampler is null");
    GR_TRY_DONE(rc);
    GR_TRY_DONE(check_count(graph, n_seeds, "n_seeds", &call.error));
    source.n_layers = (int32_t)gr_shape_options(context)->layers;
    source.graph = &graph->csr;
    GR_TRY_DONE(gr_sampler_create(context, &source, &made, &call.error));
    *gr_sampler_graph(made) = graph;
    gr_handle_init(made, GR_HANDLE_SAMPLER, context);
    *sampler = made;
done:
    return gr_call_end(&call, rc);
}

/* Check that the graph is still the sampler's: it may have been destroyed and another matrix have its address, or its
 * values may have changed. */
static int32_t check_same(const graft_sampler *sampler, const graft_matrix *graph, graft_error *error)
{
    if (gr_sampler_reads(sampler, &graph->csr)) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_STATE,
                   "the sampler's graph was destroyed, or was given other values: create another sampler");
}

/* Begin a call that reads the graph of the sampler. */
static int32_t begin_reading(struct gr_call *call, graft_sampler *sampler, const char *where, graft_error *error)
{
    int32_t rc = gr_call_begin_on(call, sampler, GR_HANDLE_SAMPLER, where, error);

    if (rc < 0) return rc;
    rc = gr_matrix_check(call->context, *gr_sampler_graph(sampler), "the sampler's graph", 1, &call->error);
    return rc < 0 ? rc : check_same(sampler, *gr_sampler_graph(sampler), &call->error);
}

static int32_t sample_begin(graft_sampler *sampler, int64_t epoch, int64_t first, int64_t *n_batches,
                            graft_error *error)
{
    struct gr_call call;
    int32_t        rc = begin_reading(&call, sampler, GRAFT_SAMPLE_ID " begin", error);

    if (rc == GRAFT_OK) rc = gr_sampler_begin(sampler, epoch, first, &call.error);
    if (rc == GRAFT_OK && n_batches != NULL) *n_batches = gr_sampler_batches(sampler);
    return gr_call_end(&call, rc);
}

static int32_t give_batch(const graft_sampler *sampler, graft_sample_batch *theirs, graft_error *error)
{
    const struct gr_batch   *batch = gr_sampler_batch(sampler);
    const graft_sample_batch ours = { .size = sizeof ours,
                                      .n_layers = batch->n_layers,
                                      .epoch = batch->epoch,
                                      .index = batch->index,
                                      .n_seeds = batch->n_seeds,
                                      .n_vertices = batch->n_vertices,
                                      .n_edges = gr_sample_batch_edges(batch),
                                      .vertex = batch->vertex,
                                      .weight = batch->weighs_seeds ? batch->weight : NULL };

    return gr_struct_write(theirs, &ours, sizeof ours, "batch", error);
}

static int32_t sample_next(graft_sampler *sampler, graft_sample_batch *batch, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = begin_reading(&call, sampler, GRAFT_SAMPLE_ID " next", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(gr_struct_check_out(batch, "batch", &call.error));
    GR_TRY_DONE(gr_sampler_next(sampler, &call.error));
    rc = give_batch(sampler, batch, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t sample_sample(graft_sampler *sampler, const int64_t *seeds, int64_t n, uint32_t flags,
                             graft_sample_batch *batch, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = begin_reading(&call, sampler, GRAFT_SAMPLE_ID " sample", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(gr_struct_check_out(batch, "batch", &call.error));
    if (seeds == NULL || n <= 0)
        rc = gr_fail(&call.error, GRAFT_ERR_ARG, "n is %lld, and seeds %s", (long long)n,
                     seeds == NULL ? "is null" : "is an array");
    else if ((flags & ~GRAFT_SAMPLE_ALL) != 0) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "flags is 0x%x", flags);
    GR_TRY_DONE(rc);
    GR_TRY_DONE(check_count(*gr_sampler_graph(sampler), n, "n", &call.error));
    GR_TRY_DONE(gr_sampler_sample(sampler, seeds, n, (flags & GRAFT_SAMPLE_ALL) != 0, &call.error));
    rc = give_batch(sampler, batch, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t sample_block(graft_sampler *sampler, int32_t layer, graft_sample_block *block, graft_error *error)
{
    struct gr_call          call;
    graft_sample_block      ours = { .size = sizeof ours };
    const struct gr_batch  *batch;
    struct gr_sampled_layer of;
    int32_t                 rc = gr_call_begin_on(&call, sampler, GR_HANDLE_SAMPLER, GRAFT_SAMPLE_ID " block", error);

    GR_TRY_DONE(rc);
    batch = gr_sampler_batch(sampler);
    if (batch == NULL) rc = gr_fail(&call.error, GRAFT_ERR_STATE, "there is no batch: call next() or sample() first");
    else if (layer < 0 || layer >= batch->n_layers)
        rc = gr_fail(&call.error, GRAFT_ERR_ARG, "layer is %d, but a batch has %d", layer, batch->n_layers);
    GR_TRY_DONE(rc);
    of = gr_sample_batch_layer(batch, layer);
    ours.n_dst = of.n_dst;
    ours.n_src = of.n_src;
    ours.n_edges = of.n_edges;
    ours.row_ptr = of.row_ptr;
    ours.col_idx = of.col;
    ours.entry = of.entry;
    ours.weight = of.weight;
    rc = gr_struct_write(block, &ours, sizeof ours, "block", &call.error);
done:
    return gr_call_end(&call, rc);
}

/* Any thread may make this call while another call runs. So it uses nothing of the context but the host's allocator,
 * and no options, because the other call may set them. */
static int32_t sample_prefetch(graft_sampler *sampler, int32_t *made, graft_error *error)
{
    struct gr_call call = { .error = { .size = sizeof call.error },
                            .out = error,
                            .where = GRAFT_SAMPLE_ID " prefetch",
                            .saved_errno = errno,
                            .saved_fp = gr_fp_hold() };
    int32_t        rc = gr_handle_enter(sampler, GR_HANDLE_SAMPLER, call.where, NULL, &call.error), ours = 0;

    GR_TRY_DONE(rc);
    if (((const struct gr_handle *)sampler)->context->binds_threads) gr_affinity_save(&call.affinity);
    if (made == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "made is null");
    else if (!gr_handle_is(*gr_sampler_graph(sampler), GR_HANDLE_MATRIX))
        rc = gr_fail(&call.error, GRAFT_ERR_STATE, "the sampler's graph was destroyed");
    else rc = check_same(sampler, *gr_sampler_graph(sampler), &call.error);
    GR_TRY_DONE(rc);
    GR_TRY_DONE(gr_sampler_prefetch(sampler, &ours, &call.error));
    *made = ours;
done:
    return gr_call_end(&call, rc);
}

static int32_t sample_explain(graft_sampler *sampler, char *text, uint64_t capacity, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, sampler, GR_HANDLE_SAMPLER, GRAFT_SAMPLE_ID " explain", error);

    if (rc == GRAFT_OK) rc = gr_text_check(text, capacity, &call.error);
    if (rc == GRAFT_OK) gr_sampler_explain(sampler, text, capacity);
    return gr_call_end(&call, rc);
}

GR_ENTRY_DESTROY(sample_destroy, graft_sampler, SAMPLER, GRAFT_SAMPLE_ID " destroy", gr_sampler_destroy)

const graft_sample_api gr_interface_sample = {
    .size = sizeof(graft_sample_api),
    .create = sample_create,
    .begin = sample_begin,
    .next = sample_next,
    .sample = sample_sample,
    .block = sample_block,
    .prefetch = sample_prefetch,
    .explain = sample_explain,
    .destroy = sample_destroy,
};
