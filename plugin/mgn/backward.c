/* The backward pass. The forward pass has stored the states of nodes and edges before each layer, the sums m, and
 * perhaps products of edges; other inner values of an MLP are computed again, block by block.
 *
 * Gradients of weights are sums over blocks. One thread sums a group of blocks in order, and the group sums are then
 * added in order. Groups depend on sizes alone, so results are bitwise identical for any number of threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/parallel.h"
#include "mgn/inside.h"

#include <string.h>

/* -- sums over blocks ---------------------------------------------------------------------------------------------- */

/* A part of the backward pass, which sums the gradients of `mlp` over units: blocks of nodes or edges, or tasks. body()
 * processes one unit. */
struct part {
    struct gr_mgn       *g;
    int64_t              l, n, units;
    enum gr_mgn_part     measured;
    const struct gr_mlp *mlp;
    int64_t              elements; /* gradients of this many first weights of the MLP are computed */
    void (*body)(const struct part *part, int thread, int64_t unit, void *gradient);
    char *gradient; /* gradients of these weights */
    int   adds;     /* the result is added to `gradient` */
};

static int64_t partials_of(const struct part *p)
{
    const int64_t half = (p->units + 1) / 2;

    return half < p->g->partials.count ? half : p->g->partials.count;
}

static char *partial_at(const struct gr_mgn *g, int64_t i)
{
    return gr_mgn_at(g, g->partials.at, i * g->partials.elements);
}

static void run_partials(void *arg, int thread, int64_t begin, int64_t end)
{
    const struct part *p = arg;
    const int64_t      count = partials_of(p);

    for (int64_t i = begin; i < end; i++) {
        char *gradient = partial_at(p->g, i);

        memset(gradient, 0, (uint64_t)(p->elements * p->g->blocks.element));
        for (int64_t unit = p->units * i / count; unit < p->units * (i + 1) / count; unit++)
            p->body(p, thread, unit, gradient);
    }
}

static void add_partials(void *arg, int64_t begin, int64_t end)
{
    const struct part *p = arg;
    struct gr_mgn     *g = p->g;
    char              *sum = gr_mgn_at(g, p->gradient, begin);

    if (!p->adds) memset(sum, 0, (uint64_t)((end - begin) * g->blocks.element));
    for (int64_t i = 0; i < partials_of(p); i++) g->loops->add(end - begin, gr_mgn_at(g, partial_at(g, i), begin), sum);
}

static int32_t run_part(struct part *p, struct gr_team team, graft_error *error)
{
    const struct gr_mgn_pass pass = { p->l, p->measured, partials_of(p), 1, run_partials, p };
    const int32_t            rc = gr_mgn_run(p->g, team, &pass, error);
    const double             begin = gr_mgn_clock(p->g);

    if (rc == GRAFT_OK)
        gr_parallel_rows(team, p->elements * partials_of(p), p->elements, GR_EDGE_PIECE, add_partials, p);
    gr_mgn_measure(p->g, p->l, p->measured, begin);
    return rc;
}

/* The rows of block `unit`: begin_of() to end_of() - 1. */
static int64_t begin_of(int64_t unit)
{
    return unit * GR_MGN_ROWS;
}

static int64_t end_of(const struct part *p, int64_t unit)
{
    const int64_t end = (unit + 1) * GR_MGN_ROWS;

    return end < p->n ? end : p->n;
}

/* Describe a part over blocks of n rows, whose time counts to nodes unless the caller changes it. */
static struct part part_of_rows(struct gr_mgn *g, int64_t l, int64_t n, const struct gr_mlp *mlp, char *gradient)
{
    return (struct part){ .g = g,
                          .l = l,
                          .measured = GR_MGN_NODES,
                          .n = n,
                          .units = gr_chunk_count(n, GR_MGN_ROWS),
                          .mlp = mlp,
                          .elements = gr_nn_mlp_elements(mlp),
                          .gradient = gr_mgn_at(g, gradient, mlp->weight[0]) };
}

/* -- encoders and decoder ------------------------------------------------------------------------------------------ */

/* Compute the backward pass of an MLP whose input is one array x. Overwrites u, the gradient of its result. Returns the
 * gradient of the first product. */
