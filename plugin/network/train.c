/* A training step: statistics, noise, loss and gradient of its pairs, and sums over ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/collective.h"
#include "comm/compare_options.h"
#include "network/fields.h"
#include "network/network.h"
#include "network/noise.h"
#include "network/options.h"
#include "nn/options.h"

#include <math.h>
#include <string.h>

int32_t gr_network_reserve_moments(graft_network *n, graft_error *error)
{
    GR_TRY(gr_nn_reserve(&n->parameters, &n->budget, GR_USE_OPTIMISER, GR_COPY_M, error));
    return gr_nn_reserve(&n->parameters, &n->budget, GR_USE_OPTIMISER, GR_COPY_V, error);
}

/* Allocate the arrays of training, except `stage`, unless they exist. */
static int32_t reserve_arrays(graft_network *n, graft_error *error)
{
    struct gr_network_training *t = &n->training;
    struct gr_statistics       *s = n->statistics;
    const int64_t               nodes = n->mesh->n_nodes;

    if (t->gradient == NULL)
        t->gradient = gr_budget_new(&n->budget, GR_USE_GRADIENTS, n->parameters.n_weights,
                                    (uint64_t)gr_nn_bytes(n->parameters.dtype), "gradients", error);
    if (t->gradient == NULL) return GRAFT_ERR_NOMEM;
    GR_TRY(gr_nn_reserve(&n->parameters, &n->budget, GR_USE_GRADIENTS, GR_COPY_GRADIENT, error));
    if (t->input == NULL) GR_TRY(GR_BUDGET_NEW(&n->budget, GR_USE_FEATURES, t->input, nodes * n->columns.in, error));
    if (t->target == NULL) GR_TRY(GR_BUDGET_NEW(&n->budget, GR_USE_FEATURES, t->target, nodes * n->columns.out, error));
    for (int k = GR_STATISTICS_NODE; k < GR_STATISTICS; k++)
        if (t->next[k].count == NULL) GR_TRY(gr_nn_statistics_init(&n->budget, s[k].columns, &t->next[k], error));
    if (t->sums == NULL)
        GR_TRY(GR_BUDGET_NEW(&n->budget, GR_USE_FEATURES, t->sums,
                             gr_nn_statistics_sums(n->columns.in) + gr_nn_statistics_sums(n->columns.out), error));
    return GRAFT_OK;
}

/* Allocate space for `count` pairs of the host in `stage`. */
static int32_t reserve_stage(graft_network *n, int64_t count, graft_error *error)
{
    struct gr_network_training *t = &n->training;
    const int64_t               columns = n->columns.in + n->columns.out;
    double                     *stage;

    if (count <= t->staged) return GRAFT_OK;
    GR_TRY(gr_budget_check(&n->budget, 8 * (double)columns * (double)n->mesh->n_nodes * (double)count, "pairs", error));
    GR_TRY(GR_NEW(n->context, stage, columns * n->mesh->n_nodes * count, error));
    gr_budget_charge(&n->budget, GR_USE_FEATURES, gr_memory_bytes(stage) - gr_memory_bytes(t->stage));
    gr_free(n->context, t->stage);
    t->stage = stage;
    t->staged = count;
    return GRAFT_OK;
}

enum { PRODUCTS_BYTES = 1 << 30 }; /* largest size of stored products */

/* Let passes store products of edges for the backward pass, if they are small enough and fit into the budget. */
static int32_t keep_products(graft_network *n, graft_error *error)
{
    const double  wanted = gr_mgn_products_bytes(n->mgn);
    const int64_t before = gr_mgn_bytes(n->mgn);
    int32_t       rc;

    if (wanted > PRODUCTS_BYTES || !gr_budget_fits(&n->budget, wanted)) return GRAFT_OK;
    rc = gr_mgn_reserve_products(n->mgn, error);
    gr_budget_charge(&n->budget, GR_USE_ACTIVATIONS, gr_mgn_bytes(n->mgn) - before);
    return rc;
}

/* Allocate the memory of backward passes. Its size is known only afterwards; it is freed if it exceeds the limit. */
static int32_t reserve_backward(graft_network *n, graft_error *error)
{
    const int64_t before = gr_mgn_bytes(n->mgn);
    int64_t       more;
    int32_t       rc = gr_mgn_reserve_backward(n->mgn, error);

    GR_TRY_DONE(rc);
    more = gr_mgn_bytes(n->mgn) - before;
    if (more == 0) return GRAFT_OK;
    rc = gr_budget_check(&n->budget, (double)more, "training", error);
    if (rc < 0) gr_mgn_release_backward(n->mgn);
    else gr_budget_charge(&n->budget, GR_USE_ACTIVATIONS, more);
done:
    return rc;
}

