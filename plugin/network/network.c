/* Creates a network: checks its description, and allocates all memory for inference.
 * SPDX-License-Identifier: Apache-2.0 */
#include "network/network.h"

#include "base/assert.h"
#include "base/crc.h"
#include "base/direction.h"
#include "base/options.h"
#include "comm/compare_options.h"
#include "network/fields.h"
#include "network/options.h"
#include "nn/options.h"

#include <math.h>
#include <string.h>

enum { DEFAULT_LAYERS = 15 };

/* The tables of options that must be the same on all ranks, one bit for each. */
static uint32_t compared_options(const graft_context *context)
{
    return gr_options_bit(context, &gr_network_option_table) | gr_options_bit(context, &gr_shape_option_table) |
           gr_mgn_option_bits(context);
}

struct gr_team gr_network_team(const graft_network *n)
{
    return (struct gr_team){ .threads = gr_context_threads(n->context, 0) };
}

/* The arrays in `args`, for the rows of this rank. */
struct given {
    graft_field    constant; /* n_columns 0: none */
    const uint8_t *is_free;
    const double  *loss_weight;
};

static int32_t read_constant(const graft_mesh *mesh, const graft_network_args *args, graft_field *constant,
                             graft_error *error)
{
    *constant = (graft_field){ .n_columns = 0 };
    if (args->constant == NULL) return GRAFT_OK;
    return gr_mesh_field_read(args->constant, "args.constant", mesh->n_rows, -1, constant, error);
}

/* Check that constant inputs are finite, weights are finite and at least 0, and is_free is 0 or 1. */
static int32_t check_given(const graft_mesh *mesh, const struct given *given, graft_error *error)
{
    for (int64_t i = 0; i < mesh->n_nodes; i++) {
        const int64_t   row = mesh->row_of[i];
        const long long shown = row + mesh->index_base;

        for (int64_t j = 0; j < given->constant.n_columns; j++)
            if (!isfinite(gr_mesh_field_at(&given->constant, row, j)))
                return gr_fail(error, GRAFT_ERR_FORMAT, "args.constant has %g in row %lld, column %lld",
                               gr_mesh_field_at(&given->constant, row, j), shown, (long long)j);
        if (given->loss_weight != NULL && !(given->loss_weight[row] >= 0 && isfinite(given->loss_weight[row])))
            return gr_fail(error, GRAFT_ERR_FORMAT, "args.loss_weight has %g in row %lld, expected 0 or more",
                           given->loss_weight[row], shown);
        if (given->is_free != NULL && given->is_free[row] > 1)
            return gr_fail(error, GRAFT_ERR_FORMAT, "args.is_free has %d in row %lld, expected 0 or 1",
                           given->is_free[row], shown);
    }
    return GRAFT_OK;
}

static int32_t check_args(const graft_mesh *mesh, const graft_network_args *args, struct given *given,
                          graft_error *error)
{
    const struct gr_shape_options *options = gr_shape_options(mesh->context);
    const int                      changes = args->predicts == GRAFT_PREDICTS_CHANGE;

    if (!changes && args->predicts != GRAFT_PREDICTS_VALUE)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "args.predicts is %d, expected GRAFT_PREDICTS_VALUE (1) or GRAFT_PREDICTS_CHANGE (2)",
                       args->predicts);
    if (args->n_in < 1 || args->n_out < 1)
        return gr_fail(error, GRAFT_ERR_ARG, "args.n_in and n_out are %d and %d, expected at least 1", args->n_in,
                       args->n_out);
    if ((changes || options->adds_input) && args->n_out > args->n_in)
        return gr_fail(
            error, GRAFT_ERR_ARG,
            "args.n_out is %d, but outputs are added to the first of %d inputs (%s), so there can be no more",
            args->n_out, args->n_in, changes ? "GRAFT_PREDICTS_CHANGE" : "option residual");
    if (changes && options->adds_input)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'residual' is yes, which is for networks that predict values, and args.predicts is "
                       "GRAFT_PREDICTS_CHANGE");
    if (options->norm == GR_NORM_BATCH)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'norm' is batch, which only trainers have; networks on meshes have none and layer");
    if (options->hidden.count != 1)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'hidden' is a list of %d widths; networks on meshes have one width",
                       options->hidden.count);
    if (options->model_type == GR_MODEL_BF16)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'model.type' is bf16, which only trainers have; networks on meshes have f32 and f64");
    if (gr_training_options(mesh->context)->weight_decay.number[1] != 0)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'weight_decay' ends with ':first', which only trainers have; in networks on meshes all "
                       "weights decay");
    GR_TRY(read_constant(mesh, args, &given->constant, error));
    given->is_free = args->is_free;
    given->loss_weight = args->loss_weight;
    return check_given(mesh, given, error);
}