static void *back_whole(const struct part *p, int thread, int64_t unit, const char *x, char *u, void *gradient)
{
    struct gr_mgn       *g = p->g;
    struct gr_nn_blocks *b = &g->blocks;
    const struct gr_mlp *mlp = p->mlp;
    const int64_t        begin = begin_of(unit), n = end_of(p, unit) - begin;
    const void          *rows = gr_mgn_at(g, x, begin * mlp->in);
    void                *z;

    gr_nn_multiply(b, thread, gr_nn_first(b, mlp, 0, mlp->in), n, rows, 0, b->thread[thread].rows[0]);
    z = gr_nn_backward(b, thread, mlp, n, 0, gr_mgn_at(g, u, begin * mlp->out), gradient, NULL);
    gr_nn_multiply_weights(b, thread, gr_nn_first_gradient(b, p->mlp, 0, mlp->in, gradient), n, rows, z);
    return z;
}

static void back_decoder(const struct part *p, int thread, int64_t unit, void *gradient)
{
    struct gr_mgn *g = p->g;
    const int64_t  begin = begin_of(unit);
    void          *z = back_whole(p, thread, unit, gr_mgn_h(g, p->l), g->gradients.output, gradient);

    gr_nn_multiply_back(&g->blocks, thread, gr_nn_first(&g->blocks, p->mlp, 0, p->mlp->in), end_of(p, unit) - begin, z,
                        0, gr_mgn_row(g, g->gradients.h, begin));
}

static void back_node_encoder(const struct part *p, int thread, int64_t unit, void *gradient)
{
    back_whole(p, thread, unit, p->g->pass.nodes, p->g->gradients.h, gradient);
}

static void back_edge_encoder(const struct part *p, int thread, int64_t unit, void *gradient)
{
    back_whole(p, thread, unit, p->g->pass.edges, p->g->gradients.e, gradient);
}

/* -- a layer ------------------------------------------------------------------------------------------------------- */

/* Compute the backward pass of MLP_n for a block of nodes: add the gradients of h before the layer to those after it,
 * and set the gradients of m. */
static void back_nodes(const struct part *p, int thread, int64_t unit, void *gradient)
{
    struct gr_mgn       *g = p->g;
    struct gr_nn_blocks *b = &g->blocks;
    const struct gr_mlp *mlp = p->mlp;
    const int64_t        width = gr_mgn_width(g), begin = begin_of(unit), end = end_of(p, unit), n = end - begin;
    void                *h = gr_mgn_row(g, g->gradients.h, begin), *u = b->thread[thread].back[0], *z;

    gr_mgn_first_of_nodes(g, thread, p->l, begin, end, b->thread[thread].rows[0]);
    memcpy(u, h, gr_mgn_row_bytes(g, n));
    z = gr_nn_backward(b, thread, mlp, n, 0, u, gradient, NULL);
    gr_nn_multiply_weights(b, thread, gr_nn_first_gradient(b, p->mlp, 0, width, gradient), n,
                           gr_mgn_row(g, gr_mgn_h(g, p->l), begin), z);
    gr_nn_multiply_weights(b, thread, gr_nn_first_gradient(b, p->mlp, width, width, gradient), n,
                           gr_mgn_row(g, gr_mgn_m(g, p->l), begin), z);
    gr_nn_multiply_back(b, thread, gr_nn_first(b, mlp, 0, width), n, z, 1, h);
    gr_nn_multiply_back(b, thread, gr_nn_first(b, mlp, width, width), n, z, 0, gr_mgn_row(g, g->gradients.m, begin));
}

/* Compute the backward pass of MLP_e for edges begin to end - 1. */
static void back_edges(const struct part *p, int thread, int64_t begin, int64_t end, void *gradient)
{
    struct gr_mgn               *g = p->g;
    struct gr_nn_blocks         *b = &g->blocks;
    const graft_mesh            *mesh = g->mesh;
    const struct gr_mgn_options *options = &g->shape->options;
    const struct gr_mgn_sums     sums = { .sum = options->sum,
                                          .target = mesh->edges.target + begin,
                                          .ranks = mesh->edges.ranks != NULL ? mesh->edges.ranks + begin : NULL };
    const int64_t                width = gr_mgn_width(g), n = end - begin;
    void                        *e = gr_mgn_row(g, g->gradients.e, begin), *z = gr_mgn_row(g, g->gradients.z, begin);
    void                        *u = b->thread[thread].back[0];

    if (g->kept.products != NULL) gr_mgn_use_products(g, thread, p->l, begin);
    else gr_mgn_first_of_edges(g, thread, p->l, begin, end, b->thread[thread].rows[0]);
    g->loops->end_edges_back(n, width, &sums, g->gradients.m, options->edges == GR_MGN_EDGES_CARRIED, e, u);
    gr_nn_backward(b, thread, p->mlp, n, g->kept.products != NULL, u, gradient, z);
    if (g->kept.products != NULL) gr_nn_use_rows(b, thread, 1);
    gr_nn_multiply_weights(b, thread, gr_nn_first_gradient(b, p->mlp, 2 * width, width, gradient), n,
                           gr_mgn_row(g, gr_mgn_e(g, p->l), begin), z);
    gr_nn_multiply_back(b, thread, gr_nn_first(b, p->mlp, 2 * width, width), n, z, 1, e);
    g->loops->scatter(n, width, z, mesh->edges.target + begin, g->gradients.targets);
}

