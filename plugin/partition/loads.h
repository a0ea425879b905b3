/* What parts have so far, how much they may have, and which of them is least full.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_PARTITION_LOADS_H
#define GR_PARTITION_LOADS_H

#include "partition/partition.h"

struct gr_loads {
    int32_t  parts, leaves;      /* leaves: the power of two from `parts` on */
    int64_t  allowed[GR_SHARES]; /* at least 1 */
    int64_t *has;                /* [parts x GR_SHARES] */
    double  *level;              /* [parts] the fullest share, of what is allowed */
    int32_t *winner;             /* [2 leaves] a tournament: of each node the least full part below it, or -1 */
    int64_t *count;              /* [parts] neighbours of the vertex at hand; zeros between two vertices */
    int32_t *touched;            /* [parts] the parts that have some */
};

/** Empty parts, for vertices that have `total` altogether. */
int32_t gr_loads_init(const graft_context *context, struct gr_loads *loads, const int64_t total[GR_SHARES],
                      int32_t parts, graft_error *error);
void    gr_loads_fini(const graft_context *context, struct gr_loads *loads);

/** All parts are empty again. */
void gr_loads_clear(struct gr_loads *loads);

/** A vertex comes to a part (sign 1) or leaves it (-1). O(log parts). */
void gr_loads_add(struct gr_loads *loads, int32_t part, const int64_t weight[GR_SHARES], int sign);

/** It goes from its owner to another part. */
void gr_loads_move(struct gr_loads *loads, const int64_t weight[GR_SHARES], int32_t *owner, int32_t to);

/** How full a part would be with this vertex too, of what the vertex has: 1 is all that is allowed. */
double gr_loads_with(const struct gr_loads *loads, int32_t part, const int64_t weight[GR_SHARES]);

/** The least full part; where the vertex does not fit into it, the one that it overfills least. */
int32_t gr_loads_least(const struct gr_loads *loads, const int64_t weight[GR_SHARES]);

/** Of the parts with neighbours of a vertex, in the slice, where it fits (gr_loads_with() at most 1), the one with
 *  most, each counted by the room that is left there, as 1 - gr_loads_with(); of equal ones the less full, then the
 *  first. -1 if there is none.
 * \param[in] mine  [n_rows] The owners of the vertices of the slice; -1: none yet. */
int32_t gr_loads_nearest(struct gr_loads *loads, const struct gr_slice *slice, int64_t row,
                         const int64_t weight[GR_SHARES], const int32_t *mine);

/** Move vertices out of parts that have more than is allowed, as long as that makes what all parts have over it less,
 *  or for a fixed number of passes over the slice. No part loses its last vertex. */
void gr_loads_relieve(struct gr_loads *loads, const struct gr_slice *slice, int32_t *mine);

#endif