static int32_t agree_on_args(const graft_mesh *mesh, int32_t rc, const graft_network_args *args,
                             const struct given *given, graft_error *error)
{
    static const char *const names[] = { "args.predicts", "args.n_in", "args.n_out", "columns of args.constant",
                                         "whether option check is full" };
    const uint64_t           values[] = { (uint64_t)args->predicts, (uint64_t)args->n_in, (uint64_t)args->n_out,
                                          (uint64_t)given->constant.n_columns,
                                          gr_base_options(mesh->context)->check == GR_CHECK_FULL };

    rc = gr_comm_agree_same(mesh->comm, rc, names, values, 5, error);
    if (rc == GRAFT_OK) rc = gr_comm_compare_options(mesh->context, mesh->comm, compared_options(mesh->context), error);
    return rc;
}

static void describe_network(graft_network *n, const graft_network_args *args, const struct given *given)
{
    const struct gr_base_options *base = gr_base_options(n->context);

    n->predicts = args->predicts;
    n->parameters.dtype = gr_shape_options(n->context)->model_type == GR_MODEL_F64 ? GRAFT_F64 : GRAFT_F32;
    n->columns.in = args->n_in;
    n->columns.out = args->n_out;
    n->columns.constant = given->constant.n_columns;
    n->columns.node_in = n->columns.in + n->columns.constant;
    n->columns.edge_in = n->mesh->space.dim + 1;
    n->options = *gr_network_options(n->context);
    n->columns.adds_input = gr_shape_options(n->context)->adds_input;
    n->seed = base->seed;
    n->times.is_measured = base->profile;
    n->checks.compares =
        base->check == GR_CHECK_FULL && n->mesh->kind == GRAFT_MESH_SHARED && n->mesh->comm->n_ranks > 1;
    n->checks.refuses_nonfinite =
        gr_mgn_refuses_nonfinite(n->context) && n->mesh->kind == GRAFT_MESH_GHOSTS && n->mesh->comm->n_ranks > 1;
}

/* Allocate an array in the type of the network. */
static int32_t new_typed(graft_network *n, enum gr_use use, void **array, int64_t count, const char *name,
                         graft_error *error)
{
    *array = gr_budget_new(&n->budget, use, count, n->parameters.dtype == GRAFT_F64 ? 8 : 4, name, error);
    return *array != NULL ? GRAFT_OK : GRAFT_ERR_NOMEM;
}

/* Read the options of room mgn. The default of option layers is for graphs, so DEFAULT_LAYERS replaces it. */
static struct gr_mgn_options mgn_options_of(const graft_network *n)
{
    const struct gr_shape_options   *shape = gr_shape_options(n->context);
    const struct gr_network_options *o = &n->options;

    return (struct gr_mgn_options){ .width = shape->hidden.width[0],
                                    .layers =
                                        gr_option_is_default(n->context, "layers") ? DEFAULT_LAYERS : shape->layers,
                                    .linear = o->linear,
                                    .is_elu = shape->activation == GR_ELU,
                                    .has_norm = shape->norm == GR_NORM_LAYER,
                                    .sum = o->sum,
                                    .edges = o->edges };
}