static void back_task(const struct part *p, int thread, int64_t unit, void *gradient)
{
    struct gr_mgn *g = p->g;
    const int64_t *target = g->tasks.target + unit, end = g->mesh->edges.row_ptr[target[1]];

    memset(gr_mgn_row(g, g->gradients.targets, target[0]), 0, gr_mgn_row_bytes(g, target[1] - target[0]));
    for (int64_t k = g->mesh->edges.row_ptr[target[0]]; k < end; k += GR_MGN_ROWS)
        back_edges(p, thread, k, k + GR_MGN_ROWS < end ? k + GR_MGN_ROWS : end, gradient);
}

/* Compute the backward pass of the contributions of nodes begin to end - 1 to the first products of edges, from their
 * gradients `products`. Their columns of the first matrix begin at `column`. */
static void back_products(const struct part *p, int thread, int64_t column, int64_t begin, int64_t end, char *products,
                          int adds, void *gradient)
{
    struct gr_mgn       *g = p->g;
    struct gr_nn_blocks *b = &g->blocks;
    const int64_t        width = gr_mgn_width(g);
    const void          *z = gr_mgn_row(g, products, begin);

    if (begin >= end) return;
    gr_nn_multiply_weights(b, thread, gr_nn_first_gradient(b, p->mlp, column, width, gradient), end - begin,
                           gr_mgn_row(g, gr_mgn_h(g, p->l), begin), z);
    gr_nn_multiply_back(b, thread, gr_nn_first(b, p->mlp, column, width), end - begin, z, adds,
                        gr_mgn_row(g, g->gradients.h, begin));
}

/* Compute the backward pass of the contributions of a block of nodes, as sources and as targets. For rows of the halo
 * the gradients of h are overwritten, for nodes they are added to. */
static void back_products_of_nodes(const struct part *p, int thread, int64_t unit, void *gradient)
{
    struct gr_mgn    *g = p->g;
    const graft_mesh *mesh = g->mesh;
    const int64_t     begin = begin_of(unit), end = end_of(p, unit);
    const int64_t     own = end < mesh->n_nodes ? end : mesh->n_nodes, halo = begin > own ? begin : own;

    g->loops->collect(begin, end, gr_mgn_width(g), mesh->edges.out_ptr, mesh->edges.out_edge, g->gradients.z,
                      g->gradients.sources);
    back_products(p, thread, 0, begin, own, g->gradients.sources, 1, gradient);
    back_products(p, thread, 0, halo, end, g->gradients.sources, 0, gradient);
    back_products(p, thread, gr_mgn_width(g), begin, own, g->gradients.targets, 1, gradient);
}

static void products_again(void *arg, int thread, int64_t begin, int64_t end)
{
    const struct part *p = arg;

    gr_mgn_products_of_nodes(p->g, thread, p->l, begin, end);
}

/* Exchange gradients, and wait for the end of the exchange. */
static int32_t exchange(struct gr_mgn *g, int64_t l, char *rows, struct gr_team team, graft_error *error)
{
    const int32_t rc = gr_mgn_exchange_begin(g, l, GR_BACKWARD, rows, team, error);

    return rc < 0 ? rc : gr_mgn_exchange_end(g, rows, team, error);
}

