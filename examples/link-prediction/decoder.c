/* The decoder. Scores of pairs are a sampled dense-dense product (SDDMM), and their gradient is two sparse products,
 * all of which are calls of graft.edge.
 * SPDX-License-Identifier: Apache-2.0 */
#include "decoder.h"

#include <math.h>

enum { NEGATIVES_ONLY = 1 };

static const float rate = 0.01f, decay_first = 0.9f, decay_second = 0.999f, epsilon = 1e-8f;

int32_t decoder_create(struct host *host, const struct split *split, struct decoder *decoder)
{
    const int64_t all = count_pairs(split, PART_TRAIN) * (1 + decoder->negatives);

    decoder->n = split->n;
    decoder->parameter = host_alloc(host, decoder->width + 1, sizeof(float));
    decoder->first_moment = host_alloc(host, decoder->width + 1, sizeof(float));
    decoder->second_moment = host_alloc(host, decoder->width + 1, sizeof(float));
    decoder->gradient_of = host_alloc(host, decoder->width + 1, sizeof(float));
    decoder->scaled = host_alloc(host, decoder->n * decoder->width, sizeof(float));
    decoder->row_ptr = host_alloc(host, decoder->n + 1, sizeof(int64_t));
    decoder->col_idx = host_alloc(host, all, sizeof(int32_t));
    decoder->score = host_alloc(host, all, sizeof(float));
    if (host->error.code < 0) return host->error.code;
    for (int64_t c = 0; c < decoder->width; c++) decoder->parameter[c] = 1;
    for (int64_t u = 0; u <= decoder->n; u++)
        decoder->row_ptr[u] = split->part[PART_TRAIN].begin[u] * (1 + decoder->negatives);
    return GRAFT_OK;
}

void decoder_free(struct decoder *decoder)
{
    free(decoder->parameter);
    free(decoder->first_moment);
    free(decoder->second_moment);
    free(decoder->gradient_of);
    free(decoder->scaled);
    free(decoder->row_ptr);
    free(decoder->col_idx);
    free(decoder->score);
}

void decoder_scale(struct decoder *decoder, const float *z)
{
    for (int64_t i = 0; i < decoder->n; i++)
        for (int64_t c = 0; c < decoder->width; c++)
            decoder->scaled[i * decoder->width + c] = z[i * decoder->width + c] * decoder->parameter[c];
}

/* Compute targets. The loss is |z - t|^2 / count, and its gradient is 2 (z - t) / count. */
void gradient_to_targets(const float *z, int64_t count, float *gradient)
{
    for (int64_t i = 0; i < count; i++) gradient[i] = z[i] - (float)count / 2 * gradient[i];
}

/* Draw the pairs of an epoch. The row of a vertex has first its pairs with an edge, and then those without. */
static void draw_pairs(const struct host *host, struct decoder *decoder, const struct pairs *train, int64_t epoch)
{
    for (int64_t u = 0; u < decoder->n; u++) {
        int32_t *row = &decoder->col_idx[decoder->row_ptr[u]];

        for (int64_t e = train->begin[u]; e < train->begin[u + 1]; e++) *row++ = train->target[e];
        for (int64_t e = train->begin[u] * decoder->negatives; e < train->begin[u + 1] * decoder->negatives; e++)
            *row++ = draw_vertex(host->seed + NEGATIVES_ONLY, (uint64_t)epoch, (uint64_t)e, decoder->n);
    }
}

/* Replace scores by the gradient of the loss with respect to them, and return the loss. */
static double score_loss(struct decoder *decoder, const struct pairs *train)
{
    const double positives = (double)train->begin[decoder->n];
    double       loss[2] = { 0 };

    for (int64_t u = 0; u < decoder->n; u++) {
        const int64_t with_edge = train->begin[u + 1] - train->begin[u];

        for (int64_t e = decoder->row_ptr[u]; e < decoder->row_ptr[u + 1]; e++) {
            const int    edge = e - decoder->row_ptr[u] < with_edge;
            const double s = (double)decoder->score[e] + (double)decoder->parameter[decoder->width];
            const double x = edge ? -s : s; /* the loss of a pair is log(1 + exp(x)) */
            const double part = exp(-fabs(x)), slope = x >= 0 ? 1 / (1 + part) : part / (1 + part);
            const double weight = edge ? 1 / positives : 1 / (positives * decoder->negatives);

            loss[edge] += weight * ((x > 0 ? x : 0) + log1p(part));
            decoder->score[e] = (float)((edge ? -slope : slope) * weight);
        }
    }
    return loss[0] + loss[1];
}

