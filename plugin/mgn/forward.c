/* The forward pass: encoders, layers, decoder, and the exchanges between layers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/parallel.h"
#include "mgn/inside.h"

#include <string.h>

/* -- blocks and tasks ---------------------------------------------------------------------------------------------- */

static void run_some(void *arg, int64_t begin, int64_t end)
{
    const struct gr_mgn_pass *p = arg;

    p->body(p->arg, omp_get_thread_num(), begin, end);
}

int32_t gr_mgn_run(struct gr_mgn *g, struct gr_team team, const struct gr_mgn_pass *pass, graft_error *error)
{
    struct gr_nn_blocks *b = &g->blocks;
    const int64_t width = gr_mgn_width(g), operations = (pass->rows == 1 ? GR_MGN_ROWS : 1) * pass->n * width * width;
    const double  begin = gr_mgn_clock(g);
    struct gr_mgn_pass copy = *pass;
    int32_t            rc;

    if (team.threads > b->n_threads) team.threads = b->n_threads;
    gr_parallel_rows(team, operations, pass->n, pass->rows, run_some, &copy);
    gr_mgn_measure(g, pass->l, pass->part, begin);
    rc = gr_nn_products_status(b, error);
    return rc < 0 && g->mesh->comm->n_ranks > 1 ? gr_comm_fail(g->mesh->comm, error) : rc;
}

/* -- encoders ------------------------------------------------------------------------------------------------------ */

/* Apply an MLP to rows begin to end - 1 of x, and write the results to `out`. */
static void apply_mlp(struct gr_mgn *g, int thread, const struct gr_mlp *mlp, int64_t begin, int64_t end, const void *x,
                      char *out)
{
    struct gr_nn_blocks *b = &g->blocks;
    const int64_t        n = end - begin;
    struct gr_nn_norm    norm;

    gr_nn_multiply(b, thread, gr_nn_first(b, mlp, 0, mlp->in), n, gr_mgn_at(g, x, begin * mlp->in), 0,
                   b->thread[thread].rows[0]);
    norm = gr_nn_forward(b, thread, mlp, n);
    b->loops->end(&norm, NULL, gr_mgn_at(g, out, begin * mlp->out));
}

void gr_mgn_products_of_nodes(struct gr_mgn *g, int thread, int64_t l, int64_t begin, int64_t end)
{
    struct gr_nn_blocks *b = &g->blocks;
    const struct gr_mlp *mlp = &g->shape->edge[l];
    const int64_t        width = gr_mgn_width(g), own = end < g->mesh->n_nodes ? end : g->mesh->n_nodes;
    const void          *h = gr_mgn_row(g, gr_mgn_h(g, l), begin);

    gr_nn_multiply(b, thread, gr_nn_first(b, mlp, 0, width), end - begin, h, 0,
                   gr_mgn_row(g, g->arrays.sources, begin));
    if (begin < own)
        gr_nn_multiply(b, thread, gr_nn_first(b, mlp, width, width), own - begin, h, 0,
                       gr_mgn_row(g, g->arrays.targets, begin));
}

static void encode_nodes(void *arg, int thread, int64_t begin, int64_t end)
{
    struct gr_mgn *g = arg;

    apply_mlp(g, thread, &g->shape->node_encoder, begin, end, g->pass.nodes, gr_mgn_h(g, 0));
    if (g->shape->options.layers > 0) gr_mgn_products_of_nodes(g, thread, 0, begin, end);
}

static void encode_edges(void *arg, int thread, int64_t begin, int64_t end)
{
    struct gr_mgn *g = arg;

    apply_mlp(g, thread, &g->shape->edge_encoder, begin, end, g->pass.edges, g->arrays.e);
}

/* -- a layer ------------------------------------------------------------------------------------------------------- */

void gr_mgn_first_of_edges(struct gr_mgn *g, int thread, int64_t l, int64_t begin, int64_t end, void *z)
{
    const graft_mesh *mesh = g->mesh;
    const int64_t     width = gr_mgn_width(g);

    g->loops->gather(end - begin, width, g->arrays.sources, mesh->edges.source + begin, g->arrays.targets,
                     mesh->edges.target + begin, z);
    gr_nn_multiply(&g->blocks, thread, gr_nn_first(&g->blocks, &g->shape->edge[l], 2 * width, width), end - begin,
                   gr_mgn_row(g, gr_mgn_e(g, l), begin), 1, z);
}

