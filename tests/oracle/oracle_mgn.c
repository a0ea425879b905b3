/* Computes the network of kind mgn by its formulas, see oracle/oracle_mgn.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "oracle_mgn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One multilayer perceptron: its widths in -> width -> ... -> out, and the position of its weights. */
struct oracle_mlp {
    int in, out, has_norm;
};

static int64_t mlp_weights(const struct oracle_mgn *m, struct oracle_mlp mlp)
{
    int64_t count = mlp.has_norm ? 2 * mlp.out : 0;

    for (int i = 0; i < m->linear; i++) {
        const int in = i == 0 ? mlp.in : m->width, out = i == m->linear - 1 ? mlp.out : m->width;

        count += (int64_t)out * in + out;
    }
    return count;
}

static void oracle_norm_row(int n, const double *gain, const double *shift, double *x)
{
    double mean = 0, variance = 0;

    for (int i = 0; i < n; i++) mean += x[i] / n;
    for (int i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean) / n;
    for (int i = 0; i < n; i++) x[i] = (x[i] - mean) / sqrt(variance + 1e-5) * gain[i] + shift[i];
}

/* Apply a multilayer perceptron: y [out] is computed from x [in]. */
static void apply_oracle_mlp(const struct oracle_mgn *m, struct oracle_mlp mlp, const double *w, const double *x,
                             double *y)
{
    double *from = malloc((size_t)(mlp.in + m->width + mlp.out) * sizeof *from),
           *to = malloc((size_t)(m->width + mlp.out) * sizeof *to);

    memcpy(from, x, (size_t)mlp.in * sizeof *x);
    for (int i = 0; i < m->linear; i++) {
        const int     in = i == 0 ? mlp.in : m->width, last = i == m->linear - 1, out = last ? mlp.out : m->width;
        const double *bias = w + (int64_t)out * in;

        for (int o = 0; o < out; o++) {
            double z = bias[o];

            for (int k = 0; k < in; k++) z += w[(int64_t)o * in + k] * from[k];
            if (!last && z <= 0) z = m->is_elu ? expm1(z) : 0;
            to[o] = z;
        }
        memcpy(from, to, (size_t)out * sizeof *to);
        w = bias + out;
    }
    if (mlp.has_norm) oracle_norm_row(mlp.out, w, w + mlp.out, from);
    memcpy(y, from, (size_t)mlp.out * sizeof *y);
    free(from);
    free(to);
}

static struct oracle_mlp edge_mlp(const struct oracle_mgn *m)
{
    return (struct oracle_mlp){ 3 * m->width, m->width, m->has_norm };
}

static struct oracle_mlp node_mlp(const struct oracle_mgn *m)
{
    return (struct oracle_mlp){ 2 * m->width, m->width, m->has_norm };
}

int64_t oracle_mgn_weights(const struct oracle_mgn *m)
{
    return mlp_weights(m, (struct oracle_mlp){ m->n_node_in, m->width, m->has_norm }) +
           mlp_weights(m, (struct oracle_mlp){ m->n_edge_in, m->width, m->has_norm }) +
           m->layers * (mlp_weights(m, edge_mlp(m)) + mlp_weights(m, node_mlp(m))) +
           mlp_weights(m, (struct oracle_mlp){ m->width, m->n_out, 0 });
}

/* Apply one message-passing layer: h, and unless is_encoded also e, are replaced by the output of the layer. */
static void apply_layer(const struct oracle_mgn *m, const double *edge, const double *node, double *h, double *e)
{
    const int w = m->width;
    double   *sums = calloc((size_t)(m->n_nodes * w + 1), sizeof *sums), *x = malloc((size_t)(3 * w) * sizeof *x);
    double   *u = malloc((size_t)w * sizeof *u);

    for (int64_t k = 0; k < m->n_edges; k++) {
        const double weight = m->edge_weight != NULL ? m->edge_weight[k] : 1;

        memcpy(x, h + m->source[k] * w, (size_t)w * sizeof *x);
        memcpy(x + w, h + m->target[k] * w, (size_t)w * sizeof *x);
        memcpy(x + 2 * w, e + k * w, (size_t)w * sizeof *x);
        apply_oracle_mlp(m, edge_mlp(m), edge, x, u);
        for (int j = 0; j < w; j++) {
            const double old = e[k * w + j], new = old + u[j];

            sums[m->target[k] * w + j] += weight * (m->sum == 0 ? u[j] : m->sum == 1 ? new : old);
            if (!m->is_encoded) e[k * w + j] = new;
        }
    }
    for (int64_t i = 0; i < m->n_nodes; i++) {
        memcpy(x, h + i * w, (size_t)w * sizeof *x);
        memcpy(x + w, sums + i * w, (size_t)w * sizeof *x);
        apply_oracle_mlp(m, node_mlp(m), node, x, u);
        for (int j = 0; j < w; j++) h[i * w + j] += u[j];
    }
    free(sums);
    free(x);
    free(u);
}

void oracle_mgn(const struct oracle_mgn *m, const double *weights, const double *nodes, const double *edges,
                double *output)
{
    const struct oracle_mlp encode_node = { m->n_node_in, m->width, m->has_norm };
    const struct oracle_mlp encode_edge = { m->n_edge_in, m->width, m->has_norm };
    double                 *h = malloc((size_t)(m->n_nodes * m->width + 1) * sizeof *h);
    double                 *e = malloc((size_t)(m->n_edges * m->width + 1) * sizeof *e);

    for (int64_t i = 0; i < m->n_nodes; i++)
        apply_oracle_mlp(m, encode_node, weights, nodes + i * m->n_node_in, h + i * m->width);
    weights += mlp_weights(m, encode_node);
    for (int64_t k = 0; k < m->n_edges; k++)
        apply_oracle_mlp(m, encode_edge, weights, edges + k * m->n_edge_in, e + k * m->width);
    weights += mlp_weights(m, encode_edge);
    for (int l = 0; l < m->layers; l++) {
        const double *node = weights + mlp_weights(m, edge_mlp(m));

        apply_layer(m, weights, node, h, e);
        weights = node + mlp_weights(m, node_mlp(m));
    }
    for (int64_t i = 0; i < m->n_nodes; i++)
        apply_oracle_mlp(m, (struct oracle_mlp){ m->width, m->n_out, 0 }, weights, h + i * m->width,
                         output + i * m->n_out);
    free(h);
    free(e);
}