/* Compute the gradient of the weights w. On entry `gradient` is the gradient with respect to z diag(w). The gradient of
 * w[c] is sum_i z[i,c] * (row i of the product with the pairs of i)[c]; the product is now in `scaled`. */
static void step_parameters(struct decoder *decoder, const float *z, int64_t epoch)
{
    for (int64_t c = 0; c <= decoder->width; c++) decoder->gradient_of[c] = 0;
    for (int64_t i = 0; i < decoder->n; i++)
        for (int64_t c = 0; c < decoder->width; c++)
            decoder->gradient_of[c] += z[i * decoder->width + c] * decoder->scaled[i * decoder->width + c];
    for (int64_t e = 0; e < decoder->row_ptr[decoder->n]; e++)
        decoder->gradient_of[decoder->width] += decoder->score[e];
    for (int64_t c = 0; c <= decoder->width; c++) {
        const float g = decoder->gradient_of[c];
        float      *m = &decoder->first_moment[c], *v = &decoder->second_moment[c];

        *m = decay_first * *m + (1 - decay_first) * g;
        *v = decay_second * *v + (1 - decay_second) * g * g;
        decoder->parameter[c] -= rate * (*m / (1 - powf(decay_first, (float)epoch))) /
                                 (sqrtf(*v / (1 - powf(decay_second, (float)epoch))) + epsilon);
    }
}

/* Compute gradient = diag(w) (D + D^T) z, where the matrix D has the gradients of the scores at the positions of the
 * pairs. */
static int32_t pull_back(struct host *host, struct decoder *decoder, graft_matrix *pairs, int64_t epoch, const float *z,
                         float *gradient)
{
    const int64_t     n = decoder->n, width = decoder->width;
    const graft_dense slope = graft_dense_in(GRAFT_F32, decoder->row_ptr[n], 1, decoder->score);
    const graft_dense y = graft_dense_in(GRAFT_F32, n, width, z);
    const graft_dense of_rows = graft_dense_in(GRAFT_F32, n, width, decoder->scaled);
    const graft_dense of_columns = graft_dense_in(GRAFT_F32, n, width, gradient);
    graft_context    *context = host->api->context;
    int32_t           rc = host->edge->mxm(context, pairs, 0, &slope, &y, &of_rows, 0, &host->error);

    if (rc >= 0) rc = host->edge->mxm(context, pairs, GRAFT_EDGE_TRANSPOSE, &slope, &y, &of_columns, 0, &host->error);
    if (rc < 0) return rc;
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < width; c++)
            gradient[i * width + c] =
                (gradient[i * width + c] + decoder->scaled[i * width + c]) * decoder->parameter[c];
    if (decoder->hadamard) step_parameters(decoder, z, epoch);
    return rc;
}

int32_t decoder_step(struct host *host, struct decoder *decoder, const struct split *split, int64_t epoch,
                     const float *z, float *gradient, double *loss)
{
    const int64_t     n = decoder->n, width = decoder->width;
    const graft_dense y = graft_dense_in(GRAFT_F32, n, width, z);
    const graft_dense x = graft_dense_in(GRAFT_F32, n, width, decoder->scaled);
    const graft_dense score = graft_dense_in(GRAFT_F32, decoder->row_ptr[n], 1, decoder->score);
    graft_csr         csr = GRAFT_INIT(graft_csr);
    graft_matrix     *pairs = NULL;
    int32_t           rc;

    csr.index_type = GRAFT_I32;
    csr.n_rows = csr.n_cols = n;
    csr.row_ptr = decoder->row_ptr;
    csr.col_idx = decoder->col_idx;
    draw_pairs(host, decoder, &split->part[PART_TRAIN], epoch);
    decoder_scale(decoder, z);
    rc = host->mxm->matrix_create(host->api->context, &csr, 1, &pairs, &host->error);
    if (rc >= 0) rc = host->edge->sddmm(host->api->context, pairs, &x, &y, &score, 0, &host->error);
    if (rc >= 0) {
        *loss = score_loss(decoder, &split->part[PART_TRAIN]);
        rc = pull_back(host, decoder, pairs, epoch, z, gradient);
    }
    host->mxm->matrix_destroy(pairs);
    return rc;
}