void gr_mgn_first_of_nodes(struct gr_mgn *g, int thread, int64_t l, int64_t begin, int64_t end, void *z)
{
    struct gr_nn_blocks *b = &g->blocks;
    const struct gr_mlp *mlp = &g->shape->node[l];
    const int64_t        width = gr_mgn_width(g);

    gr_nn_multiply(b, thread, gr_nn_first(b, mlp, 0, width), end - begin, gr_mgn_row(g, gr_mgn_h(g, l), begin), 0, z);
    gr_nn_multiply(b, thread, gr_nn_first(b, mlp, width, width), end - begin, gr_mgn_row(g, gr_mgn_m(g, l), begin), 1,
                   z);
}

struct layer {
    struct gr_mgn *g;
    int64_t        l, first_task;
};

/* The array for the edges that the next layer reads; NULL: none, because there is no next layer, or it reads the
 * encoded edges. */
static char *next_edges(const struct layer *layer)
{
    const struct gr_mgn_options *options = &layer->g->shape->options;

    if (options->edges == GR_MGN_EDGES_ENCODED || layer->l + 1 == options->layers) return NULL;
    return gr_mgn_e(layer->g, layer->l + 1);
}

/* Compute the layer for edges begin to end - 1. */
static void pass_edges(const struct layer *layer, int thread, int64_t begin, int64_t end)
{
    struct gr_mgn           *g = layer->g;
    struct gr_nn_blocks     *b = &g->blocks;
    const graft_mesh        *mesh = g->mesh;
    const struct gr_mlp     *mlp = &g->shape->edge[layer->l];
    const struct gr_mgn_sums sums = { .sum = g->shape->options.sum,
                                      .target = mesh->edges.target + begin,
                                      .ranks = mesh->edges.ranks != NULL ? mesh->edges.ranks + begin : NULL };
    const int                keeps = g->pass.keeps && g->kept.products != NULL;
    char                    *next = next_edges(layer);
    struct gr_nn_norm        norm;

    if (keeps) gr_mgn_use_products(g, thread, layer->l, begin);
    gr_mgn_first_of_edges(g, thread, layer->l, begin, end, b->thread[thread].rows[0]);
    norm = gr_nn_forward(b, thread, mlp, end - begin);
    if (keeps) {
        norm.z = memcpy(b->thread[thread].block, norm.z, gr_mgn_row_bytes(g, end - begin));
        gr_nn_use_rows(b, thread, 0);
    }
    g->loops->end_edges(&norm, &sums, gr_mgn_row(g, gr_mgn_e(g, layer->l), begin),
                        next != NULL ? gr_mgn_row(g, next, begin) : NULL, gr_mgn_m(g, layer->l));
}

static void pass_tasks(void *arg, int thread, int64_t begin, int64_t end)
{
    const struct layer *layer = arg;
    struct gr_mgn      *g = layer->g;
    const int64_t      *row_ptr = g->mesh->edges.row_ptr;

    for (int64_t i = begin; i < end; i++) {
        const int64_t *target = g->tasks.target + g->tasks.order[layer->first_task + i];

        memset(gr_mgn_row(g, gr_mgn_m(g, layer->l), target[0]), 0, gr_mgn_row_bytes(g, target[1] - target[0]));
        for (int64_t k = row_ptr[target[0]]; k < row_ptr[target[1]]; k += GR_MGN_ROWS)
            pass_edges(layer, thread, k, k + GR_MGN_ROWS < row_ptr[target[1]] ? k + GR_MGN_ROWS : row_ptr[target[1]]);
    }
}

/* Compute the layer for the edges of tasks first to end - 1 of tasks.order. */
static int32_t run_tasks(struct gr_mgn *g, int64_t l, int64_t first, int64_t end, struct gr_team team,
                         graft_error *error)
{
    struct layer             layer = { g, l, first };
    const struct gr_mgn_pass pass = { l, GR_MGN_EDGES, end - first, 1, pass_tasks, &layer };

    return gr_mgn_run(g, gr_mgn_polling(g, team), &pass, error);
}

