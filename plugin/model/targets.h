/* What a model learns, and which vertices are in its loss.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_train.h"

#include <math.h>
#include <stddef.h>

/** Labels, targets or float targets of the vertices whose rows the last layer makes, and the split. */
struct gr_targets {
    const int32_t *labels;  /* [n] -1: none; or NULL */
    const uint8_t *targets; /* [n x n_classes] 0 or 1, or NULL */
    const float   *values;  /* [n x n_classes] float targets, NaN: not known; or NULL */
    int64_t        stride;  /* of values */
    const uint8_t *split;   /* [n] GRAFT_SPLIT_..., or NULL */
    int64_t        n, n_classes;
    int64_t        n_train;       /* training vertices with a label or a known value, of all ranks */
    const float   *vertex_weight; /* [n] of each in a sampled loss, or NULL: 1 */
    double        *class_weight;  /* [n_classes] of option class_weights, or NULL: 1 */
    double         loss_weight;   /* divides the sum of losses of the current step on all ranks: the sum of vertex
                                   * weights, or the number of known values */
};

/** The number of known float targets of vertex v. */
static inline int64_t gr_known_values(const struct gr_targets *targets, int64_t v)
{
    int64_t known = 0;

    for (int64_t j = 0; targets->values != NULL && j < targets->n_classes; j++)
        known += !isnan(targets->values[v * targets->stride + j]);
    return known;
}

/** Whether vertex v has a target; and whether it is also a training vertex. */
static inline int gr_has_target(const struct gr_targets *targets, int64_t v)
{
    return targets->targets != NULL || (targets->labels != NULL && targets->labels[v] >= 0) ||
           gr_known_values(targets, v) > 0;
}

static inline int gr_is_trained(const struct gr_targets *targets, int64_t v)
{
    return targets->split != NULL && targets->split[v] == GRAFT_SPLIT_TRAIN && gr_has_target(targets, v);
}

/** The factor of a vertex in the sum of losses and in its divisor. Not for float targets. */
static inline double gr_vertex_weight(const struct gr_targets *targets, int64_t v)
{
    return targets->class_weight != NULL ? targets->class_weight[targets->labels[v]] : 1;
}

/** The first of the largest elements of a row. */
static inline int64_t gr_argmax(const float *row, int64_t n)
{
    int64_t best = 0;

    for (int64_t j = 1; j < n; j++) {
        if (row[j] > row[best]) best = j;
    }
    return best;
}