static int32_t allocate(graft_network *n, graft_error *error)
{
    const struct gr_mgn_options options = mgn_options_of(n);
    const int64_t               nodes = n->mesh->n_nodes;

    GR_TRY(gr_mgn_shape_init(n->context, &options, n->columns.node_in, n->columns.edge_in, n->columns.out, &n->shape,
                             error));
    GR_TRY(GR_BUDGET_NEW(&n->budget, GR_USE_WEIGHTS, n->parameters.list, gr_mgn_count_parameters(&n->shape), error));
    gr_mgn_add_parameters(&n->shape, &n->parameters);
    GR_ASSERT(n->parameters.n_weights == n->shape.n_weights);
    GR_TRY(gr_nn_reserve(&n->parameters, &n->budget, GR_USE_WEIGHTS, GR_COPY_VALUE, error));
    GR_TRY(GR_BUDGET_NEW(&n->budget, GR_USE_MASKS, n->of_node.is_free, nodes, error));
    GR_TRY(GR_BUDGET_NEW(&n->budget, GR_USE_MASKS, n->of_node.loss_weight, nodes, error));
    GR_TRY(GR_BUDGET_NEW(&n->budget, GR_USE_MASKS, n->of_node.free_weight, nodes, error));
    GR_TRY(new_typed(n, GR_USE_FEATURES, &n->arrays.nodes, nodes * n->columns.node_in, "nodes", error));
    GR_TRY(new_typed(n, GR_USE_FEATURES, &n->arrays.edges, n->mesh->n_edges * n->columns.edge_in, "edges", error));
    GR_TRY(new_typed(n, GR_USE_FEATURES, &n->arrays.output, nodes * n->columns.out, "output", error));
    GR_TRY(GR_BUDGET_NEW(&n->budget, GR_USE_FEATURES, n->arrays.values, nodes * n->columns.out, error));
    GR_TRY(gr_nn_statistics_init(&n->budget, n->columns.in, &n->statistics[GR_STATISTICS_NODE], error));
    GR_TRY(gr_nn_statistics_init(&n->budget, n->columns.edge_in, &n->statistics[GR_STATISTICS_EDGE], error));
    return gr_nn_statistics_init(&n->budget, n->columns.out, &n->statistics[GR_STATISTICS_OUTPUT], error);
}

/* Copy constant inputs, boundary nodes, and weights of this rank. Divide weights by their sum over all ranks. */
static int32_t take_rows_given(graft_network *n, const struct given *given, graft_error *error)
{
    const graft_mesh *mesh = n->mesh;
    double            sum = 0;

    for (int64_t i = 0; i < mesh->n_nodes; i++) {
        const int64_t row = mesh->row_of[i];

        for (int64_t j = 0; j < n->columns.constant; j++)
            gr_network_put(n, n->arrays.nodes, i * n->columns.node_in + n->columns.in + j,
                           gr_mesh_field_at(&given->constant, row, j));
        n->of_node.is_free[i] = given->is_free == NULL || given->is_free[row];
        n->of_node.free_weight[i] = n->of_node.is_free[i] ? (mesh->node_weight != NULL ? mesh->node_weight[i] : 1) : 0;
        n->of_node.loss_weight[i] =
            n->of_node.free_weight[i] * (given->loss_weight != NULL ? given->loss_weight[row] : 1);
        sum += n->of_node.loss_weight[i];
    }
    GR_TRY(gr_comm_sum_f64(mesh->comm, &sum, 1, error));
    if (!(sum > 0))
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "no node is free and has a loss_weight above 0, on any rank: there is nothing to predict");
    for (int64_t i = 0; i < mesh->n_nodes; i++) n->of_node.loss_weight[i] /= sum * (double)n->columns.out;
    return GRAFT_OK;
}

/* Compute column j of the input of edge e: its relative position, followed by its length. */
static double edge_at(const graft_network *n, int64_t e, int64_t j)
{
    double squares = 0;

    if (j < n->mesh->space.dim) return gr_mesh_offset(n->mesh, e, (int)j);
    for (int d = 0; d < n->mesh->space.dim; d++)
        squares += gr_mesh_offset(n->mesh, e, d) * gr_mesh_offset(n->mesh, e, d);
    return sqrt(squares);
}

