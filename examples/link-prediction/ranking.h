/* How well pairs with an edge rank among pairs without.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RANKING_H
#define RANKING_H

#include "decoder.h"

/** Means over the pairs of a part: of 1 / rank, and whether the rank is at most 1, 3 and 10. */
struct ranking {
    double mrr, hits_1, hits_3, hits_10;
};

/** For each pair (u, v) of a part, `others` vertices are drawn that u has no edge with, the same in every call. The
 *  rank of v is 1 + those with a larger score + half of those with the same. */
int32_t rank_pairs(struct host *host, struct decoder *decoder, const struct split *split, enum part part,
                   int32_t others, const float *z, struct ranking *ranking);

#endif
