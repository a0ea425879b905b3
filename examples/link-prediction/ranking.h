/* Measures how well pairs with an edge rank among pairs without one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RANKING_H
#define RANKING_H

#include "decoder.h"

/** Means over the pairs of a part: the mean of 1 / rank, and the shares of pairs whose rank is at most 1, 3 and 10. */
struct ranking {
    double mrr, hits_1, hits_3, hits_10;
};

/** Rank the pairs of a part. For each pair (u, v), `others` vertices without an edge to u are drawn, the same in every
 * call. The rank of v is 1 + the number of those with a larger score + half the number of those with the same score. */
int32_t rank_pairs(struct host *host, struct decoder *decoder, const struct split *split, enum part part,
                   int32_t others, const float *z, struct ranking *ranking);

#endif