int32_t gr_network_reserve_training(graft_network *n, int64_t count, graft_error *error)
{
    GR_TRY(reserve_arrays(n, error));
    GR_TRY(reserve_stage(n, count, error));
    GR_TRY(gr_comm_reserve(n->mesh->comm, (uint64_t)(n->shape.n_weights * 8), error));
    GR_TRY(reserve_backward(n, error));
    return keep_products(n, error);
}

void gr_network_copy_field(const graft_network *n, const graft_field *field, graft_dtype dtype, void *to)
{
    double column[GR_FIELD_ROWS];

    for (int64_t first = 0; first < n->mesh->n_nodes; first += GR_FIELD_ROWS) {
        const int64_t left = n->mesh->n_nodes - first, count = left < GR_FIELD_ROWS ? left : GR_FIELD_ROWS;

        for (int64_t j = 0; j < field->n_columns; j++) {
            gr_network_field_read_column(field, n->mesh->row_of + first, count, j, column);
            for (int64_t i = 0; i < count; i++) gr_nn_put(dtype, to, (first + i) * field->n_columns + j, column[i]);
        }
    }
}

void gr_network_stage(graft_network *n, const graft_field *input, const graft_field *target, int64_t k,
                      struct gr_network_pair *pair)
{
    const int64_t nodes = n->mesh->n_nodes;
    double *const x = n->training.stage + k * nodes * (n->columns.in + n->columns.out), *const y =
                                                                                            x + nodes * n->columns.in;

    *pair = (struct gr_network_pair){ x, y, n->columns.out, GRAFT_F64 };
    gr_network_copy_field(n, input, GRAFT_F64, x);
    gr_network_copy_field(n, target, GRAFT_F64, y);
}

static int32_t refuse_value(const graft_network *n, const char *what, int64_t k, int64_t node, int64_t column,
                            double found, graft_error *error)
{
    return gr_fail(error, GRAFT_ERR_NONFINITE,
                   "pair %lld: the %s has %g in row %lld, column %lld; expected finite values", (long long)k, what,
                   found, gr_network_row(n, node), (long long)column);
}

/* Check that the arrays of pair k are finite where they are read. Returns OK; ERR_NONFINITE. */
static int32_t check_pair(const graft_network *n, const struct gr_network_pair *pair, int64_t k, graft_error *error)
{
    for (int64_t i = 0; i < n->mesh->n_nodes; i++) {
        for (int64_t j = 0; j < n->columns.in; j++) {
            const double x = gr_nn_at(pair->dtype, pair->input, i * n->columns.in + j);

            if (!isfinite(x)) return refuse_value(n, "input", k, i, j, x, error);
        }
        for (int64_t j = 0; j < n->columns.out && n->of_node.is_free[i]; j++) {
            const double y = gr_nn_at(pair->dtype, pair->target, i * pair->stride + j);

            if (!isfinite(y)) return refuse_value(n, "target", k, i, j, y, error);
        }
    }
    return GRAFT_OK;
}

int32_t gr_network_agree(const graft_network *n, int32_t rc, int64_t count, graft_error *error)
{
    static const char *const names[] = { "the number of pairs", "training steps so far",
                                         "the items set by state_set() (their CRC32C)",
                                         "an option that a step reads (lr, clip_norm, ...; their CRC32C)" };
    const uint32_t           groups = gr_options_bit(n->context, &gr_network_option_table) |
                            gr_options_bit(n->context, &gr_training_option_table) | gr_mgn_option_bits(n->context);
    const uint64_t values[] = { (uint64_t)count, (uint64_t)n->progress.steps, n->progress.digest,
                                gr_comm_digest_live_options(n->context, groups) };
    graft_error    differs = { .size = sizeof differs };

    rc = gr_comm_agree_same(n->mesh->comm, rc, names, values, 4, error);
    /* If options differ, replace the message by one that names the option. All ranks have the same rc here. */
    if (rc == GRAFT_ERR_ARG &&
        gr_comm_compare_live_options(n->context, n->mesh->comm, groups, &differs) == GRAFT_ERR_ARG)
        *error = differs;
    return rc;
}

/* Whether noise is added to inputs: in training steps only. */
enum noise { WITHOUT_NOISE, WITH_NOISE };

/* Compute training.input and training.target of pair k, in units of the data. Noise is added to the input and not to
 * the target value, so that a network that predicts changes learns to correct it. */
