/* The decoder: from the embeddings z of two vertices to the logit of an edge between them.
 *
 *     dot        s(u,v) = sum_c z[u,c] z[v,c]
 *     hadamard   s(u,v) = b + sum_c w[c] z[u,c] z[v,c], with w and b learned
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DECODER_H
#define DECODER_H

#include "pairs.h"

struct decoder {
    int      hadamard;
    int64_t  n, width;
    int32_t  negatives; /* number of pairs without an edge for each pair with one */
    float   *parameter; /* [width + 1] parameters w and b; in a dot decoder they are 1 and 0 */
    float   *first_moment, *second_moment, *gradient_of;
    float   *scaled; /* [n x width] z with its columns multiplied by w */
    int64_t *row_ptr;
    int32_t *col_idx;
    float   *score; /* [pairs] */
};

int32_t decoder_create(struct host *host, const struct split *split, struct decoder *decoder);
void    decoder_free(struct decoder *decoder);

/** Compute the loss of an epoch and its gradient with respect to z. For each training pair there are `negatives` other
 * pairs with the same first vertex, whose second vertex is drawn by epoch and number. The loss is the mean of -log
 * sigmoid(s) over pairs with an edge, plus the mean of -log sigmoid(-s) over the other pairs. Then the parameters of
 * the decoder make a step of Adam. z and gradient are [n x width]. */
int32_t decoder_step(struct host *host, struct decoder *decoder, const struct split *split, int64_t epoch,
                     const float *z, float *gradient, double *loss);

/** Replace a gradient with respect to z by the targets of a regression with loss `mse` that has this gradient. */
void gradient_to_targets(const float *z, int64_t count, float *gradient);

/** Compute scaled = z diag(w), for scores of other pairs. */
void decoder_scale(struct decoder *decoder, const float *z);

#endif