static void pass_nodes(void *arg, int thread, int64_t begin, int64_t end)
{
    const struct layer  *layer = arg;
    struct gr_mgn       *g = layer->g;
    struct gr_nn_blocks *b = &g->blocks;
    const struct gr_mlp *mlp = &g->shape->node[layer->l];
    struct gr_nn_norm    norm;

    gr_mgn_first_of_nodes(g, thread, layer->l, begin, end, b->thread[thread].rows[0]);
    norm = gr_nn_forward(b, thread, mlp, end - begin);
    b->loops->end(&norm, gr_mgn_row(g, gr_mgn_h(g, layer->l), begin), gr_mgn_row(g, gr_mgn_h(g, layer->l + 1), begin));
    if (layer->l + 1 < g->shape->options.layers) gr_mgn_products_of_nodes(g, thread, layer->l + 1, begin, end);
}

/* Compute the products of rows of the halo, which have arrived. */
static void pass_halo(void *arg, int thread, int64_t begin, int64_t end)
{
    const struct layer *layer = arg;
    const int64_t       n_nodes = layer->g->mesh->n_nodes;

    gr_mgn_products_of_nodes(layer->g, thread, layer->l, n_nodes + begin, n_nodes + end);
}

/* Do the work of layer l up to the sending of its messages. */
static int32_t start_layer(struct gr_mgn *g, int64_t l, struct gr_team team, graft_error *error)
{
    const int    is_shared = g->mesh->kind == GRAFT_MESH_SHARED;
    const double begin = gr_mgn_clock(g);
    int32_t      rc = GRAFT_OK;

    if (is_shared) GR_TRY_DONE(run_tasks(g, l, 0, g->tasks.n_first, team, error));
    rc = gr_mgn_exchange_begin(g, l, GR_FORWARD, is_shared ? gr_mgn_m(g, l) : gr_mgn_h(g, l), team, error);
    gr_mgn_measure(g, l, GR_MGN_ALL, begin);
done:
    return rc;
}

static int32_t finish_layer(struct gr_mgn *g, int64_t l, struct gr_team team, graft_error *error)
{
    const graft_mesh        *mesh = g->mesh;
    const int                is_shared = mesh->kind == GRAFT_MESH_SHARED;
    const int64_t            first = g->tasks.n_first, count = g->tasks.count, n_halo = mesh->n_sources - mesh->n_nodes;
    struct layer             layer = { g, l, 0 };
    const struct gr_mgn_pass halo = { l, GR_MGN_NODES, n_halo, GR_MGN_ROWS, pass_halo, &layer };
    const struct gr_mgn_pass nodes = { l, GR_MGN_NODES, mesh->n_nodes, GR_MGN_ROWS, pass_nodes, &layer };
    const double             begin = gr_mgn_clock(g);
    int32_t                  rc = GRAFT_OK;

    GR_TRY_DONE(run_tasks(g, l, is_shared ? first : 0, is_shared ? count : first, team, error));
    GR_TRY_DONE(gr_mgn_exchange_end(g, is_shared ? gr_mgn_m(g, l) : gr_mgn_h(g, l), team, error));
    GR_TRY_DONE(gr_mgn_run(g, team, &halo, error));
    if (!is_shared) GR_TRY_DONE(run_tasks(g, l, first, count, team, error));
    rc = gr_mgn_run(g, gr_mgn_polling(g, team), &nodes, error);
    gr_mgn_measure(g, l, GR_MGN_ALL, begin);
done:
    return rc;
}

/* -- the pass ------------------------------------------------------------------------------------------------------ */

static void decode_nodes(void *arg, int thread, int64_t begin, int64_t end)
{
    struct gr_mgn *g = arg;

    apply_mlp(g, thread, &g->shape->decoder, begin, end, gr_mgn_h(g, g->shape->options.layers), g->pass.output);
}