void gr_network_set_edges(graft_network *n)
{
    const struct gr_statistics *s = &n->statistics[GR_STATISTICS_EDGE];
    const double                longest = n->mesh->info[n->mesh->comm->n_ranks].longest;
    const int                   by_longest = n->options.edge_scale == GR_EDGE_SCALE_LONGEST;

    for (int64_t e = 0; e < n->mesh->n_edges; e++) {
        for (int64_t j = 0; j < n->columns.edge_in; j++) {
            const double mean = by_longest ? 0 : s->mean[j], scale = by_longest ? longest : s->deviation[j];

            gr_network_put(n, n->arrays.edges, e * n->columns.edge_in + j,
                           scale > 0 ? (edge_at(n, e, j) - mean) / scale : 0);
        }
    }
}

/* Compute the statistics of the inputs of edges over all ranks in two passes: the mean, and then deviations from it. */
static int32_t measure_edges(graft_network *n, graft_error *error)
{
    struct gr_statistics *s = &n->statistics[GR_STATISTICS_EDGE];
    double                row[4], sums[1 + 2 * 4];

    GR_ASSERT(n->columns.edge_in <= 4);
    for (int pass = 0; pass < 2; pass++) {
        memset(sums, 0, sizeof sums);
        for (int64_t e = 0; e < n->mesh->n_edges; e++) {
            const double                    weight = n->mesh->edges.ranks != NULL ? 1.0 / n->mesh->edges.ranks[e] : 1;
            const struct gr_statistics_rows rows = { 1, n->columns.edge_in, row, &weight };

            for (int64_t j = 0; j < n->columns.edge_in; j++) row[j] = edge_at(n, e, j);
            if (pass == 0) gr_nn_statistics_sum(&rows, n->columns.edge_in, sums);
            else gr_nn_statistics_deviate(s, &rows, sums);
        }
        GR_TRY(gr_comm_sum_f64(n->mesh->comm, sums, gr_nn_statistics_sums(n->columns.edge_in), error));
        if (pass == 0) gr_nn_statistics_centre(s, sums);
        else gr_nn_statistics_add(s, sums);
    }
    gr_network_set_edges(n);
    return GRAFT_OK;
}

/* Compute a checksum of the data that `given` has for node i. */
static uint64_t sum_of_node(const graft_network *n, const struct given *given, int64_t i)
{
    const int64_t row = n->mesh->row_of[i];
    uint64_t      sum = given->is_free != NULL ? given->is_free[row] : 1;
    const double  weight = given->loss_weight != NULL ? given->loss_weight[row] : 1;

    sum = sum << 32 | gr_crc(0, &weight, sizeof weight);
    for (int64_t j = 0; j < n->columns.constant; j++) {
        const double x = gr_mesh_field_at(&given->constant, row, j);

        sum = (sum & ~(uint64_t)UINT32_MAX) | gr_crc((uint32_t)sum, &x, sizeof x);
    }
    return sum;
}

/* Check that copies of a node have the same checksum in `sums`; otherwise their results would differ. */
static int32_t compare_sums(graft_network *n, const uint64_t *sums, const char *name, const char *what,
                            graft_error *error)
{
    int64_t node = -1;
    int32_t other = -1, rc = GRAFT_OK;

    GR_TRY(gr_mgn_compare_copies(n->mgn, sums, &node, &other, error));
    if (node >= 0)
        rc = gr_fail(error, GRAFT_ERR_FORMAT,
                     "%s: rank %d has the node with id %lld (here row %lld) with %s; expected the same on all ranks "
                     "that share it",
                     name, other, (long long)n->mesh->id[node], gr_network_row(n, node), what);
    return gr_comm_agree_on(n->mesh->comm, rc, error);
}

static int32_t compare_given(graft_network *n, const struct given *given, graft_error *error)
{
    uint64_t *sums = NULL;
    int32_t   rc = gr_comm_agree(n->mesh->comm, GR_NEW(n->context, sums, n->mesh->n_nodes, error), error);

    GR_TRY_DONE(rc);
    for (int64_t i = 0; i < n->mesh->n_nodes; i++) sums[i] = sum_of_node(n, given, i);
    rc = compare_sums(n, sums, "args", "another is_free, loss_weight or constant", error);
done:
    gr_free(n->context, sums);
    return rc;
}

