/* What a model learns, and which vertices are in its loss.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_train.h"

#include <math.h>
#include <stddef.h>

/** Labels, targets or float targets of the vertices whose rows the last layer computes, and the split. */
struct gr_targets {
    const int32_t *labels;  /* [n] class of each vertex, -1: none; or NULL */
    const uint8_t *targets; /* [n x n_classes] 1: the vertex has this class; or NULL */
    const float   *values;  /* [n x n_classes] float targets, NaN: not known; or NULL */
    int64_t        stride;  /* elements from row to row of `values` */
    const uint8_t *split;   /* [n] GRAFT_SPLIT_..., or NULL */
    int64_t        n, n_classes;
    int64_t        n_train;       /* number of training vertices with a label or a known value, on all ranks */
    const float   *vertex_weight; /* [n] weight of each vertex in a sampled loss; NULL: 1 */
    double        *class_weight;  /* [n_classes] weights of loss=softmax:balanced; NULL: 1 */
    double         loss_weight;   /* divisor of the sum of losses of the current step: the sum of vertex weights, or the
                                   * number of known values, on all ranks */
};

/** The number of known float targets of vertex v. */
static inline int64_t gr_known_values(const struct gr_targets *targets, int64_t v)
{
    int64_t known = 0;

    for (int64_t j = 0; targets->values != NULL && j < targets->n_classes; j++)
        known += !isnan(targets->values[v * targets->stride + j]);
    return known;
}

/** Whether vertex v has a target; gr_is_trained(): and is a training vertex. */
static inline int gr_has_target(const struct gr_targets *targets, int64_t v)
{
    return targets->targets != NULL || (targets->labels != NULL && targets->labels[v] >= 0) ||
           gr_known_values(targets, v) > 0;
}

static inline int gr_is_trained(const struct gr_targets *targets, int64_t v)
{
    return targets->split != NULL && targets->split[v] == GRAFT_SPLIT_TRAIN && gr_has_target(targets, v);
}

/** The factor of vertex v in the sum of losses and in the divisor of this sum. Not for float targets. */
static inline double gr_vertex_weight(const struct gr_targets *targets, int64_t v)
{
    return targets->class_weight != NULL ? targets->class_weight[targets->labels[v]] : 1;
}

/** The index of the largest element of a row; of several, the first. */
static inline int64_t gr_argmax(const float *row, int64_t n)
{
    int64_t best = 0;

    for (int64_t j = 1; j < n; j++) {
        if (row[j] > row[best]) best = j;
    }
    return best;
}