static void prepare(graft_network *n, const struct gr_network_pair *pair, int64_t k, enum noise noise)
{
    struct gr_network_training  *t = &n->training;
    const struct gr_network_live o = gr_network_live_options(n);
    const int64_t                noisy = n->columns.out < n->columns.in ? n->columns.out : n->columns.in;
    const double                 deviation = noise == WITH_NOISE ? o.noise : 0;
    const uint64_t               key = gr_noise_key(n->seed, n->progress.steps, k);
    double                       draws[GR_NOISE_AT_ONCE];

    for (int64_t i = 0; i < n->mesh->n_nodes; i++) {
        double *x = t->input + i * n->columns.in, *y = t->target + i * n->columns.out;

        for (int64_t j = 0; j < n->columns.in; j++) x[j] = gr_nn_at(pair->dtype, pair->input, i * n->columns.in + j);
        for (int64_t j = 0; j < n->columns.out; j++) y[j] = gr_nn_at(pair->dtype, pair->target, i * pair->stride + j);
        for (int64_t j = 0; j < noisy && n->of_node.is_free[i] && deviation > 0; j++) {
            if (j % GR_NOISE_AT_ONCE == 0) gr_noise(key, n->mesh->id[i], j / GR_NOISE_AT_ONCE, draws);
            x[j] += deviation * draws[j % GR_NOISE_AT_ONCE];
        }
        for (int64_t j = 0; j < n->columns.out && n->predicts == GRAFT_PREDICTS_CHANGE; j++) y[j] -= x[j];
    }
}

/* Sum the pairs of a step over all ranks: with `deviates` deviations from the means of `next`, else values for new
 * means. */
static int32_t sum_statistics(graft_network *n, const struct gr_network_pair *pairs, int32_t count, int deviates,
                              graft_error *error)
{
    struct gr_network_training *t = &n->training;
    const int64_t               of_nodes = gr_nn_statistics_sums(n->columns.in),
                  all = of_nodes + gr_nn_statistics_sums(n->columns.out);

    memset(t->sums, 0, (size_t)all * sizeof *t->sums);
    for (int32_t k = 0; k < count; k++) {
        const struct gr_statistics_rows in = { n->mesh->n_nodes, n->columns.in, t->input, n->mesh->node_weight };
        const struct gr_statistics_rows out = { n->mesh->n_nodes, n->columns.out, t->target, n->of_node.free_weight };

        prepare(n, &pairs[k], k, WITH_NOISE);
        if (deviates) {
            gr_nn_statistics_deviate(&t->next[GR_STATISTICS_NODE], &in, t->sums);
            gr_nn_statistics_deviate(&t->next[GR_STATISTICS_OUTPUT], &out, t->sums + of_nodes);
        } else {
            gr_nn_statistics_sum(&in, n->columns.in, t->sums);
            gr_nn_statistics_sum(&out, n->columns.out, t->sums + of_nodes);
        }
    }
    return gr_comm_sum_f64(n->mesh->comm, t->sums, all, error);
}

/* Compute training.next: the statistics after the pairs of a step are added. */
static int32_t gather(graft_network *n, const struct gr_network_pair *pairs, int32_t count, graft_error *error)
{
    struct gr_network_training *t = &n->training;
    struct gr_statistics       *node = &t->next[GR_STATISTICS_NODE], *output = &t->next[GR_STATISTICS_OUTPUT];
    double *const               of_output = t->sums + gr_nn_statistics_sums(n->columns.in);
    int32_t                     rc = GRAFT_OK;

    for (int k = 0; k < GR_STATISTICS; k++) gr_nn_statistics_copy(&t->next[k], &n->statistics[k]);
    if (n->progress.steps >= gr_network_frozen_after(n)) return GRAFT_OK;
    if (*node->count == 0 || *output->count == 0) {
        GR_TRY_DONE(sum_statistics(n, pairs, count, 0, error));
        gr_nn_statistics_centre(node, t->sums);
        gr_nn_statistics_centre(output, of_output);
    }
    GR_TRY_DONE(sum_statistics(n, pairs, count, 1, error));
    gr_nn_statistics_add(node, t->sums);
    gr_nn_statistics_add(output, of_output);
    for (int64_t j = 0; j < n->columns.in + n->columns.out && rc == GRAFT_OK; j++) {
        const double squares = j < n->columns.in ? node->squares[j] : output->squares[j - n->columns.in];

        if (!isfinite(squares))
            rc =
                gr_fail(error, GRAFT_ERR_NONFINITE, "column %lld of the %s has values whose squares are not finite",
                        (long long)(j < n->columns.in ? j : j - n->columns.in), j < n->columns.in ? "input" : "target");
    }
done:
    return rc;
}