int32_t gr_network_compare_copies(graft_network *n, const struct gr_network_rows *rows, const char *name,
                                  graft_error *error)
{
    uint64_t *sums = NULL;
    int32_t   rc = gr_comm_agree_on(n->mesh->comm, GR_NEW(n->context, sums, n->mesh->n_nodes, error), error);

    GR_TRY_DONE(rc);
    for (int64_t i = 0; i < n->mesh->n_nodes; i++) {
        for (int64_t j = 0; j < rows->columns && !(rows->only_free && !n->of_node.is_free[i]); j++) {
            const double x = gr_nn_at(rows->dtype, rows->data, i * rows->stride + j), y = x == 0 ? 0 : x;

            sums[i] = gr_crc((uint32_t)sums[i], &y, sizeof y);
        }
    }
    rc = compare_sums(n, sums, name, "other values", error);
done:
    gr_free(n->context, sums);
    return rc;
}

static int32_t fill(graft_network *n, const struct given *given, graft_error *error)
{
    int32_t rc = gr_comm_agree(n->mesh->comm, allocate(n, error), error);

    if (rc < 0) return rc;
    GR_TRY_DONE(take_rows_given(n, given, error));
    GR_TRY_DONE(measure_edges(n, error));
    gr_nn_set_first(&n->parameters, (uint64_t)n->seed);
    GR_TRY_DONE(gr_mgn_create(n->mesh, &n->shape, n->parameters.dtype, &n->mgn, error));
    GR_TRY_DONE(compare_given(n, given, error));
    gr_budget_charge(&n->budget, GR_USE_ACTIVATIONS, gr_mgn_bytes(n->mgn));
    GR_TRY_DONE(gr_comm_agree(n->mesh->comm, gr_budget_check(&n->budget, 0, "the network", error), error));
    if (n->mesh->comm->rank == 0)
        gr_options_report(n->context, gr_options_bit(n->context, &gr_network_option_table), n->mesh->comm->n_ranks);
done:
    return rc;
}

int32_t gr_network_create(graft_mesh *mesh, int32_t rc, const graft_network_args *args, graft_network **network,
                          graft_error *error)
{
    struct given   given = { .is_free = NULL };
    graft_network *n = NULL;

    if (rc == GRAFT_OK) rc = check_args(mesh, args, &given, error);
    GR_TRY_DONE(agree_on_args(mesh, rc, args, &given, error));
    GR_TRY_DONE(gr_comm_agree(mesh->comm, GR_NEW(mesh->context, n, 1, error), error));
    n->context = mesh->context;
    n->mesh = gr_mesh_use(mesh);
    n->use.count = 1;
    n->number = ++mesh->users.networks;
    gr_budget_init(&n->budget, n->context, 1000000 * gr_base_options(n->context)->memory_limit);
    describe_network(n, args, &given);
    GR_TRY_DONE(fill(n, &given, error));
    *network = n;
    n = NULL;
done:
    gr_network_destroy(n);
    return rc;
}

graft_network *gr_network_use(graft_network *network)
{
    network->use.count++;
    return network;
}

void gr_network_destroy(graft_network *n)
{
    const graft_context *context;

    if (n == NULL || --n->use.count > 0) return;
    context = n->context;
    gr_mgn_destroy(n->mgn);
    gr_mgn_shape_fini(context, &n->shape);
    gr_free(context, n->training.stage);
    gr_budget_fini(&n->budget);
    gr_mesh_destroy(n->mesh);
    gr_free(context, n);
}

void gr_network_info(const graft_network *n, graft_network_info *info)
{
    *info = (graft_network_info){ .size = sizeof *info, .dtype = n->parameters.dtype, .n_weights = n->shape.n_weights };
    info->n_steps = n->progress.steps;
    info->multiply_adds = gr_mgn_work(&n->shape, n->mesh->n_nodes, n->mesh->n_edges);
    info->bytes = gr_budget_total(&n->budget);
    info->bytes_sent = gr_mgn_bytes_sent(n->mgn);
    info->learning_rate = gr_network_live_options(n).step.rate;
}