static int32_t back_layer(struct gr_mgn *g, int64_t l, char *gradient, struct gr_team team, graft_error *error)
{
    const graft_mesh  *mesh = g->mesh;
    const int          is_shared = mesh->kind == GRAFT_MESH_SHARED;
    const double       begin = gr_mgn_clock(g);
    struct part        part = part_of_rows(g, l, mesh->n_nodes, &g->shape->node[l], gradient);
    struct gr_mgn_pass again = { l, GR_MGN_NODES, mesh->n_sources, GR_MGN_ROWS, products_again, &part };
    int32_t            rc;

    part.body = back_nodes;
    GR_TRY_DONE(run_part(&part, team, error));
    if (is_shared) GR_TRY_DONE(exchange(g, l, g->gradients.m, team, error));
    part = part_of_rows(g, l, mesh->n_sources, &g->shape->edge[l], gradient);
    if (g->kept.products == NULL) GR_TRY_DONE(gr_mgn_run(g, team, &again, error));
    part.body = back_task;
    part.measured = GR_MGN_EDGES;
    part.units = g->tasks.count;
    GR_TRY_DONE(run_part(&part, team, error));
    part = part_of_rows(g, l, mesh->n_sources, &g->shape->edge[l], gradient);
    part.body = back_products_of_nodes;
    part.elements = gr_nn_first(&g->blocks, part.mlp, 0, 0).out * part.mlp->in;
    part.adds = 1;
    GR_TRY_DONE(run_part(&part, team, error));
    if (!is_shared) rc = exchange(g, l, g->gradients.h, team, error);
    gr_mgn_measure(g, l, GR_MGN_ALL, begin);
done:
    return rc;
}

/* -- the pass ------------------------------------------------------------------------------------------------------ */

static int32_t back_all(struct gr_mgn *g, char *gradient, struct gr_team team, graft_error *error)
{
    const graft_mesh *mesh = g->mesh;
    const int64_t     layers = g->shape->options.layers;
    const double      begin = gr_mgn_clock(g);
    struct part       part = part_of_rows(g, layers, mesh->n_nodes, &g->shape->decoder, gradient);
    int32_t           rc;

    g->pass.is_backward = 1;
    part.body = back_decoder;
    GR_TRY_DONE(run_part(&part, team, error));
    memset(g->gradients.e, 0, gr_mgn_row_bytes(g, mesh->n_edges));
    for (int64_t l = layers; l-- > 0;) GR_TRY_DONE(back_layer(g, l, gradient, team, error));
    part = part_of_rows(g, layers, mesh->n_edges, &g->shape->edge_encoder, gradient);
    part.body = back_edge_encoder;
    part.measured = GR_MGN_EDGES;
    GR_TRY_DONE(run_part(&part, team, error));
    part = part_of_rows(g, layers, mesh->n_nodes, &g->shape->node_encoder, gradient);
    part.body = back_node_encoder;
    rc = run_part(&part, team, error);
    gr_mgn_measure(g, layers + 1, GR_MGN_ALL, begin);
done:
    g->pass.is_backward = 0;
    return rc;
}

/* Agree over ranks whether rows of the backward pass could not be encoded. */
static int32_t agree_on_rows(struct gr_mgn *g, graft_error *error)
{
    if (g->messages.refused < 0) *error = g->messages.reason;
    return gr_comm_agree_on(g->mesh->comm, g->messages.refused, error);
}

int32_t gr_mgn_backward(struct gr_mgn *g, const void *weights, const void *nodes, const void *edges, int exact,
                        int64_t epoch,
                        int32_t (*loss)(void *arg, const void *output, void *gradient_of_output, graft_error *error),
                        void *arg, void *gradient, struct gr_team team, graft_error *error)
{
    struct gr_nn_blocks *b = &g->blocks;
    int32_t              rc = GRAFT_OK;

    GR_ASSERT(g->partials.at != NULL);
    g->pass.keeps = 1;
    g->pass.epoch = epoch;
    GR_TRY_DONE(gr_mgn_forward_begin(g, GRAFT_OK, weights, nodes, edges, exact, team, error));
    GR_TRY_DONE(gr_mgn_forward_end(g, GRAFT_OK, g->kept.output, team, error));
    GR_TRY_DONE(loss(arg, g->kept.output, g->gradients.output, error));
    for (int t = 0; t < b->n_threads; t++) gr_nn_use_rows(b, t, 1);
    GR_TRY_DONE(back_all(g, gradient, team, error));
    if (g->messages.rows.messages.format.refuses) rc = agree_on_rows(g, error);
done:
    for (int t = 0; t < b->n_threads; t++) gr_nn_use_rows(b, t, 0);
    g->pass.keeps = 0;
    g->pass.epoch = 0;
    return rc;
}