/* The arguments of loss_of_pair(), and its result. */
struct pair_loss {
    graft_network              *network;
    const struct gr_statistics *output;
    double                      share; /* weight of each pair: 1 / number of pairs */
    double                      sum;   /* loss of this rank, summed over pairs */
};

/* Compute the error of the standardised output of node i in column j. */
static double error_at(const struct pair_loss *l, const void *output, int64_t i, int64_t j)
{
    const graft_network *n = l->network;
    double               y = gr_network_at(n, output, i * n->columns.out + j);

    if (n->columns.adds_input) y += gr_network_at(n, n->arrays.nodes, i * n->columns.node_in + j);
    return y - (n->training.target[i * n->columns.out + j] - l->output->mean[j]) / l->output->deviation[j];
}

static int32_t loss_of_pair(void *arg, const void *output, void *gradient, graft_error *error)
{
    struct pair_loss *l = arg;
    graft_network    *n = l->network;

    (void)error;
    for (int64_t i = 0; i < n->mesh->n_nodes; i++) {
        const double weight = l->share * n->of_node.loss_weight[i];

        for (int64_t j = 0; j < n->columns.out; j++) {
            const double e = weight > 0 ? error_at(l, output, i, j) : 0; /* targets without weight may be
                                                                            undefined */

            l->sum += weight * e * e;
            if (gradient != NULL) gr_network_put(n, gradient, i * n->columns.out + j, 2 * weight * e);
        }
    }
    return GRAFT_OK;
}

static void standardise_input(graft_network *n, const struct gr_statistics *s)
{
    for (int64_t i = 0; i < n->mesh->n_nodes; i++)
        for (int64_t j = 0; j < n->columns.in; j++)
            gr_network_put(n, n->arrays.nodes, i * n->columns.node_in + j,
                           (n->training.input[i * n->columns.in + j] - s->mean[j]) / s->deviation[j]);
}

static int32_t sum_weights(const graft_network *n, void *values, graft_error *error)
{
    return n->parameters.dtype == GRAFT_F64 ? gr_comm_sum_f64(n->mesh->comm, values, n->shape.n_weights, error)
                                            : gr_comm_sum_f32(n->mesh->comm, values, n->shape.n_weights, error);
}

/* Compute the loss and the gradient of all pairs over all ranks, with these statistics. The gradient is in
 * n->parameters. */
static int32_t differentiate(graft_network *n, const struct gr_network_pair *pairs, int32_t count, enum noise noise,
                             const struct gr_statistics *statistics, double *loss, graft_error *error)
{
    struct gr_network_training *t = &n->training;
    struct pair_loss            l = { n, &statistics[GR_STATISTICS_OUTPUT], 1.0 / count, 0 };

    for (int32_t k = 0; k < count; k++) {
        prepare(n, &pairs[k], k, noise);
        standardise_input(n, &statistics[GR_STATISTICS_NODE]);
        GR_TRY(gr_mgn_backward(n->mgn, gr_nn_array(&n->parameters, GR_COPY_VALUE), n->arrays.nodes, n->arrays.edges,
                               noise == WITHOUT_NOISE, n->progress.steps, loss_of_pair, &l,
                               k == 0 ? n->parameters.gradients : t->gradient, gr_network_team(n), error));
        for (int64_t i = 0; k > 0 && i < n->shape.n_weights; i++)
            gr_network_put(n, n->parameters.gradients, i,
                           gr_network_at(n, n->parameters.gradients, i) + gr_network_at(n, t->gradient, i));
    }
    GR_TRY(sum_weights(n, n->parameters.gradients, error));
    GR_TRY(gr_comm_sum_f64(n->mesh->comm, &l.sum, 1, error));
    *loss = l.sum;
    return GRAFT_OK;
}

/* Compute the norm of the gradient, and check that loss and gradient are finite. Squares must not overflow in the type
 * of the network, because second moments contain them. */
static int32_t measure_gradient(const graft_network *n, double loss, double *length, graft_error *error)
{
    const double squares = gr_nn_squares(&n->parameters);

    *length = sqrt(squares);
    if (isfinite(loss) && isfinite(n->parameters.dtype == GRAFT_F64 ? squares : (double)(float)squares))
        return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_NONFINITE,
                   "step %lld: the loss is %g and the gradient has length %g; expected finite values. Weights and "
                   "statistics stay as before the step",
                   (long long)n->progress.steps + 1, loss, *length);
}