int32_t gr_mgn_forward_begin(struct gr_mgn *g, int32_t status, const void *weights, const void *nodes,
                             const void *edges, int exact, struct gr_team team, graft_error *error)
{
    const int64_t            layers = g->shape->options.layers;
    const int                is_shared = g->mesh->kind == GRAFT_MESH_SHARED;
    const struct gr_mgn_pass of_nodes = { layers, GR_MGN_NODES, g->mesh->n_nodes, GR_MGN_ROWS, encode_nodes, g };
    const struct gr_mgn_pass of_edges = { layers, GR_MGN_EDGES, g->mesh->n_edges, GR_MGN_ROWS, encode_edges, g };
    const double             begin = gr_mgn_clock(g);
    int32_t                  rc = GRAFT_OK;

    if (g->times != NULL) memset(g->times, 0, 2 * (uint64_t)(layers + 2) * sizeof *g->times);
    g->blocks.weights = weights;
    g->pass.nodes = nodes;
    g->pass.edges = edges;
    g->pass.exact = exact;
    g->messages.bytes_sent = 0;
    g->messages.refused = status;
    if (status < 0) g->messages.reason = *error;
    g->messages.received_refused = 0;
    gr_comm_outcome_count(&g->messages.outcome);
    g->messages.call = g->messages.outcome.calls;
    GR_TRY_DONE(gr_mgn_run(g, team, &of_nodes, error));
    if (!is_shared && layers > 0) GR_TRY_DONE(start_layer(g, 0, team, error));
    GR_TRY_DONE(gr_mgn_run(g, gr_mgn_polling(g, team), &of_edges, error));
    if (is_shared && layers > 0) rc = start_layer(g, 0, team, error);
    gr_mgn_measure(g, layers + 1, GR_MGN_ALL, begin);
done:
    return rc;
}

/* Begin to agree on the outcome, after this rank has encoded its last rows. */
static int32_t begin_outcome(struct gr_mgn *g, int32_t status, graft_error *error)
{
    if (g->messages.refused == GRAFT_OK)
        return gr_comm_outcome_begin(&g->messages.outcome, g->messages.call, status, error, NULL, 0, error);
    return gr_comm_outcome_begin(&g->messages.outcome, g->messages.call, g->messages.refused, &g->messages.reason, NULL,
                                 0, error);
}

/* Wait for the outcome. The time counts to the last layer. */
static int32_t end_outcome(struct gr_mgn *g, graft_error *error)
{
    const int64_t last = g->shape->options.layers - 1;
    const double  begin = gr_mgn_clock(g);
    const int32_t rc = gr_comm_outcome_end(&g->messages.outcome, error);

    if (g->mesh->comm->n_ranks == 1) return rc;
    gr_mgn_measure(g, last, GR_MGN_WAIT, begin);
    gr_mgn_measure(g, last, GR_MGN_ALL, begin);
    return rc;
}

void gr_mgn_count_begin(struct gr_mgn *g)
{
    gr_comm_outcome_count(&g->messages.outcome);
}

void gr_mgn_count_end(struct gr_mgn *g)
{
    gr_comm_outcome_count_end(&g->messages.outcome);
}

int32_t gr_mgn_forward_end(struct gr_mgn *g, int32_t status, void *output, struct gr_team team, graft_error *error)
{
    const int64_t            layers = g->shape->options.layers;
    const struct gr_mgn_pass decode = { layers, GR_MGN_NODES, g->mesh->n_nodes, GR_MGN_ROWS, decode_nodes, g };
    const double             begin = gr_mgn_clock(g);
    int32_t                  rc = GRAFT_OK;

    for (int64_t l = 0; l < layers; l++) {
        if (l + 1 == layers) GR_TRY_DONE(begin_outcome(g, status, error));
        GR_TRY_DONE(finish_layer(g, l, team, error));
        if (l + 1 < layers) GR_TRY_DONE(start_layer(g, l + 1, team, error));
    }
    g->pass.output = output;
    GR_TRY_DONE(gr_mgn_run(g, gr_mgn_polling(g, team), &decode, error));
    rc = end_outcome(g, error);
    gr_mgn_measure(g, layers + 1, GR_MGN_ALL, begin);
done:
    return rc;
}

int64_t gr_mgn_bytes_sent(const struct gr_mgn *g)
{
    return g->messages.bytes_sent;
}