/* Compare copies of the inputs and of the targets of free nodes, if option check is full. */
static int32_t compare_pairs(graft_network *n, const struct gr_network_pair *pairs, int32_t count, graft_error *error)
{
    for (int32_t k = 0; k < count && n->checks.compares; k++) {
        const struct gr_network_pair *p = &pairs[k];
        const struct gr_network_rows  input = { p->input, p->dtype, n->columns.in, n->columns.in, 0 };
        const struct gr_network_rows  target = { p->target, p->dtype, n->columns.out, p->stride, 1 };

        GR_TRY(gr_network_compare_copies(n, &input, "the input of a pair", error));
        GR_TRY(gr_network_compare_copies(n, &target, "the target of a pair", error));
    }
    return GRAFT_OK;
}

int32_t gr_network_train(graft_network *n, int32_t rc, const struct gr_network_pair *pairs, int32_t count,
                         graft_network_step *step, graft_error *error)
{
    const int                    is_gathering = n->progress.steps < gr_network_gathering_steps(n);
    const struct gr_network_live live = gr_network_live_options(n);
    const double                 begin = gr_network_clock(n);

    *step = (graft_network_step){ .size = sizeof *step, .is_gathering = is_gathering, .learning_rate = live.step.rate };
    for (int32_t k = 0; rc == GRAFT_OK && k < count; k++) rc = check_pair(n, &pairs[k], k, error);
    if (rc == GRAFT_OK) rc = gr_context_check_cancel(n->context, error);
    GR_TRY_DONE(gr_network_agree(n, rc, count, error));
    GR_TRY_DONE(compare_pairs(n, pairs, count, error));
    n->training.has_gradient = 0;
    GR_TRY_DONE(gather(n, pairs, count, error));
    if (!is_gathering) {
        GR_TRY_DONE(differentiate(n, pairs, count, WITH_NOISE, n->training.next, &step->loss, error));
        GR_TRY_DONE(measure_gradient(n, step->loss, &step->gradient_norm, error));
        if (live.clip_norm > 0) gr_nn_clip(&n->parameters, step->gradient_norm, live.clip_norm);
        gr_nn_step(&n->parameters, &live.step, gr_network_team(n));
    }
    for (int k = 0; k < GR_STATISTICS; k++) gr_nn_statistics_copy(&n->statistics[k], &n->training.next[k]);
    n->training.has_moments = 1;
    step->step = ++n->progress.steps;
    gr_network_measure(n, GR_PHASE_STEP, begin);
done:
    return rc;
}

int32_t gr_network_gradient(graft_network *n, int32_t rc, const struct gr_network_pair *pair, double *loss,
                            graft_error *error)
{
    double length;

    if (rc == GRAFT_OK) rc = check_pair(n, pair, 0, error);
    GR_TRY_DONE(gr_network_agree(n, rc, 1, error));
    GR_TRY_DONE(compare_pairs(n, pair, 1, error));
    n->training.has_gradient = 0;
    GR_TRY_DONE(differentiate(n, pair, 1, WITHOUT_NOISE, n->statistics, loss, error));
    GR_TRY_DONE(measure_gradient(n, *loss, &length, error));
    n->training.has_gradient = 1;
done:
    return rc;
}

int32_t gr_network_loss(graft_network *n, const struct gr_network_pair *pairs, int32_t count, double *loss,
                        graft_error *error)
{
    struct pair_loss l = { n, &n->statistics[GR_STATISTICS_OUTPUT], 1.0 / count, 0 };

    for (int32_t k = 0; k < count; k++) {
        prepare(n, &pairs[k], k, WITHOUT_NOISE);
        standardise_input(n, &n->statistics[GR_STATISTICS_NODE]);
        GR_TRY(gr_mgn_forward_begin(n->mgn, GRAFT_OK, gr_nn_array(&n->parameters, GR_COPY_VALUE), n->arrays.nodes,
                                    n->arrays.edges, 1, gr_network_team(n), error));
        GR_TRY(gr_mgn_forward_end(n->mgn, GRAFT_OK, n->arrays.output, gr_network_team(n), error));
        GR_TRY(loss_of_pair(&l, n->arrays.output, NULL, error));
    }
    GR_TRY(gr_comm_sum_f64(n->mesh->comm, &l.sum, 1, error));
    *loss = l.sum;
    return GRAFT_OK;
}
